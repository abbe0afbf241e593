"""Webhooks of Discord: the URL is the credential, and each has a bucket of its own."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import urlsplit

from domain.errors import FailureCode, ProviderResponse
from domain.rooms import RoomKind

from .. import http, room_client
from ..contract import SendRequest, SendResult
from ..response_rules import ResponseKind as Kind
from ..room_client import GONE, RATE_LIMITED, REDIRECTED, RoomProvider, RoomRule
from . import embeds

USER_AGENT = "DiscordBot (notifyproject, 1)"
"""Discord refuses the agents of browsers, and some of libraries."""
MAX_ID = 200
GLOBAL = "global"
RULES: Sequence[RoomRule] = (
    RoomRule(
        (GLOBAL,),
        Kind.TRANSIENT,
        "Discord takes no more messages from this address now.",
        FailureCode.RATE_LIMITED,
        is_account=True,
    ),
    RATE_LIMITED,
    RoomRule(
        ("10015", "50027"),
        Kind.INVALID_RECIPIENT,
        "Discord doesn't know the webhook any more.",
        GONE,
    ),
    RoomRule(
        ("40333",),
        Kind.UNAVAILABLE,
        "Discord has blocked this address for now.",
        is_account=True,
        pause=15 * 60.0,
    ),
    RoomRule(("50035", "50006", "50109"), Kind.PERMANENT, "Discord rejected the message."),
    # Discord restricts an address that repeats a 404.
    RoomRule((401, 404, 410), Kind.INVALID_RECIPIENT, "The webhook was deleted.", GONE),
    RoomRule((403,), Kind.UNAVAILABLE, "Discord refused the webhook."),
    REDIRECTED,
)


@dataclass(frozen=True, kw_only=True)
class Discord(RoomProvider):
    """All rooms that are webhooks of Discord."""

    kind = RoomKind.DISCORD
    sandbox_path = "/api/webhooks/100000000000000000/{room}"
    name: str = RoomKind.DISCORD.value

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Post one message; see :class:`providers.contract.Provider`."""
        url = self.url(request)
        response = await room_client.post(
            request,
            # Without it, the answer comes before the message is posted.
            url=f"{url}{'&' if urlsplit(url).query else '?'}wait=true",
            body=room_client.encode(embeds.build(request.message)),
            headers={"User-Agent": USER_AGENT},
            timeout=timeout,
            clock=self.clock,
        )
        answer = http.decode_object(response.body)
        message_id = answer.get("id")
        if response.status == HTTPStatus.OK and isinstance(message_id, str) and message_id:
            return SendResult(
                provider_id=message_id[:MAX_ID],
                response=ProviderResponse(status=response.status),
                is_delivered=True,
                pause=_pause(response.headers),
            )
        raise room_client.refusal(
            RULES,
            response,
            code=_code(response, answer),
            request=request,
            now=self.clock(),
            retry_after=_number(answer.get("retry_after")),
        )


def _code(response: http.Response, answer: Mapping[str, object]) -> str | None:
    if response.status == HTTPStatus.TOO_MANY_REQUESTS:
        # An answer that isn't the API's comes from before it: the address is banned.
        is_ban = "retry_after" not in answer
        return GLOBAL if answer.get("global") is True or is_ban else None
    code = answer.get("code")
    return str(code) if isinstance(code, int) and code else None


def _pause(headers: Mapping[str, str]) -> float | None:
    """Return the seconds for which the webhook's bucket is used up."""
    if headers.get("x-ratelimit-remaining") != "0":
        return None
    try:
        return _number(float(headers.get("x-ratelimit-reset-after", "")))
    except ValueError:
        return None


def _number(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return http.clamp_pause(float(value))
