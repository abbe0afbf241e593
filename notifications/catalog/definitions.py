"""Validates type definitions, for the API and the console."""

import json
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain import type_rules
from domain.channels import INBOX, Channel
from domain.plans import Plan
from domain.retry import DEFAULT_MAX_RETRIES, MAX_RETRIES, UnknownPolicy
from domain.states import Category, ManagedBy, Priority, SchemaMode
from domain.time import MAX_REMINDER, MAX_TTL, MIN_REMINDER
from providers.registry import every_channel
from rooms import registry as rooms

from .. import validation
from ..models.catalog import NAME_LENGTH, SLUG_LENGTH, URL_LENGTH, VARIABLE_LENGTH
from ..models.notification import ACTION_LENGTH
from ..validation import (
    ALIASES,
    ChannelNames,
    FieldProblem,
    PriorityName,
    ProblemCollector,
    enum_of,
    is_all,
    parse_channels,
    pointer_token,
)
from . import designs, plans, schemas, types
from .approval import ApprovalRequest, ApprovedBy, is_loosened
from .designs import Design
from .digests import DIGEST_VARIABLE, DigestRequest, parse_digest
from .plans import PlanRequest, parse_plan
from .texts import TextRulesRequest
from .types import ActionStyle

DESCRIPTION_LENGTH = 2_000
MAX_ACTIONS = 3
Link = Annotated[str, Meta(min_length=1, max_length=2048)]
MAX_TTL_SECONDS = int(MAX_TTL.total_seconds())
MIN_REMINDER_SECONDS = int(MIN_REMINDER.total_seconds())
MAX_REMINDER_SECONDS = int(MAX_REMINDER.total_seconds())
MAX_SENSITIVE_VARIABLES = 100
MAX_WHATSAPP_TEMPLATES = 100
MAX_CONFIRMED = 1_000  # Places in which a schema refuses more; a response names 100 at a time
MAX_WHATSAPP_BODY = 1_024  # Meta's limit
TRANSIENT = frozenset({"confirm_not_sensitive", "confirm_breaking"})
"""Fields of a request that say what it may do, and aren't stored."""
OF_MANAGEMENT = frozenset({"managed_by", "repository"})
"""Fields that the console shows and never changes."""
OWN_TEXTS = frozenset({"subject", "body"})
"""Variables of a WhatsApp template that are a request's own texts."""
MAX_VARIABLES = 500  # Variables in the example data, at all levels together
MAX_DEPTH = 20
RESERVED_VARIABLE = "recipient"  # The name under which templates access the recipient
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
_PLACEHOLDER = re.compile(r"\{\{\s*(\w+)\s*\}\}")
_META_NAME = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_META_LANGUAGE = re.compile(r"[a-z]{2,3}(?:_[A-Za-z0-9]{2,4})?", re.ASCII)
_PROTECTED: Mapping[str, Any] = dict.fromkeys(
    (
        "category",
        "channels",
        "room",
        "plan",
        "fallback_channel",
        "fallback_after_seconds",
        "ttl_seconds",
        "notify_before_seconds",
        "approved_templates",
        "schema",
        "console_send",
        "brand",
        "layout",
    )
) | {"schema_mode": SchemaMode.REJECT, "sms": msgspec.to_builtins(TextRulesRequest())}
"""Fields that only ``types:admin`` changes of a critical or sensitive type, with what is none.

They decide whether, where, and how late a message arrives, what a request may contain, and whether
staff may send one.
"""


class WhatsAppTemplateRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A WhatsApp template that Meta has approved, for one language."""

    locale: Annotated[
        str, Meta(max_length=35, description="Recipients' language: ``pt``, ``pt-BR``.")
    ]
    name: Annotated[str, Meta(max_length=512, description="Template name at Meta.")]
    language: Annotated[str, Meta(max_length=8, description="Meta's language code: ``pt_PT``.")]
    parameters: Annotated[
        list[str],
        Meta(max_length=100, description="Variables, in the order of the template's parameters."),
    ] = []
    body: (
        Annotated[
            str,
            Meta(
                min_length=1,
                max_length=MAX_WHATSAPP_BODY,
                description="Wording to submit to Meta, with `{{1}}` for the first parameter; "
                "null: the template is submitted elsewhere.",
                examples=["Parcel {{1}} is lost. We are sorry."],
            ),
        ]
        | None
    ) = None
    button: (
        Annotated[
            str,
            Meta(
                max_length=VARIABLE_LENGTH,
                description="For an authentication template, whose wording is Meta's: the variable "
                "with the code, which its button copies.",
                examples=["code"],
            ),
        ]
        | None
    ) = None


class ActionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A button in the inbox, which a recipient can choose once."""

    id: Annotated[str, Meta(min_length=1, max_length=ACTION_LENGTH, examples=["approve"])]
    label: Annotated[str, Meta(min_length=1, max_length=40, examples=["Approve"])]
    style: Annotated[str, enum_of(ActionStyle)] = ActionStyle.DEFAULT.value
    link: Annotated[Link | None, Meta(description="Followed once it is chosen; null: none.")] = None


class TypeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete type definition. Omitted fields get their defaults, not their previous values."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH, examples=["Payment confirmed"])]
    description: Annotated[str, Meta(max_length=DESCRIPTION_LENGTH)] = ""
    category: Annotated[str, enum_of(Category), Meta(examples=[Category.TRANSACTIONAL.value])]
    priority: PriorityName = Priority.NORMAL.value
    max_priority: (
        Annotated[
            PriorityName,
            Meta(
                description="Highest priority of a request; null: high for marketing, "
                "otherwise critical."
            ),
        ]
        | None
    ) = None
    channels: Annotated[
        ChannelNames,
        Meta(
            description="Used if neither the request nor the recipient selects any; all: every "
            "channel.",
            examples=[["email"]],
        ),
    ]
    room: Annotated[
        Annotated[str, Meta(max_length=64)] | None,
        Meta(description="ID of the room of messages that name none, for the channel `room`."),
    ] = None
    max_retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = DEFAULT_MAX_RETRIES
    ttl_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_TTL_SECONDS,
                description="Time to live after the send time; null: no expiry.",
            ),
        ]
        | None
    ) = None
    notify_before_seconds: (
        Annotated[
            int,
            Meta(
                ge=MIN_REMINDER_SECONDS,
                le=MAX_REMINDER_SECONDS,
                description="Reminder lead time, unless the recipient prefers another; "
                "null: not a reminder.",
            ),
        ]
        | None
    ) = None
    on_unknown: Annotated[
        str, enum_of(UnknownPolicy), Meta(description="Policy for unknown outcomes.")
    ] = UnknownPolicy.RETRY.value
    fallback_channel: Annotated[
        Annotated[str, enum_of(Channel)] | None,
        Meta(
            description="Channel used only if no other channel delivers in time: a plan of two "
            "steps; null: none."
        ),
    ] = None
    fallback_after_seconds: Annotated[
        int, Meta(ge=1, le=MAX_TTL_SECONDS, description="Time for the other channels to deliver.")
    ] = plans.DEFAULT_FALLBACK_AFTER_SECONDS
    plan: Annotated[
        PlanRequest | None,
        Meta(
            description="Channels in steps; those it doesn't name are in the first. "
            "null: all at once, or as `fallback_channel` says."
        ),
    ] = None
    digest: Annotated[
        DigestRequest | None,
        Meta(description="Messages to one recipient are sent as one; null: each by itself."),
    ] = None
    sms: Annotated[TextRulesRequest, Meta(description="What an SMS of the type may cost.")] = (
        TextRulesRequest()
    )
    actions: Annotated[
        list[ActionRequest],
        Meta(
            max_length=MAX_ACTIONS,
            description="Buttons in the inbox. A choice is sent as the callback event "
            "notification.acted.",
        ),
    ] = []
    approved_templates: Annotated[
        list[WhatsAppTemplateRequest],
        Meta(
            max_length=MAX_WHATSAPP_TEMPLATES,
            description="WhatsApp templates for use outside the 24-hour service window.",
        ),
    ] = []
    example_data: Annotated[
        dict[str, Any],
        Meta(
            description="Every variable that templates may use, with an example.",
            examples=[{"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}],
        ),
    ] = {}
    schema: Annotated[
        dict[str, Any] | None,
        Meta(
            description="JSON Schema of a request's `data`, of the subset in "
            "docs/guides/templates.md; null: none.",
            examples=[
                {
                    "type": "object",
                    "properties": {"order_id": {"type": "integer"}, "amount": {"type": "string"}},
                    "required": ["order_id"],
                }
            ],
        ),
    ] = None
    schema_mode: Annotated[
        str,
        enum_of(SchemaMode),
        Meta(
            description="For a request whose data differs from the schema: `reject` it, accept it "
            "with `warn`ings, or don't check (`off`)."
        ),
    ] = SchemaMode.REJECT.value
    sensitive_variables: Annotated[
        list[Annotated[str, Meta(max_length=VARIABLE_LENGTH)]],
        Meta(
            max_length=MAX_SENSITIVE_VARIABLES,
            description="Variables with secrets, besides those that the schema marks with "
            "`x-sensitive`.",
        ),
    ] = []
    confirm_not_sensitive: Annotated[
        list[Annotated[str, Meta(max_length=VARIABLE_LENGTH)]],
        Meta(
            max_length=MAX_SENSITIVE_VARIABLES,
            description="Variables that this request removes from `sensitive_variables`: their "
            "values become readable. Needs the scope types:admin.",
        ),
    ] = []
    confirm_breaking: Annotated[
        list[Annotated[str, Meta(max_length=schemas.MAX_TEXT)]],
        Meta(
            max_length=MAX_CONFIRMED,
            description="Places in which this request's schema refuses what the stored one takes: "
            "the pointers of the response that asks for it.",
        ),
    ] = []
    brand: Annotated[
        Annotated[str, Meta(max_length=SLUG_LENGTH)] | None,
        Meta(description="The brand of messages that name none; null: none."),
    ] = None
    layout: Annotated[
        Annotated[str, Meta(max_length=SLUG_LENGTH)] | None,
        Meta(description="The frame of its emails; null: the brand's, or the built-in one."),
    ] = None
    console_send: Annotated[
        bool,
        Meta(
            description="True: staff may send one message of the type from the console. Not for a "
            "critical type."
        ),
    ] = False
    approval: Annotated[
        ApprovalRequest | None,
        Meta(
            description="Which broadcasts of the type another person approves; null: only those "
            "that the setting for marketing names. Loosening it needs the scope types:admin."
        ),
    ] = None
    managed_by: Annotated[
        str,
        enum_of(ManagedBy),
        Meta(
            description="Where it is changed. With `code`, staff change it only in an emergency, "
            "with a reason."
        ),
    ] = ManagedBy.CONSOLE.value
    repository: Annotated[
        Annotated[str, Meta(min_length=1, max_length=URL_LENGTH)] | None,
        Meta(
            description="The https URL of the files, such as https://git.example.com/acme/notify, "
            "which the console shows. Required of a type that is managed by `code`."
        ),
    ] = None
    is_active: bool = True


def removed_secrets(before: Mapping[str, Any] | None, request: TypeRequest) -> list[str]:
    """Return the sensitive variables of a stored type that a request makes readable."""
    stored = before["sensitive_variables"] if before is not None else ()
    secrets = secrets_of(request)
    return [name for name in stored if name not in secrets]


def secrets_of(request: TypeRequest) -> list[str]:
    """Return the sensitive variables of a request: those that it lists or its schema marks."""
    marked = schemas.marked_variables(request.schema or {})
    return list(dict.fromkeys([*request.sensitive_variables, *marked]))


def unconfirmed_breaks(
    before: Mapping[str, Any] | None, request: TypeRequest, *, confirmed: Collection[str]
) -> list[FieldProblem]:
    """Return where a schema refuses what the stored one takes, but for confirmed pointers."""
    if before is None:
        return []
    text = before.get("schema")
    found = type_rules.find_breaking(
        {
            "schema": json.loads(text) if text else None,
            "schema_mode": schemas.schema_mode(before.get("schema_mode")),
        },
        {"schema": request.schema, "schema_mode": request.schema_mode},
        confirmed={place.removeprefix("/schema") for place in confirmed},
    )
    return [
        FieldProblem(each.pointer.removeprefix("/definition"), "confirmation_required", each.detail)
        for each in found
    ]


def weakened_fields(before: Mapping[str, Any] | None, fields: Mapping[str, Any]) -> list[str]:
    """Return the fields that make a stored type less safe.

    Of any type, broadcasts need no approval any more. Of a critical or sensitive one, a sensitive
    variable becomes readable; or a critical type is switched off, or loses its
    priority; or the routing changes: a login code that goes to the inbox alone, or expires before
    it is sent, is as good as switched off, and whoever has an inbox token reads it there. So does a
    disabled type, which whoever may edit types enables again.
    """
    if before is None:
        return []
    is_critical = before["priority"] == Priority.CRITICAL
    secrets = set(before["sensitive_variables"])
    weakened = {
        "sensitive_variables": not secrets.issubset(fields["sensitive_variables"]),
        "is_active": is_critical and before["is_active"] and not fields["is_active"],
        "priority": is_critical and fields["priority"] != Priority.CRITICAL,
        "approval": is_loosened(before, fields),
    }
    for name, none in _PROTECTED.items() if is_critical or secrets else ():
        weakened[name] = (fields.get(name) or none) != (before.get(name) or none)
    return [name for name, is_weakened in weakened.items() if is_weakened]


def validate_type(
    slug: str,
    request: TypeRequest,
    *,
    before: Mapping[str, Any] | None = None,
    design: Design | None = None,
) -> dict[str, Any]:
    """Validate a type's definition and return the fields to store.

    Raises InvalidRequestError with every problem.

    ``before`` is the stored type, None for a new one. ``design`` has its brand and its layout, and
    None means the present design.
    """
    problems = ProblemCollector()
    _check_scalar_fields(slug, request, problems)
    _check_look(request, design, problems)
    _check_management(request, problems)
    channels = (
        [channel for channel in every_channel() if channel.is_personal or request.room]
        if is_all(request.channels)
        else parse_channels(request.channels, problems=problems, takes_all=True)
    )
    fallback = _check_fallback(request, channels, problems)
    plan = _check_plan(request, channels, problems)
    _check_digest(request, channels, problems)
    _check_actions(request, problems)
    _check_variables(request, problems)
    _check_confirmations(request, problems)
    _check_schema(request, problems)
    _check_whatsapp_templates(request, problems)
    removed = removed_secrets(before, request)
    if unconfirmed := [name for name in removed if name not in request.confirm_not_sensitive]:
        reason = f"Makes values readable. To confirm, name {', '.join(unconfirmed)} here."
        problems.add("/confirm_not_sensitive", "confirmation_required", reason)
    problems.raise_if_any()
    fields = msgspec.to_builtins(request)
    return {
        **{name: value for name, value in fields.items() if name not in TRANSIENT},
        "channels": [channel.value for channel in channels],
        "fallback_channel": fallback.value if fallback else None,
        "plan": plans.stored_plan(plan) if plan else None,
        "schema": "" if request.schema is None else schemas.dump(request.schema),
        "sensitive_variables": secrets_of(request),
        "approved_templates": [
            {name: value for name, value in template.items() if value is not None}
            for template in msgspec.to_builtins(request.approved_templates)
        ],
    }


def _check_scalar_fields(slug: str, request: TypeRequest, problems: ProblemCollector) -> None:
    if not types.SLUG.fullmatch(slug):
        expected = "lower-case letters, digits and underscores, starting with a letter"
        problems.add("", "invalid_slug", f"Must be 1 to 64 {expected}.")
    if not request.name.strip():
        problems.add("/name", "blank", "Must not be blank.")
    problems.check_one_line(request.name, "/name")
    if request.room is not None and request.room not in rooms.find_rooms():
        problems.add("/room", "unknown_room", "Unknown room.")
    vocabularies = {
        "category": Category,
        "priority": Priority,
        "on_unknown": UnknownPolicy,
        "schema_mode": SchemaMode,
        "managed_by": ManagedBy,
    }
    if request.approval is not None and request.approval.by not in list(ApprovedBy):
        expected = f"Expected one of {', '.join(ApprovedBy)}."
        problems.add("/approval/by", "unknown_value", expected)
    if request.max_priority is not None:
        vocabularies["max_priority"] = Priority
    for field, vocabulary in vocabularies.items():
        if getattr(request, field) not in [member.value for member in vocabulary]:
            expected = f"Expected one of {', '.join(vocabulary)}."
            problems.add(f"/{field}", "unknown_value", expected)
    if not problems.problems and _is_below(request.max_priority, request.priority):
        problems.add("/max_priority", "below_priority", "Must not be lower than `priority`.")
    if request.console_send and request.priority == Priority.CRITICAL:
        reason = "Must be false for a critical type: only clients send these."
        problems.add("/console_send", "critical", reason)


def _check_look(request: TypeRequest, design: Design | None, problems: ProblemCollector) -> None:
    """Add a problem for a brand or a layout that doesn't exist."""
    if request.brand is None and request.layout is None:
        return
    used = design or designs.current()
    if request.brand is not None and request.brand not in used.brands:
        problems.add("/brand", "unknown_brand", "Unknown brand.")
    if request.layout is not None and request.layout not in used.layouts:
        problems.add("/layout", "unknown_layout", "Unknown layout.")


def _check_management(request: TypeRequest, problems: ProblemCollector) -> None:
    """Add a problem for a link that the console can't show, or that it would lack."""
    pointer, link = "/repository", request.repository
    if (link is None) == (request.managed_by == ManagedBy.CODE):
        reason = (
            "Required of a type that is managed by code."
            if link is None
            else "Only of a type that is managed by code."
        )
        problems.add(pointer, "conflict", reason)
    if link is not None:
        try:
            validation.check_page_url(link)
        except validation.InvalidLinkError as error:
            problems.add(pointer, "invalid_link", str(error))


def _is_below(limit: str | None, priority: str) -> bool:
    if limit is None:
        return False
    return types.URGENCY.index(Priority(limit)) > types.URGENCY.index(Priority(priority))


def _check_fallback(
    request: TypeRequest, channels: Sequence[Channel], problems: ProblemCollector
) -> Channel | None:
    """Return the fallback channel. Add a problem if it could never be used."""
    name = request.fallback_channel
    if name is None:
        return None
    pointer = "/fallback_channel"
    if name not in ALIASES and name not in {channel.value for channel in Channel}:
        problems.add(pointer, "unknown_channel", f"Expected one of {', '.join(Channel)}, or null.")
        return None
    fallback = ALIASES.get(name) or Channel(name)
    if channels and fallback not in channels:
        problems.add(pointer, "not_a_channel", "Must be one of the type's channels.")
    elif channels and not set(channels) - {fallback, INBOX}:
        reason = "No other channel that can fail: in-app always delivers."
        problems.add(pointer, "no_other_channel", reason)
    return fallback


def _check_plan(
    request: TypeRequest, channels: Sequence[Channel], problems: ProblemCollector
) -> Plan | None:
    """Return the plan. Add a problem if a step could never be sent."""
    if request.plan is None:
        return None
    if request.fallback_channel is not None:
        reason = "Use either `plan` or `fallback_channel`."
        problems.add("/plan", "conflict", reason)
    plan = parse_plan(request.plan, problems, allowed=channels or tuple(Channel))
    last = request.plan.steps[-1].after
    if request.ttl_seconds is not None and last >= request.ttl_seconds:
        reason = "Must be less than `ttl_seconds`."
        problems.add(f"/plan/steps/{len(request.plan.steps) - 1}/after", "out_of_range", reason)
    return plan


def _check_digest(
    request: TypeRequest, channels: Sequence[Channel], problems: ProblemCollector
) -> None:
    if request.digest is None:
        return
    parse_digest(
        request.digest,
        problems,
        allowed=channels,
        priority=request.priority,
        sensitive_variables=secrets_of(request),
    )
    key = request.digest.key
    if key is not None and not types.VARIABLE.fullmatch(key):
        problems.add("/digest/key", "invalid", "Not a valid variable name.")


def _check_actions(request: TypeRequest, problems: ProblemCollector) -> None:
    ids: set[str] = set()
    for index, action in enumerate(request.actions):
        pointer = f"/actions/{index}"
        if not types.SLUG.fullmatch(action.id):
            expected = "lower-case letters, digits and underscores, starting with a letter"
            problems.add(f"{pointer}/id", "invalid_slug", f"Must be {expected}.")
        elif action.id in ids:
            problems.add(f"{pointer}/id", "duplicate", "Another action has this ID.")
        ids.add(action.id)
        if not action.label.strip():
            problems.add(f"{pointer}/label", "blank", "Must not be blank.")
        problems.check_one_line(action.label, f"{pointer}/label")
        if action.style not in [style.value for style in ActionStyle]:
            expected = f"Expected one of {', '.join(ActionStyle)}."
            problems.add(f"{pointer}/style", "unknown_value", expected)
        if action.link is not None:
            try:
                validation.check_deep_link(action.link)
            except validation.InvalidLinkError as error:
                problems.add(f"{pointer}/link", "invalid_link", str(error))


def _check_variables(request: TypeRequest, problems: ProblemCollector) -> None:
    pointer, data = "/example_data", request.example_data
    if exceeds_depth(data, MAX_DEPTH):
        problems.add(pointer, "too_deep", f"Nesting exceeds {MAX_DEPTH} levels.")
    elif validation.check_storable(data, pointer, problems, in_data=True) > MAX_VARIABLES:
        problems.add(pointer, "too_many_properties", f"More than {MAX_VARIABLES} variables.")
    if RESERVED_VARIABLE in data:
        problems.add(f"{pointer}/{RESERVED_VARIABLE}", "reserved", "Reserved for the recipient.")
    if request.digest is not None and DIGEST_VARIABLE in data:
        problems.add(f"{pointer}/{DIGEST_VARIABLE}", "reserved", "Reserved for the digest.")
    if len(secrets_of(request)) > MAX_SENSITIVE_VARIABLES:
        reason = f"At most {MAX_SENSITIVE_VARIABLES} variables, with those of the schema."
        problems.add("/sensitive_variables", "too_many", reason)
    for index, name in enumerate(request.sensitive_variables):
        if len(name) > VARIABLE_LENGTH or not types.VARIABLE.fullmatch(name):
            problems.add(f"/sensitive_variables/{index}", "invalid", "Not a valid variable name.")


def _check_confirmations(request: TypeRequest, problems: ProblemCollector) -> None:
    for index, name in enumerate(request.confirm_not_sensitive):
        if not types.VARIABLE.fullmatch(name):
            problems.add(f"/confirm_not_sensitive/{index}", "invalid", "Not a valid variable name.")
    for index, place in enumerate(request.confirm_breaking):
        problems.check_one_line(place, f"/confirm_breaking/{index}")


def _check_schema(request: TypeRequest, problems: ProblemCollector) -> None:
    """Add a problem if the schema isn't one, or the example data differs from it."""
    if request.schema is None:
        return
    own = ProblemCollector()
    if exceeds_depth(request.schema, schemas.MAX_DEPTH):
        own.add("/schema", "too_deep", f"Nesting exceeds {schemas.MAX_DEPTH} levels.")
    else:
        validation.check_storable(request.schema, "/schema", own, in_data=False)
    if not own.problems:
        schemas.check_schema(request.schema, own, pointer="/schema")
    if not own.problems:
        _check_marks(request.schema, own)
    found = own.problems or schemas.find_mismatches(
        schemas.dump(request.schema), request.example_data, pointer="/example_data"
    )
    for problem in found:
        problems.add(problem.pointer, problem.code, problem.detail)


def _check_marks(schema: Mapping[str, Any], problems: ProblemCollector) -> None:
    """Add a problem for what a schema marks as sensitive, and no list of variables could have."""
    for name in schemas.marked_variables(schema):
        if len(name) > VARIABLE_LENGTH or not types.VARIABLE.fullmatch(name):
            pointer = f"/schema/properties/{pointer_token(name)}"
            problems.add(pointer, "invalid", "Not a valid variable name, and sensitive.")
    for place in schemas.unnamed_marks(schema):
        reason = "Only properties with a name can be sensitive."
        problems.add(f"/schema{place}", "invalid", reason)


def _check_whatsapp_templates(request: TypeRequest, problems: ProblemCollector) -> None:
    seen: set[str] = set()
    for index, template in enumerate(request.approved_templates):
        pointer = f"/approved_templates/{index}"
        if not _LOCALE.fullmatch(template.locale):
            problems.add(f"{pointer}/locale", "invalid_locale", "Expected one such as pt or pt-BR.")
        elif template.locale.lower() in seen:
            problems.add(f"{pointer}/locale", "duplicate_locale", "Duplicate language.")
        seen.add(template.locale.lower())
        if not _META_NAME.fullmatch(template.name):
            reason = "Must be lower-case letters, digits and underscores."
            problems.add(f"{pointer}/name", "invalid_name", reason)
        if not _META_LANGUAGE.fullmatch(template.language):
            reason = "Expected a Meta language code such as en or pt_PT."
            problems.add(f"{pointer}/language", "invalid_language", reason)
        for number, name in enumerate(template.parameters):
            if name not in request.example_data and name not in OWN_TEXTS:
                reason = "Not in the example data."
                problems.add(f"{pointer}/parameters/{number}", "unknown_variable", reason)
        _check_fixed_text(template, pointer, problems)


def _check_fixed_text(
    template: WhatsAppTemplateRequest, pointer: str, problems: ProblemCollector
) -> None:
    if template.button is not None:
        if template.parameters != [template.button]:
            reason = "Must be the template's only parameter."
            problems.add(f"{pointer}/button", "invalid_button", reason)
        if template.body is not None:
            reason = "Must be null: the wording of an authentication template is Meta's."
            problems.add(f"{pointer}/body", "fixed_text", reason)
    if template.body is None:
        return
    text, numbers = template.body.strip(), range(1, len(template.parameters) + 1)
    found = list(dict.fromkeys(_PLACEHOLDER.findall(text)))
    if found != [str(number) for number in numbers]:
        reason = "Must have the placeholders {{1}}, {{2}}, … in order, one for each parameter."
        problems.add(f"{pointer}/body", "wrong_placeholders", reason)
    elif text.startswith("{{") or text.endswith("}}"):
        reason = "Meta rejects a text that begins or ends with a placeholder."
        problems.add(f"{pointer}/body", "placeholder_at_the_end", reason)


def exceeds_depth(value: Any, max_depth: int) -> bool:
    """Return whether a value is nested deeper than ``max_depth``, without recursion."""
    layer: list[Any] = [value]
    for _ in range(max_depth + 1):
        inner = [item for item in layer if isinstance(item, dict | list)]
        if not inner:
            return False
        layer = [x for item in inner for x in (item.values() if isinstance(item, dict) else item)]
    return True
