"""Validation of requests to the control API."""

import re
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TypeVar

import msgspec
from aiohttp import web

from .behaviours import EVERYBODY, canonical
from .providers.base import EventRequest, InboundMessage, Provider

DEFAULT_LIMIT, MAX_LIMIT = 20, 1000
MAX_DUPLICATES = 100
MAX_DELAY = 3600.0
MAX_TIMESTAMP = 9_999_999_999
_NUMBER = re.compile(r"[0-9]{1,9}", re.ASCII)
Body = TypeVar("Body", bound=msgspec.Struct)


class ControlError(Exception):
    """The control API refuses the request."""

    def __init__(self, detail: str, *, status: HTTPStatus = HTTPStatus.BAD_REQUEST) -> None:
        super().__init__(detail)
        self.status = status


class BehaviourBody(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request that scripts an outcome."""

    outcome: str
    times: int | None = None


def check_event(body: EventRequest | InboundMessage) -> None:
    """Validate a request for an event. Raises ControlError."""
    if isinstance(body, EventRequest):
        if not 0 <= body.delay <= MAX_DELAY:
            raise ControlError(f"delay must be between 0 and {MAX_DELAY:.0f} seconds.")
    elif not body.text.strip():
        raise ControlError("text must not be empty.")
    if not 0 <= body.duplicates <= MAX_DUPLICATES:
        raise ControlError(f"duplicates must be between 0 and {MAX_DUPLICATES}.")
    if body.timestamp is not None and not 0 < body.timestamp <= MAX_TIMESTAMP:
        raise ControlError("timestamp must be the seconds since 1970.")


def refuse_other_sites(request: web.Request) -> None:
    """Raise ControlError if a page of another site requests a change (CSRF)."""
    site = request.headers.get("Sec-Fetch-Site", "none")
    if request.method != "GET" and site not in ("none", "same-origin"):
        raise ControlError("Another site's page may not do this.", status=HTTPStatus.FORBIDDEN)


async def read_body(request: web.Request, kind: type[Body]) -> Body:
    """Return the body of a request. Raises ControlError."""
    try:
        return msgspec.json.decode(await request.read(), type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ControlError(f"The body is not what it should be: {error}.") from None


def read_query(request: web.Request, *known: str) -> Mapping[str, str]:
    """Return the query of a request. Raises ControlError for an unknown parameter."""
    unknown = sorted(set(request.query) - set(known))
    if unknown:
        raise ControlError(f"Unknown: {', '.join(unknown)}. Known: {', '.join(known)}.")
    return dict(request.query)


def read_filter(
    parameters: Mapping[str, str], providers: Mapping[str, Provider]
) -> Callable[[str, Iterable[str], Iterable[str]], bool]:
    """Return the query as a predicate (provider, references, recipients). Raises ControlError."""
    channels = dict.fromkeys(provider.channel for provider in providers.values())
    for name, known in (("provider", list(providers)), ("channel", list(channels))):
        if parameters.get(name) not in (None, *known):
            raise ControlError(f"{name} must be one of {', '.join(known)}.")
    wanted = canonical(parameters.get("recipient", ""))

    def matches(provider: str, references: Iterable[str], recipients: Iterable[str]) -> bool:
        return (
            parameters.get("provider") in (None, provider)
            and parameters.get("channel") in (None, providers[provider].channel)
            and parameters.get("reference") in (None, *references)
            and wanted in ("", *map(canonical, recipients))
        )

    return matches


def parse_number(parameters: Mapping[str, str], name: str, *, default: int) -> int:
    """Return a query parameter from 1 to MAX_LIMIT. Raises ControlError."""
    text = parameters.get(name, str(default))
    found = int(text) if _NUMBER.fullmatch(text) else 0
    if not 1 <= found <= MAX_LIMIT:
        raise ControlError(f"{name} must be between 1 and {MAX_LIMIT}.")
    return found


def read_match(request: web.Request) -> str:
    """Return the ``match`` of a script from the path. Raises ControlError."""
    found = canonical(request.match_info["match"])
    if not found:
        raise ControlError(f"The match must be an address, or {EVERYBODY} for everybody.")
    return found
