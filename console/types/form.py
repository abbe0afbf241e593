"""The form of a type in the console. What it may say is checked as by the API."""

from collections.abc import Mapping
from typing import Any

import msgspec
from django import forms
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminSelectWidget,
    UnfoldAdminTextareaWidget,
    UnfoldAdminTextInputWidget,
)

from domain.retry import MAX_RETRIES, UnknownPolicy
from domain.states import Channel
from notifications.catalog import definitions, types
from notifications.catalog.definitions import TypeRequest, WhatsAppTemplateRequest
from notifications.models import NotificationType
from notifications.models.catalog import SLUG_LENGTH
from notifications.validation import FieldProblem, InvalidRequestError

from ..widgets.labels import CHANNELS


class NotificationTypeForm(forms.ModelForm):
    """A type's fields, checked."""

    slug = forms.CharField(
        max_length=SLUG_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="What callers write, such as order_shipped. It cannot be changed later.",
    )
    channels = forms.MultipleChoiceField(
        choices=[(channel.value, words) for channel, words in CHANNELS.items()],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Used when neither the caller nor the recipient's preferences name any.",
    )
    description = forms.CharField(
        max_length=definitions.DESCRIPTION_LENGTH,
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 3}),
    )
    on_unknown = forms.ChoiceField(
        label="When nobody knows whether it went",
        choices=(
            (UnknownPolicy.RETRY.value, "Send it again: twice is better than never"),
            (UnknownPolicy.FAIL.value, "Do not: twice is worse than never"),
        ),
        initial=UnknownPolicy.RETRY.value,
        widget=UnfoldAdminRadioSelectWidget,
    )
    max_retries = forms.IntegerField(
        min_value=0,
        max_value=MAX_RETRIES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Tries after the first one.",
    )
    ttl_seconds = forms.IntegerField(
        label="Time to live (seconds)",
        min_value=1,
        max_value=definitions.MAX_TTL_SECONDS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="How long after its send time it is worth sending, at most 30 days; "
        "empty: for ever.",
    )
    notify_before_seconds = forms.IntegerField(
        label="Reminds before the event (seconds)",
        min_value=definitions.MIN_REMINDER_SECONDS,
        max_value=definitions.MAX_REMINDER_SECONDS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="For requests that name an event, and people who want nothing else; empty: "
        "it is no reminder.",
    )
    sensitive_variables = forms.CharField(
        required=False,
        widget=UnfoldAdminTextInputWidget,
        help_text="Names of variables that are secrets, separated by commas. "
        "They are shown to nobody.",
    )
    example_data = forms.JSONField(
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="Variables for previews, as a JSON object.",
    )

    fallback_channel = forms.ChoiceField(
        label="Stand-in channel",
        required=False,
        choices=[("", "None: all channels at once"), *((c.value, CHANNELS[c]) for c in Channel)],
        widget=UnfoldAdminSelectWidget,
        help_text="Used only if the first other channel has not delivered in time.",
    )
    fallback_after_seconds = forms.IntegerField(
        label="After (seconds)",
        required=False,
        min_value=1,
        max_value=definitions.MAX_TTL_SECONDS,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="How long the other channel has. If it fails, nothing is waited for.",
    )
    approved_templates = forms.JSONField(
        label="Approved templates",
        required=False,
        widget=UnfoldAdminTextareaWidget(attrs={"rows": 5}),
        help_text="What Meta has approved for people who have not written for a day: "
        '[{"locale": "pt", "name": "order_shipped", "language": "pt_PT", '
        '"parameters": ["order"]}].',
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = NotificationType
        exclude = ("created_at", "updated_at", "template_version")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if self.instance.slug:
            self.initial["sensitive_variables"] = ", ".join(self.instance.sensitive_variables)

    def clean_slug(self) -> str:
        """Return the slug of a type that there is not yet."""
        slug: str = self.cleaned_data["slug"]
        if NotificationType.objects.filter(pk=slug).exists():
            raise forms.ValidationError("There is a type of this name.")
        return slug

    def clean_channels(self) -> list[str]:
        """Return the channels in their usual order."""
        chosen = self.cleaned_data["channels"]
        return [channel.value for channel in Channel if channel.value in chosen]

    def clean_sensitive_variables(self) -> list[str]:
        """Return the names as a list."""
        names = [n.strip() for n in self.cleaned_data["sensitive_variables"].split(",")]
        return [name for name in dict.fromkeys(names) if name]

    def clean_fallback_channel(self) -> str | None:
        """Return the channel; None for none."""
        return self.cleaned_data["fallback_channel"] or None

    def clean_fallback_after_seconds(self) -> int:
        """Return the seconds; left out, the usual ones."""
        return self.cleaned_data["fallback_after_seconds"] or types.DEFAULT_FALLBACK_AFTER_SECONDS

    def clean_approved_templates(self) -> list[WhatsAppTemplateRequest]:
        """Return the wordings, each complete."""
        try:
            return msgspec.convert(
                self.cleaned_data["approved_templates"] or [], list[WhatsAppTemplateRequest]
            )
        except msgspec.ValidationError as error:
            raise forms.ValidationError(
                "Write a list of objects with locale, name, language and parameters, and nothing "
                f"else. ({error})"
            ) from error

    def clean_example_data(self) -> dict[str, Any]:
        """Return the variables; an object, nothing else."""
        data = self.cleaned_data["example_data"]
        if data in (None, ""):
            return {}
        if not isinstance(data, dict):
            raise forms.ValidationError('Write an object, such as {"order": "12345"}.')
        return data

    def clean(self) -> dict[str, Any]:
        """Return the fields as they are stored, if they are a type together."""
        given: dict[str, Any] = self.cleaned_data
        if self.errors:
            return given
        request = TypeRequest(**{name: given[name] for name in TypeRequest.__struct_fields__})
        try:
            return given | definitions.validate_type(self.instance.slug or given["slug"], request)
        except InvalidRequestError as refused:
            for problem in refused.problems:
                self.add_error(*_form_error(problem, msgspec.to_builtins(request)))
        return given


def _form_error(problem: FieldProblem, given: Mapping[str, Any]) -> tuple[str, str]:
    """Return the field a problem belongs to, and what to say about it there."""
    field, _, rest = problem.pointer.removeprefix("/").partition("/")
    value: Any = given.get(field)
    for token in filter(None, rest.split("/")):
        value = _child_value(value, token)
    if rest and isinstance(value, str):
        return field, f"{problem.detail.rstrip('.')}: {value}."
    return field or "slug", f"At {rest}: {problem.detail}" if rest else problem.detail


def _child_value(value: Any, token: str) -> Any:
    if isinstance(value, list) and token.isdecimal():
        return value[int(token)]
    return value.get(token) if isinstance(value, dict) else None
