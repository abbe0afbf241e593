"""Posts messages to rooms, and classifies the answers.

A room is a scope of its provider: whatever a room refuses concerns that room alone, unless a rule
says that it concerns the account.
"""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from functools import partial
from typing import Any, ClassVar
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
)
from domain.rooms import RoomKind

from . import http, http_client
from .contract import NotAttemptedError, SendRequest, SendTarget, is_expired
from .http import Request
from .response_rules import FALLBACK_RULES, ResponseKind, build_error

REFERENCE_HEADER = "X-Notify-Reference"
"""Names the attempt to proxies and receivers. It contains no address."""
ADDRESS = "[address]"
"""In place of a target in an answer."""
MIN_SECRET = 16
"""Characters of a part of a URL that may be a credential by itself."""
NO_HEADERS: Mapping[str, str] = {}


@dataclass(frozen=True, slots=True)
class RoomRule:
    """One row of a provider's table: by the provider's own codes, or else by status."""

    codes: Sequence[str | int]
    """Codes as the provider names them; numbers are statuses."""
    kind: ResponseKind
    reason: str
    code: FailureCode | None = None
    _: KW_ONLY
    is_account: bool = False
    """It concerns all rooms of the account."""
    pause: float | None = None
    """Seconds to wait if the answer names no time."""


GONE = FailureCode.ROOM_GONE
RATE_LIMITED = RoomRule(
    (429,), ResponseKind.TRANSIENT, "The room takes no more messages now.", FailureCode.RATE_LIMITED
)
REDIRECTED = RoomRule(
    range(300, 400), ResponseKind.UNAVAILABLE, "The room's URL leads elsewhere, or a proxy answers."
)


@dataclass(frozen=True, kw_only=True)
class RoomProvider:
    """What the providers of rooms have in common: each accepts the rooms of its kind."""

    kind: ClassVar[RoomKind]
    sandbox_path: ClassVar[str] = ""
    """The path of a room at the sandbox, if it has one of its own."""
    clock: Callable[[], datetime]
    base_url: str = ""
    """In place of the rooms' own hosts. Empty: each room's own URL."""
    is_sandbox: bool = False
    name: str

    @property
    def account(self) -> str:
        """The account that circuit breaker and rate limiter use: one for all rooms."""
        return self.name

    def accepts(self, target: SendTarget) -> bool:
        """Return whether a room is of this kind."""
        return target.transport == self.kind

    def scope(self, target: SendTarget) -> str:
        """Return the room's ID."""
        return target.room

    def url(self, request: SendRequest) -> str:
        """Return where a room is: at the sandbox with a path of its own, or else unchanged."""
        if self.is_sandbox:
            return f"{self.base_url}{self.sandbox_path.format(room=request.scope)}"
        return located(request.recipient, self.base_url)


def encode(body: Mapping[str, Any]) -> bytes:
    """Return a body as JSON. Raises PermanentError."""
    try:
        return msgspec.json.encode(body)
    except ValueError as error:
        reason = "The message cannot be encoded."
        raise PermanentError(reason, code=FailureCode.RENDER_FAILED) from error


def located(url: str, base_url: str) -> str:
    """Return a room's URL, or the sandbox's with its path: unchanged, since it may be signed."""
    if not base_url:
        return url
    rest = url.partition("://")[2]
    return f"{base_url}/{rest.partition('/')[2]}"


async def post(
    request: SendRequest,
    *,
    url: str,
    body: bytes,
    headers: Mapping[str, str] = NO_HEADERS,
    connect_to: Sequence[str] = (),
    timeout: float,
    clock: Callable[[], datetime],
) -> http.Response:
    """Post a message to a room, and return the answer. Raises ProviderError of the room's scope."""
    if is_expired(request, now=clock()):
        raise NotAttemptedError
    try:
        return await http_client.send(
            Request(
                url=url,
                body=body,
                headers={
                    "Content-Type": "application/json; charset=utf-8",
                    REFERENCE_HEADER: request.reference,
                    **headers,
                },
                timeout=timeout,
                connect_to=connect_to,
            )
        )
    except ProviderUnavailableError as error:
        # The URL is the room's: other rooms have their own.
        reason = "The room's URL is invalid."
        raise ProviderUnavailableError(reason, scope=request.scope) from error
    except ProviderError as error:
        error.scope = request.scope
        raise


def without_target(text: str, *, target: str) -> str:
    """Return an answer in which no part of the room's target that may be a credential is left.

    A proxy quotes the path, a page quotes the URL as HTML, and a provider a part of either.
    """
    try:
        url = urlsplit(target)
    except ValueError:
        url = urlsplit("")
    whole = f"{url.path}?{url.query}" if url.query else url.path
    secrets = [*url.path.split("/"), *(value for _, value in parse_qsl(url.query))]
    secrets += [pair.partition("=")[2] for pair in url.query.split("&")]
    parts = {target, *(part for part in secrets if len(part) >= MIN_SECRET)}
    parts |= {part for part in (whole, url.path) if part.strip("/")}
    written = parts | {unquote(part) for part in parts}
    for part in sorted(written | {html.escape(part) for part in written}, key=len, reverse=True):
        text = text.replace(part, ADDRESS)
    return text


def refusal(
    rules: Sequence[RoomRule],
    response: http.Response,
    *,
    code: str | None,
    request: SendRequest,
    now: datetime,
    retry_after: float | None = None,
) -> ProviderError:
    """Return the error for an answer that is no acceptance, by the first rule that matches."""
    named = [rule for rule in rules if code is not None and code in rule.codes]
    by_status = [rule for rule in rules if response.status in rule.codes]
    pause = retry_after or http.retry_after_seconds(response.headers, now=now)
    hide = partial(without_target, target=request.recipient)
    shown = hide(code) if code is not None else None
    answer = ProviderResponse(
        status=response.status, code=shown, excerpt=http.excerpt(hide(response.text))
    )
    shown = shown or str(response.status)
    for rule in (*named, *by_status):
        return build_error(
            rule.kind,
            f"{rule.reason} ({shown})",
            code=rule.code,
            action=RecipientAction.DEACTIVATE,
            response=answer,
            retry_after=pause or rule.pause,
            scope=None if rule.is_account else request.scope,
        )
    fallback = next(
        rule for rule in FALLBACK_RULES if rule.matches(status=response.status, fields=())
    )
    return build_error(
        fallback.kind,
        f"{fallback.reason} ({shown})",
        code=fallback.code,
        action=RecipientAction.DEACTIVATE,
        response=answer,
        retry_after=pause,
        scope=request.scope,
    )
