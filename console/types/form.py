"""Form of a notification type. Its validation is that of the API."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
from django import forms
from django.forms.fields import InvalidJSONInput
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from domain.channels import Channel
from domain.plans import Until
from domain.retry import MAX_RETRIES, UnknownPolicy
from domain.states import SchemaMode
from notifications.catalog import definitions, designs, plans, schemas, types
from notifications.catalog.approval import MAX_ABOVE, ApprovalRequest
from notifications.catalog.definitions import (
    ActionRequest,
    TypeRequest,
    WhatsAppTemplateRequest,
)
from notifications.catalog.designs import Design
from notifications.catalog.digests import DigestRequest
from notifications.catalog.plans import PlanRequest
from notifications.catalog.texts import TextRulesRequest
from notifications.content import linting
from notifications.content.templates import SHIPPED_VERSION
from notifications.documents.catalog import NotificationTypeDocument
from notifications.models import NotificationType
from notifications.models.catalog import REASON_LENGTH, SLUG_LENGTH
from notifications.validation import FieldProblem, InvalidRequestError
from rooms import registry as rooms

from ..texts.labels import CHANNELS, options_of
from ..widgets.durations import DurationField
from ..widgets.structures import StructureField
from .emergencies import REASON
from .structures import (
    DigestField,
    NamesField,
    TextRulesField,
    actions_field,
    plan_field,
    whatsapp_templates_field,
)

UNTIL_LABELS = {
    Until.DELIVERED: "Delivered: a provider has confirmed it",
    Until.READ: "Read: opened, or marked as read",
    Until.ACTED: "Acted: an action in the inbox, or the client says so",
}
UNKNOWN_LABELS = {
    UnknownPolicy.RETRY: "Retry (may duplicate)",
    UnknownPolicy.FAIL: "Don't retry",
}

SCHEMA_MODE_LABELS = {
    SchemaMode.OFF: "Accept the request, without a check",
    SchemaMode.WARN: "Accept the request, with warnings in the response",
    SchemaMode.REJECT: "Reject the request",
}

WEAKEN = "notifications.weaken_notificationtype"
NOT_ALLOWED = "Changing this makes the type less safe. It needs the permission to weaken types."
_NOUNS = {
    "plan": "step",
    "digest": "",
    "sms": "",
    "actions": "action",
    "approved_templates": "template",
}


class JsonTextField(forms.JSONField):
    """JSON as indented text; an empty value is an empty text instead of ``null`` or ``{}``."""

    widget = UnfoldAdminTextareaWidget(attrs={"rows": 5})

    def prepare_value(self, value: Any) -> Any:
        """Return the text of a stored value; a text that isn't JSON stays as it was sent."""
        if isinstance(value, InvalidJSONInput):
            return str(value)
        return json.dumps(value, indent=2, ensure_ascii=False) if value else ""

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the value differs; two empty ones don't."""
        return super().has_changed(initial or None, data)


class SchemaField(JsonTextField):
    """A JSON Schema as indented text. It is stored as a text, too."""

    def prepare_value(self, value: Any) -> Any:
        """Return the text of a stored schema; one that isn't JSON stays as it was sent."""
        is_stored = isinstance(value, str) and not isinstance(value, InvalidJSONInput)
        return super().prepare_value(json.loads(value) if is_stored and value else value)

    def has_changed(self, initial: Any, data: Any) -> bool:
        """Return whether the schema differs, in any spelling of the text."""
        return super().has_changed(json.loads(initial) if initial else None, data)


def _room_choices() -> list[tuple[str, str]]:
    return [("", "None"), *((slug, slug) for slug in rooms.find_rooms())]


def _brand_choices() -> list[tuple[str, str]]:
    found = designs.current().brands.items()
    return [("", "None"), *((name, brand["name"]) for name, brand in sorted(found))]


def _layout_choices() -> list[tuple[str, str]]:
    return [
        ("", "That of the brand"),
        *((name, name) for name in sorted(designs.current().layouts)),
    ]


class NotificationTypeForm(forms.ModelForm):
    """Form of a notification type."""

    emergency_reason = forms.CharField(
        label="Why it can't wait",
        max_length=REASON_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Operators are alerted. The reason is in the audit log, and in what notify diff "
        "shows.",
    )

    before: NotificationTypeDocument | None = None
    """The stored type with which the form was checked."""
    design = Design()
    """The design with which it was checked."""
    stored: Mapping[str, Any] = {}
    """The fields of the type as they are stored."""
    may_weaken = False
    """Whether the user may weaken critical or sensitive types, as the scope ``types:admin`` may."""

    slug = forms.CharField(
        max_length=SLUG_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="The type in API requests, such as order_shipped. It's permanent.",
    )
    channels = forms.MultipleChoiceField(
        choices=options_of(CHANNELS),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Used if neither the request nor the recipient's preferences name channels.",
    )
    description = forms.CharField(
        max_length=definitions.DESCRIPTION_LENGTH,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    on_unknown = forms.ChoiceField(
        label="If the outcome is unknown",
        choices=[(policy.value, UNKNOWN_LABELS[policy]) for policy in UnknownPolicy],
        initial=UnknownPolicy.RETRY.value,
        widget=UnfoldAdminRadioSelectWidget,
    )
    max_retries = forms.IntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Attempts after the first one.",
    )
    ttl_seconds = DurationField(
        label="Time to live",
        min_value=1,
        max_value=definitions.MAX_TTL_SECONDS,
        required=False,
        help_text="After the send time, at most 30 days. Empty: no expiry.",
    )
    notify_before_seconds = DurationField(
        label="Reminder lead time",
        min_value=definitions.MIN_REMINDER_SECONDS,
        max_value=definitions.MAX_REMINDER_SECONDS,
        required=False,
        help_text="Before the event of a request. Empty: not a reminder.",
    )
    sensitive_variables = NamesField(
        required=False,
        help_text="Names of variables with secrets, separated by commas. The values are masked. "
        "Those that the schema marks with x-sensitive belong to them.",
    )
    confirm_not_sensitive = forms.BooleanField(
        label="Make removed variables readable",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Required to remove a sensitive variable: from then on, its values are stored "
        "and shown unmasked.",
    )
    confirm_breaking = forms.BooleanField(
        label="Refuse more than until now",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Required for a schema that refuses data which the present one takes. Whoever "
        "sends such data must change first.",
    )
    example_data = JsonTextField(
        required=False,
        help_text="Variables for previews, as a JSON object.",
    )
    schema = SchemaField(
        required=False,
        help_text="JSON Schema of the variables, as an object. Empty: requests are only checked "
        "for the variables that the template needs. A new type gets one of its example data, "
        "unless data isn't checked.",
    )
    schema_mode = forms.ChoiceField(
        label="If data differs from the schema",
        choices=[(mode.value, SCHEMA_MODE_LABELS[mode]) for mode in SchemaMode],
        initial=SchemaMode.REJECT.value,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )

    plan_until = forms.ChoiceField(
        label="Until",
        choices=[(until.value, UNTIL_LABELS[until]) for until in Until],
        initial=Until.DELIVERED.value,
        required=False,
        widget=UnfoldAdminSelectWidget,
    )
    plan = plan_field()
    digest = DigestField()
    brand = forms.ChoiceField(
        required=False,
        choices=_brand_choices,
        widget=UnfoldAdminSelectWidget,
        help_text="Whom messages are from that name no brand.",
    )
    layout = forms.ChoiceField(
        required=False,
        choices=_layout_choices,
        widget=UnfoldAdminSelectWidget,
        help_text="The frame of its emails.",
    )
    room = forms.ChoiceField(
        required=False,
        choices=_room_choices,
        widget=UnfoldAdminSelectWidget,
        help_text="Of messages that name none.",
    )
    approval = forms.IntegerField(
        label="Approval above",
        required=False,
        min_value=0,
        max_value=MAX_ABOVE,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Another person approves broadcasts to more recipients than this; 0: all of "
        "them. Empty: only those that MARKETING_APPROVAL_ABOVE names.",
    )
    fallback_channel = forms.ChoiceField(
        label="Fallback channel",
        required=False,
        choices=[
            ("", "None"),
            *((c.value, CHANNELS[c]) for c in Channel),
        ],
        widget=UnfoldAdminSelectWidget,
        help_text="Used if no other channel has delivered in time: a plan of two steps.",
    )
    fallback_after_seconds = DurationField(
        label="Fallback after",
        required=False,
        min_value=1,
        max_value=definitions.MAX_TTL_SECONDS,
        help_text="Time limit of the other channels. If all fail, the fallback starts immediately.",
    )
    sms = TextRulesField()
    actions = actions_field()
    approved_templates = whatsapp_templates_field()

    class Meta:
        """The model and its editable fields."""

        model = NotificationType
        exclude = (
            *("created_at", "updated_at", "template_version"),
            *sorted(definitions.OF_MANAGEMENT),
        )
        labels = {"is_active": "Active", "console_send": "Send from the console"}
        help_texts = {"console_send": "Staff may send one message of it. Not for a critical type."}

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if not self.instance.slug:
            # A declared field doesn't get the model's default.
            self.initial: dict[str, Any] = forms.model_to_dict(self.instance) | self.initial
        if plan := self.initial.get("plan"):
            self.initial |= {"plan_until": plan["until"], "plan": plan["steps"]}
        if policy := self.initial.get("approval"):
            self.initial["approval"] = policy["above"]

    @property
    def changed_data(self) -> list[str]:
        """The names of the changed fields. A reason alone changes nothing."""
        return [name for name in super().changed_data if name != REASON]

    def clean_slug(self) -> str:
        """Return the slug. Raises ValidationError if a type has it."""
        slug: str = self.cleaned_data["slug"]
        if NotificationType.objects.filter(pk=slug).exists():
            raise forms.ValidationError("A type with this slug already exists.")
        return slug

    def clean_channels(self) -> list[str]:
        """Return the channels in their default order."""
        chosen = self.cleaned_data["channels"]
        return [channel.value for channel in Channel if channel.value in chosen]

    def clean_room(self) -> str | None:
        """Return the room or None."""
        return self.cleaned_data["room"] or None

    def clean_brand(self) -> str | None:
        """Return the brand or None."""
        return self.cleaned_data["brand"] or None

    def clean_layout(self) -> str | None:
        """Return the layout or None."""
        return self.cleaned_data["layout"] or None

    def clean_approval(self) -> ApprovalRequest | None:
        """Return the policy or None."""
        above = self.cleaned_data["approval"]
        return None if above is None else ApprovalRequest(above=above)

    def clean_fallback_channel(self) -> str | None:
        """Return the channel or None."""
        return self.cleaned_data["fallback_channel"] or None

    def clean_fallback_after_seconds(self) -> int:
        """Return the seconds or, if empty, the default."""
        return self.cleaned_data["fallback_after_seconds"] or plans.DEFAULT_FALLBACK_AFTER_SECONDS

    def clean_plan(self) -> PlanRequest | None:
        """Return the plan or None. Raises ValidationError for a single step."""
        steps = self.cleaned_data["plan"]
        until = self.cleaned_data.get("plan_until") or Until.DELIVERED.value
        plan = {"until": until, "steps": steps} if steps else None
        return _converted(plan, PlanRequest | None, "Enter at least two steps.")

    def clean_digest(self) -> DigestRequest | None:
        """Return the digest or None. Raises ValidationError without the time of its end."""
        digest = self.cleaned_data["digest"]
        return _converted(digest, DigestRequest | None, "Enter when it is sent.")

    def clean_sms(self) -> TextRulesRequest:
        """Return the rules, without inputs the default. Raises ValidationError without a number."""
        rules = self.cleaned_data["sms"] or {}
        return _converted(rules, TextRulesRequest, "Enter the most parts.")

    def clean_actions(self) -> list[ActionRequest]:
        """Return the actions. Raises ValidationError if one is incomplete."""
        actions = self.cleaned_data["actions"]
        return _converted(actions, list[ActionRequest], "Enter label and ID.")

    def clean_approved_templates(self) -> list[WhatsAppTemplateRequest]:
        """Return the templates. Raises ValidationError if one is incomplete."""
        templates = self.cleaned_data["approved_templates"]
        return _converted(templates, list[WhatsAppTemplateRequest], "Enter languages and name.")

    def clean_example_data(self) -> dict[str, Any]:
        """Return the variables. Raises ValidationError unless they are an object."""
        data = self.cleaned_data["example_data"]
        if data in (None, ""):
            return {}
        if not isinstance(data, dict):
            raise forms.ValidationError('Enter an object, such as {"order": "12345"}.')
        return data

    def clean_schema(self) -> dict[str, Any] | None:
        """Return the schema or None. Raises ValidationError unless it is an object."""
        schema = self.cleaned_data["schema"]
        if schema in (None, ""):
            return None
        if not isinstance(schema, dict):
            raise forms.ValidationError('Enter an object, such as {"type": "object"}.')
        return schema

    def clean_schema_mode(self) -> str:
        """Return the mode or, if empty, the default."""
        return self.cleaned_data["schema_mode"] or SchemaMode.REJECT.value

    def clean(self) -> dict[str, Any]:
        """Validate the fields as the API does; return them as they are stored."""
        given: dict[str, Any] = self.cleaned_data
        if self.errors:
            return _storable(given)
        slug = self.instance.slug or given["slug"]
        self.before, self.design = before, design = types.read_type(slug), designs.read_newest()
        kept = {name: before.get(name) for name in definitions.OF_MANAGEMENT} if before else {}
        names = set(TypeRequest.__struct_fields__) - definitions.TRANSIENT
        fields = {name: given[name] for name in names - definitions.OF_MANAGEMENT}
        request = TypeRequest(**fields | {k: value for k, value in kept.items() if value})
        if not self.instance.slug:
            request = _with_schema(request)
        if given.get("confirm_not_sensitive"):
            removed = definitions.removed_secrets(before, request)
            request = msgspec.structs.replace(request, confirm_not_sensitive=removed)
        try:
            stored = definitions.validate_type(slug, request, before=before, design=design)
            self._check_change(slug=slug, request=request, fields=stored, before=before)
            self.stored = stored
            return given | stored
        except InvalidRequestError as refused:
            for problem in refused.problems:
                name, text = _form_error(problem, msgspec.to_builtins(request))
                self.add_error(name, text)
                if isinstance(self.fields[name], StructureField):
                    path = problem.pointer.split("/")[2:]
                    self.fields[name].show_error(self[name].data, path, problem.detail)
        return _storable(self.cleaned_data)

    def _check_change(
        self,
        *,
        slug: str,
        request: TypeRequest,
        fields: Mapping[str, Any],
        before: NotificationTypeDocument | None,
    ) -> None:
        """Add an error for what fields would expose, refuse, or weaken."""
        number = (before.get("template_version") if before else None) or SHIPPED_VERSION
        for fault in linting.find_exposures_of_version(slug, fields, number, design=self.design):
            self.add_error("sensitive_variables", fault.place)
        broken = definitions.unconfirmed_breaks(before, request, confirmed=())
        if broken and not self.cleaned_data.get("confirm_breaking"):
            self.add_error("confirm_breaking", "Turn this on to refuse more.")
            for problem in broken:
                place = problem.pointer.removeprefix("/schema/")
                self.add_error("schema", f"At {place}: {problem.detail}")
        if not self.may_weaken:
            for name in definitions.weakened_fields(before, fields):
                self.add_error(name, NOT_ALLOWED)


def _with_schema(request: TypeRequest) -> TypeRequest:
    """Return a new type with a schema: its own, or that of its example data if there are any."""
    is_checked = request.schema_mode != SchemaMode.OFF
    if request.schema is not None or not request.example_data or not is_checked:
        return request
    schema = schemas.schema_of_example(request.example_data)
    if len(schemas.dump(schema)) > schemas.MAX_TEXT:
        return request
    return msgspec.structs.replace(request, schema=schema)


def _storable(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields with the API's structures as the dicts and lists that a model takes."""
    structures = ("plan", "digest", "sms", "actions", "approved_templates", "approval")
    stored = {
        name: msgspec.to_builtins(value) if name in structures else value
        for name, value in given.items()
    }
    schema = given.get("schema")
    return stored | {"schema": schemas.dump(schema) if schema else ""}


def _converted(value: Any, kind: Any, otherwise: str) -> Any:
    """Return the API's structure of a value. Raises ValidationError if the API would refuse it."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise forms.ValidationError(f"{otherwise} ({error})") from error


def _form_error(problem: FieldProblem, given: Mapping[str, Any]) -> tuple[str, str]:
    field, _, rest = problem.pointer.removeprefix("/").partition("/")
    if field == "confirm_not_sensitive":
        return field, "Turn this on to remove a sensitive variable, or add it again."
    value: Any = given.get(field)
    for token in filter(None, rest.split("/")):
        if isinstance(value, list) and token.isdecimal():
            value = value[int(token)]
        else:
            value = value.get(token) if isinstance(value, dict) else None
    if rest and isinstance(value, str):
        return field, f"{problem.detail.rstrip('.')}: {value}."
    where = f"{_place(field, rest)}: " if rest else ""
    return field or "slug", f"{where}{problem.detail}"


def _place(field: str, path: str) -> str:
    """Return a place within a value: in the form's words, or the path within JSON."""
    if field not in _NOUNS:
        return f"At {path}"
    parts = [
        f"{_NOUNS[field]} {int(part) + 1}" if part.isdecimal() else part.replace("_", " ")
        for part in path.split("/")
        if part not in ("steps", "window")
    ]
    return ", ".join(parts).capitalize() or "Here"
