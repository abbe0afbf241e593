"""What a type may be: its fields and their checks, the same by the API and in the console."""

import re
from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.retry import DEFAULT_MAX_RETRIES, MAX_RETRIES, UnknownPolicy
from domain.states import Category, Channel, Priority
from domain.time import MAX_REMINDER, MAX_TTL, MIN_REMINDER

from .. import validation
from ..models.catalog import NAME_LENGTH, VARIABLE_LENGTH
from ..validation import ALIASES, ALL, ProblemCollector, parse_channels
from . import types

DESCRIPTION_LENGTH = 2_000
MAX_TTL_SECONDS = int(MAX_TTL.total_seconds())
MIN_REMINDER_SECONDS = int(MIN_REMINDER.total_seconds())
MAX_REMINDER_SECONDS = int(MAX_REMINDER.total_seconds())
MAX_SENSITIVE_VARIABLES = 100
MAX_WHATSAPP_TEMPLATES = 100
MAX_VARIABLES = 500
"""Of the example data, at all levels together."""
MAX_DEPTH = 20
RESERVED_VARIABLE = "recipient"
"""What templates call the person."""
_LOCALE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*", re.ASCII)
_META_NAME = re.compile(r"[a-z0-9_]{1,512}", re.ASCII)
_META_LANGUAGE = re.compile(r"[a-z]{2,3}(?:_[A-Za-z0-9]{2,4})?", re.ASCII)


class WhatsAppTemplateRequest(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """A wording that WhatsApp has approved, for people of one language."""

    locale: Annotated[str, Meta(max_length=35, description="Whom it is for: ``pt``, ``pt-BR``.")]
    name: Annotated[str, Meta(max_length=512, description="As it is called at Meta.")]
    language: Annotated[str, Meta(max_length=8, description="As Meta writes it: ``pt_PT``.")]
    parameters: Annotated[
        list[str],
        Meta(max_length=100, description="Variables, in the order of their places in its text."),
    ] = []


class TypeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A type, as it is to be. What is left out gets its default, not what it was before."""

    name: Annotated[str, Meta(min_length=1, max_length=NAME_LENGTH, examples=["Payment confirmed"])]
    description: Annotated[str, Meta(max_length=DESCRIPTION_LENGTH)] = ""
    category: Annotated[
        str, Meta(description=", ".join(Category), examples=[Category.TRANSACTIONAL.value])
    ]
    priority: Annotated[str, Meta(description=", ".join(Priority))] = Priority.NORMAL.value
    channels: Annotated[
        list[str],
        Meta(
            description="Used when neither the request nor the recipient names any.",
            examples=[["email"]],
        ),
    ]
    max_retries: Annotated[int, Meta(ge=0, le=MAX_RETRIES)] = DEFAULT_MAX_RETRIES
    ttl_seconds: (
        Annotated[
            int,
            Meta(
                ge=1,
                le=MAX_TTL_SECONDS,
                description="How long after its send time it is worth sending; null: for ever.",
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
                description="Of a reminder: how long before the event it is sent to people who "
                "want nothing else; null: it is no reminder.",
            ),
        ]
        | None
    ) = None
    on_unknown: Annotated[
        str, Meta(description=f"When nobody knows whether it went: {', '.join(UnknownPolicy)}.")
    ] = UnknownPolicy.RETRY.value
    fallback_channel: Annotated[
        str | None,
        Meta(
            description="One of the channels, used only if the first other one has not delivered "
            "in time; null: all channels at once."
        ),
    ] = None
    fallback_after_seconds: Annotated[
        int, Meta(ge=1, le=MAX_TTL_SECONDS, description="How long the other channel has for that.")
    ] = types.DEFAULT_FALLBACK_AFTER_SECONDS
    approved_templates: Annotated[
        list[WhatsAppTemplateRequest],
        Meta(
            max_length=MAX_WHATSAPP_TEMPLATES,
            description="What WhatsApp has approved for people who have not written for a day.",
        ),
    ] = []
    example_data: Annotated[
        dict[str, Any],
        Meta(
            description="Every variable that templates may use, with an example.",
            examples=[{"order_id": 1001, "video_title": "Sunrise", "amount": "49.90"}],
        ),
    ] = {}
    sensitive_variables: Annotated[
        list[Annotated[str, Meta(max_length=VARIABLE_LENGTH)]],
        Meta(max_length=MAX_SENSITIVE_VARIABLES),
    ] = []
    is_active: bool = True


def validate_type(slug: str, request: TypeRequest) -> dict[str, Any]:
    """Return a type's fields as they are stored; raises InvalidRequestError with all its problems."""
    problems = ProblemCollector()
    _check_scalar_fields(slug, request, problems)
    is_all = request.channels == [ALL]
    channels = list(Channel) if is_all else parse_channels(request.channels, problems=problems)
    fallback = _check_fallback(request, channels, problems)
    _check_variables(request, problems)
    _check_whatsapp_templates(request, problems)
    problems.raise_if_any()
    return {
        **msgspec.to_builtins(request),
        "channels": [channel.value for channel in channels],
        "fallback_channel": fallback.value if fallback else None,
        "sensitive_variables": list(dict.fromkeys(request.sensitive_variables)),
    }


def _check_scalar_fields(slug: str, request: TypeRequest, problems: ProblemCollector) -> None:
    if not types.SLUG.fullmatch(slug):
        problems.add(
            "",
            "invalid_slug",
            "Write lower-case letters, digits and underscores, beginning with a letter: at most "
            "64 in all.",
        )
    if not request.name.strip():
        problems.add("/name", "blank", "A type has a name for people.")
    for field, vocabulary in (
        ("category", Category),
        ("priority", Priority),
        ("on_unknown", UnknownPolicy),
    ):
        if getattr(request, field) not in {member.value for member in vocabulary}:
            expected = f"Expected one of {', '.join(vocabulary)}."
            problems.add(f"/{field}", "unknown_value", expected)


def _check_fallback(
    request: TypeRequest, channels: Sequence[Channel], problems: ProblemCollector
) -> Channel | None:
    """Return the channel that stands in for another; notes one that never would."""
    name = request.fallback_channel
    if name is None:
        return None
    pointer = "/fallback_channel"
    if name not in ALIASES and name not in {channel.value for channel in Channel}:
        problems.add(pointer, "unknown_channel", f"Expected one of {', '.join(Channel)}, or null.")
        return None
    fallback = ALIASES.get(name) or Channel(name)
    if channels and fallback not in channels:
        problems.add(pointer, "not_a_channel", "It must be one of the type's channels.")
    elif channels and not set(channels) - {fallback, Channel.IN_APP}:
        reason = "There is no other channel for it to stand in for: in-app always delivers."
        problems.add(pointer, "no_other_channel", reason)
    return fallback


def _check_variables(request: TypeRequest, problems: ProblemCollector) -> None:
    pointer, data = "/example_data", request.example_data
    if _exceeds_depth(data, MAX_DEPTH):
        problems.add(pointer, "too_deep", f"It is nested deeper than {MAX_DEPTH} levels.")
    elif validation.check_storable(data, pointer, problems, in_data=True) > MAX_VARIABLES:
        problems.add(pointer, "too_many_properties", f"It has over {MAX_VARIABLES} variables.")
    if RESERVED_VARIABLE in data:
        problems.add(f"{pointer}/{RESERVED_VARIABLE}", "reserved", "Templates call the person so.")
    if len(request.sensitive_variables) > MAX_SENSITIVE_VARIABLES:
        problems.add(
            "/sensitive_variables", "too_many", f"At most {MAX_SENSITIVE_VARIABLES} variables."
        )
    for index, name in enumerate(request.sensitive_variables):
        if len(name) > VARIABLE_LENGTH or not types.VARIABLE.fullmatch(name):
            problems.add(f"/sensitive_variables/{index}", "invalid", "Not a variable's name.")


def _check_whatsapp_templates(request: TypeRequest, problems: ProblemCollector) -> None:
    seen: set[str] = set()
    for index, template in enumerate(request.approved_templates):
        pointer = f"/approved_templates/{index}"
        if not _LOCALE.fullmatch(template.locale):
            problems.add(f"{pointer}/locale", "invalid_locale", "Expected one such as pt or pt-BR.")
        elif template.locale.lower() in seen:
            problems.add(f"{pointer}/locale", "duplicate_locale", "A language has one wording.")
        seen.add(template.locale.lower())
        if not _META_NAME.fullmatch(template.name):
            reason = "Meta's names have lower-case letters, digits and underscores."
            problems.add(f"{pointer}/name", "invalid_name", reason)
        if not _META_LANGUAGE.fullmatch(template.language):
            reason = "Expected a language as Meta writes it, such as en or pt_PT."
            problems.add(f"{pointer}/language", "invalid_language", reason)
        for number, name in enumerate(template.parameters):
            if name not in request.example_data:
                reason = "The example data has no such variable."
                problems.add(f"{pointer}/parameters/{number}", "unknown_variable", reason)


def _exceeds_depth(value: Any, max_depth: int) -> bool:
    """Return whether something is nested deeper than this; it may be as deep as it likes."""
    layer: list[Any] = [value]
    for _ in range(max_depth + 1):
        inner = [one for one in layer if isinstance(one, dict | list)]
        if not inner:
            return False
        layer = [x for one in inner for x in (one.values() if isinstance(one, dict) else one)]
    return True
