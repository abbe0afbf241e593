"""Validation of requests to the control API."""

import re
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import TypeVar

import msgspec
from aiohttp import web

from .behaviours import EVERYBODY, canonical
from .duplicates import Message
from .log import Record
from .providers.base import EventRequest, InboundMessage

DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
MAX_DUPLICATES = 100
MAX_DELAY = 3600.0
MAX_TIMESTAMP = 9_999_999_999
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
Body = TypeVar("Body", bound=msgspec.Struct)


class ControlError(Exception):
    """A refused request to the control API."""

    def __init__(self, detail: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(detail)
        self.status = status


class BehaviourBody(msgspec.Struct, forbid_unknown_fields=True):
    """A scripted outcome."""

    outcome: str
    times: int | None = None


def check_event(requested: EventRequest) -> None:
    """Validate a request for an event; raises ControlError."""
    if not 0 <= requested.delay <= MAX_DELAY:
        raise ControlError(f"delay must be between 0 and {MAX_DELAY:.0f} seconds.")
    _check_duplicates(requested)


def check_inbound_message(message: InboundMessage) -> None:
    """Validate an inbound message; raises ControlError."""
    if not message.text.strip():
        raise ControlError("text must not be empty.")
    _check_duplicates(message)


def refuse_other_sites(request: web.Request) -> None:
    """Refuse changes by pages of other sites (CSRF); raises ControlError."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method != "GET" and site not in ("none", "same-origin"):
        raise ControlError("Another site's page may not do this.", status=HTTPStatus.FORBIDDEN)


async def read_body(request: web.Request, kind: type[Body]) -> Body:
    """Return the body of a request; raises ControlError."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ControlError(f"The body is not what it should be: {error}.") from None


def read_query(request: web.Request, *known: str) -> Mapping[str, str]:
    """Return the query of a request; raises ControlError for an unknown parameter."""
    unknown = sorted(set(request.query) - set(known))
    if unknown:
        raise ControlError(f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return dict(request.query)


def record_filter(
    parameters: Mapping[str, str], *, channels: Mapping[str, str]
) -> Callable[[Record], bool]:
    """Return a predicate for records; ``channels`` has each provider's channel."""
    accepted = parameters.get("accepted")
    if accepted not in (None, "true", "false"):
        raise ControlError("accepted must be true or false.")
    reference, provider, channel, recipient = _filters(parameters, channels=channels)

    def matches(record: Record) -> bool:
        return (
            (accepted is None or record.accepted == (accepted == "true"))
            and provider in (None, record.provider)
            and channel in (None, channels.get(record.provider))
            and (reference is None or reference in record.references)
            and (recipient is None or recipient in map(canonical, record.recipients))
        )

    return matches


def message_filter(
    parameters: Mapping[str, str], *, channels: Mapping[str, str]
) -> Callable[[Message], bool]:
    """Return a predicate for messages."""
    reference, provider, channel, recipient = _filters(parameters, channels=channels)

    def matches(message: Message) -> bool:
        return (
            provider in (None, message.provider)
            and channel in (None, message.channel)
            and reference in (None, message.reference)
            and recipient in (None, canonical(message.recipient))
        )

    return matches


def _filters(parameters: Mapping[str, str], *, channels: Mapping[str, str]) -> list[str | None]:
    found = [parameters.get(name) for name in ("reference", "provider", "channel")]
    for name, known in (
        ("provider", list(channels)),
        ("channel", list(dict.fromkeys(channels.values()))),
    ):
        if parameters.get(name) not in (None, *known):
            raise ControlError(f"{name} must be one of {', '.join(known)}.")
    return [*found, canonical(parameters.get("recipient", "")) or None]


def parse_number(parameters: Mapping[str, str], name: str, *, default: int, maximum: int) -> int:
    """Return a number of the query; raises ControlError."""
    text = parameters.get(name, str(default))
    found = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= found <= maximum:
        raise ControlError(f"{name} must be between 1 and {maximum}.")
    return found


def read_match(request: web.Request) -> str:
    """Return the match of a script; raises ControlError."""
    found = canonical(request.match_info["match"])
    if not found:
        raise ControlError(f"The match must be an address, or {EVERYBODY} for everybody.")
    return found


def not_scripted_error(found: str) -> ControlError:
    """Return the error for a missing script."""
    return ControlError(f"Nothing is scripted for “{found}”.", status=HTTPStatus.NOT_FOUND)


def _check_duplicates(body: EventRequest | InboundMessage) -> None:
    if not 0 <= body.duplicates <= MAX_DUPLICATES:
        raise ControlError(f"duplicates must be between 0 and {MAX_DUPLICATES}.")
    if body.timestamp is not None and not 0 < body.timestamp <= MAX_TIMESTAMP:
        raise ControlError("timestamp must be the seconds since 1970.")
