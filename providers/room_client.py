"""Posts messages to rooms, and classifies the answers.

A room is a scope of its provider: whatever a room refuses concerns that room alone, unless a rule
says that it concerns the account.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from datetime import datetime
from typing import Any

import msgspec

from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderError,
    ProviderResponse,
    ProviderUnavailableError,
    RecipientAction,
)

from . import http, http_client
from .contract import NotAttemptedError, SendRequest, is_expired
from .http import Request
from .response_rules import FALLBACK_RULES, ResponseKind, build_error

REFERENCE_HEADER = "X-Notify-Reference"
"""Names the attempt to proxies and receivers. It contains no address."""
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
    connect_to: str | None = None,
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
    answer = ProviderResponse(
        status=response.status,
        code=code,
        excerpt=response.excerpt.replace(request.recipient, "[address]"),
    )
    shown = code if code is not None else response.status
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
