"""What differs between providers of email with an API: one row and one table of answers for each.

django-anymail builds their requests, and reads their acceptances and webhooks. Transport, classes
of answers, and signatures are ours. See docs/decisions/0073-email-services.md.
"""

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import KW_ONLY, dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from domain.errors import FailureCode

from .bounces import PERMANENT_FAILURE, effect_of
from .contract import AddressEffect, ReceiptKind, SendRequest, WebhookRequest
from .http import as_object
from .response_rules import ResponseKind, ResponseRule

CLIENT_ERRORS = range(400, 500)
ABOUT_SETTINGS = (*range(300, 400), 401, 402, 403, 404, 405, 407, 415)
"""Statuses that no mail causes."""
Event = Mapping[str, Any]
"""One event of a webhook, in the provider's own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookSecrets:
    """What shows that a webhook is the provider's. Without one that it needs, all are rejected."""

    password: str = field(default="", repr=False)
    """Of the URL: the provider sends it by Basic authentication."""
    signing_key: str = field(default="", repr=False)


@dataclass(frozen=True, slots=True)
class EventRule:
    """What one kind of event means for the delivery and for the address."""

    kind: ReceiptKind | None
    """None: it is ignored."""
    _: KW_ONLY
    effect: AddressEffect | None = None
    """None: that of ``kind``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """What an answer other than an acceptance says."""

    code: str | None = None
    """The provider's name or number of the error."""
    text: str = ""
    """It may quote an address."""


def _nothing(_request: SendRequest) -> Mapping[str, str]:
    return {}


def _as_it_is(_fields: dict[str, Any], _request: SendRequest) -> None:
    """Change nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmailKind:
    """One provider of email."""

    label: str
    backend: str
    """The class of anymail that builds requests and reads acceptances."""
    webhook: str
    """The class of anymail that reads webhooks."""
    rules: Sequence[ResponseRule]
    """By status, and by the code or text of the refusal (``field``)."""
    read_refusal: Callable[[Mapping[str, Any]], Refusal]
    """Reads the JSON object of an answer."""
    plain_refusals: AbstractSet[str] = frozenset()
    """Whole bodies that aren't JSON, and the provider's own nevertheless."""
    events: Mapping[str, EventRule]
    """By name. A name that isn't here has the rule of its first word, as ``Bounce`` for ``Bounce
    Unknown``."""
    event_name: Callable[[Event], str]
    refine: Callable[[EventRule, Event], EventRule] = lambda rule, _event: rule
    """Reads more of an event, such as the receiving server's reply."""
    has_event_ids: bool = False
    """Whether each event has an ID. Otherwise an equal event counts once."""
    list_field: str = ""
    """The field of a webhook that lists its events, if it is an object."""
    verify: Callable[[WebhookRequest, WebhookSecrets, datetime], None]
    """Raises InvalidSignatureError."""
    idempotency: timedelta | None = None
    """How long a key is remembered; None: repeats are new messages."""
    repeat_code: str = ""
    """The code of the error for a repeat of a request that it took. Empty: a repeat gets the answer
    of the first one."""
    request_headers: Callable[[SendRequest], Mapping[str, str]] = _nothing
    mail_headers: Callable[[SendRequest], Mapping[str, str]] = _nothing
    """Headers of the mail beside those that every mail has."""
    adapt: Callable[[dict[str, Any], SendRequest], None] = _as_it_is
    """Changes the fields of a request, such as text that the provider would take for a template."""
    types_follow_names: bool = False
    """Whether the type of an attachment must be that of its name."""
    pause_header: str | None = None
    """A header with the seconds until the next request, beside Retry-After."""


def first_rules(label: str) -> Sequence[ResponseRule]:
    """Return the rules that precede most of a provider's own: only time helps."""
    return (
        ResponseRule(
            (429,), ResponseKind.TRANSIENT, f"Rate limited by {label}.", FailureCode.RATE_LIMITED
        ),
        ResponseRule(
            (408,),
            ResponseKind.TRANSIENT,
            f"{label} did not receive the whole request in time.",
        ),
    )


def last_rules(
    label: str, *, rejected: Sequence[int], settings: str = "account or URL"
) -> Sequence[ResponseRule]:
    """Return the rules that follow a provider's own, by status alone.

    ``rejected`` are the statuses of a refused mail, and ``settings`` what else a status refuses.
    """
    return (
        ResponseRule(
            (413,),
            ResponseKind.PERMANENT,
            f"The message exceeds {label}'s size limit.",
            FailureCode.TOO_LARGE,
        ),
        ResponseRule(
            ABOUT_SETTINGS,
            ResponseKind.UNAVAILABLE,
            f"{label} rejected the configured {settings}.",
        ),
        ResponseRule(rejected, ResponseKind.PERMANENT, f"{label} rejected the message."),
    )


def by_reply(rule: EventRule, *, text: str, status: int = PERMANENT_FAILURE) -> EventRule:
    """Return the rule of a bounce by the receiving server's words, if the provider calls it hard.

    Without words, nothing contradicts the provider.
    """
    is_hard = rule.kind is ReceiptKind.BOUNCED and rule.effect is None
    if not is_hard or not text.strip():
        return rule
    effect = effect_of(text, status)
    return replace(rule, kind=rule.kind if effect else ReceiptKind.BLOCKED, effect=effect)


def first_object(found: Any) -> Mapping[str, Any]:
    """Return the first item of a list, if it is an object."""
    return as_object(found[0]) if isinstance(found, list) and found else {}


def text_of(found: Any) -> str:
    """Return a text, or a number as text. Anything else is empty."""
    is_number = isinstance(found, int) and not isinstance(found, bool)
    return found if isinstance(found, str) else str(found) if is_number else ""
