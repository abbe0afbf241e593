"""Webhooks that follow Standard Webhooks: any receiver on the public Internet."""

import asyncio
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial

from domain import markdown, signing
from domain.errors import (
    FailureCode,
    PermanentError,
    ProviderResponse,
    ProviderUnavailableError,
    TransientError,
)
from domain.rooms import RoomKind
from notifyproject.platform import egress, endpoints, event_loop

from .. import room_client
from ..contract import SendRequest, SendResult
from ..http import CONNECT_TIMEOUT
from ..response_rules import ResponseKind as Kind
from ..room_client import GONE, RATE_LIMITED, REDIRECTED, RoomProvider, RoomRule
from ..room_texts import shorten

ACCEPTED = range(200, 300)
SANDBOX_PATH = "/receivers/{room}"
USER_AGENT = "notifyproject-rooms"
EVENT_TYPE = "message"
POOL = "rooms"
MEMORY = timedelta(days=1)
"""How long receivers are told to remember a ``webhook-id``."""
MIN_TIMEOUT = 0.1
"""Seconds left to a request, however long the lookup before it took."""
MAX_TEXT, MAX_TITLE = 6_000, 300
"""Characters. The whole body stays under 20 KB, as the specification advises."""
RULES: Sequence[RoomRule] = (
    RATE_LIMITED,
    RoomRule((410,), Kind.INVALID_RECIPIENT, "The receiver wants no more messages.", GONE),
    RoomRule((401, 403), Kind.UNAVAILABLE, "The receiver refused the signature."),
    RoomRule((408, 425), Kind.TRANSIENT, "The receiver wants the message later."),
    RoomRule((502,), Kind.TRANSIENT, "The receiver is unavailable.", FailureCode.PROVIDER_ERROR),
    REDIRECTED,
)


@dataclass(frozen=True, kw_only=True)
class Webhook(RoomProvider):
    """All rooms that are receivers of signed webhooks."""

    kind = RoomKind.WEBHOOK
    allow_loopback: bool = False
    find: Callable[[str, int], Sequence[tuple[str, int]]] = egress.addresses_of
    """Resolves a host to its public addresses."""
    secret: str = ""
    """The sandbox's, in place of the room's."""
    name: str = RoomKind.WEBHOOK.value

    @property
    def idempotency(self) -> timedelta:
        """How long a receiver drops a repeat; see :class:`providers.contract.IdempotentProvider`.

        The key is the message's ID, which no attempt changes.
        """
        return MEMORY

    async def send(self, request: SendRequest, *, timeout: float) -> SendResult:
        """Post one message; see :class:`providers.contract.Provider`.

        The receiver drops a message whose ``webhook-id`` it knows: it is that of the notification,
        whichever attempt it is.
        """
        began = time.monotonic()
        url, connect_to = await self._place(request, timeout=min(CONNECT_TIMEOUT, timeout))
        body = event(request)
        signed = signing.sign_headers(
            message_id=f"msg_{request.notification_id}",
            timestamp=int(self.clock().timestamp()),
            body=body,
            secrets=[self.secret] if self.secret else request.secrets,
        )
        response = await room_client.post(
            request,
            url=url,
            body=body,
            headers={"User-Agent": USER_AGENT, **signed},
            connect_to=connect_to,
            timeout=max(timeout - (time.monotonic() - began), MIN_TIMEOUT),
            clock=self.clock,
        )
        if response.status in ACCEPTED:
            return SendResult(
                provider_id=None,
                response=ProviderResponse(status=response.status),
                is_delivered=True,
            )
        raise room_client.refusal(RULES, response, code=None, request=request, now=self.clock())

    async def _place(self, request: SendRequest, *, timeout: float) -> tuple[str, Sequence[str]]:
        """Return the URL, and the public addresses to connect to. Raises ProviderError."""
        if self.base_url:
            return f"{self.base_url}{SANDBOX_PATH.format(room=request.scope)}", ()
        scope = request.scope
        try:
            endpoint = endpoints.parse_url(request.recipient, allow_loopback=self.allow_loopback)
            if endpoint.is_plain:
                return request.recipient, ()
            find = partial(self.find, endpoint.host, endpoint.port)
            # The resolver has no time limit.
            async with asyncio.timeout(timeout):
                addresses = await event_loop.run_blocking(find, pool=POOL)
        except endpoints.InvalidUrlError as error:
            raise ProviderUnavailableError(str(error), scope=scope) from error
        except egress.NotPublicError as error:
            reason = "The receiver's host is not on the public Internet."
            raise ProviderUnavailableError(reason, scope=scope) from error
        except OSError as error:
            reason, code = "DNS lookup of the receiver failed.", FailureCode.CONNECTION_FAILED
            raise TransientError(reason, code=code, scope=scope) from error
        return request.recipient, [address for address, _ in addresses]


def event(request: SendRequest) -> bytes:
    """Return the body: the same bytes for each attempt. Raises PermanentError."""
    message = request.message
    try:
        created = datetime.fromtimestamp(int(request.notification_id[:8], 16), UTC)
    except ValueError as error:
        reason = "The message has no ID."
        raise PermanentError(reason, code=FailureCode.INTERNAL_ERROR) from error
    return room_client.encode(
        {
            "type": EVENT_TYPE,
            "timestamp": created.isoformat().replace("+00:00", "Z"),
            "data": {
                "notification_id": request.notification_id,
                "room": request.scope,
                "category": request.category,
                "priority": request.priority.value,
                "title": shorten(message.subject, MAX_TITLE) if message.subject else None,
                "text": shorten(markdown.plain(message.text), MAX_TEXT),
                "markdown": shorten(message.text, MAX_TEXT),
                "links": [{"label": link.label, "url": link.url} for link in message.links],
            },
        }
    )
