"""WhatsApp by Meta's Cloud API, over the pooled client.

Whoever has written within a day gets our own words; anybody else only what WhatsApp has approved.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from http import HTTPStatus

import msgspec

from ..errors import Answer, FailureCode, PermanentError, TransientError
from . import http, transfers, whatsapp_messages, whatsapp_webhooks
from .base import NotTried, Outbound, Receipt, SendResult, account_of, is_over
from .http import Exchange, Request
from .whatsapp_answers import MAX_ID_LENGTH, decoded, refusal
from .whatsapp_messages import Body
from .whatsapp_webhooks import Inbound, MarketingWish

SECOND_REQUEST = 1.0
"""Seconds that must be left for a second request: one that is cut short has an unknown outcome."""
ORDINARY = "accepted"
"""What WhatsApp says of a template that goes at once; others are held for a check."""


@dataclass(frozen=True, kw_only=True)
class WhatsApp:
    """A phone number at the Cloud API."""

    token: str = field(repr=False)
    phone_number_id: str
    base_url: str
    app_secret: str = field(repr=False)
    """Signs the webhooks. Empty: every webhook is refused."""
    verify_token: str = field(repr=False)
    """What Meta shows before it sends webhooks. Empty: nobody is let in."""
    clock: Callable[[], datetime]
    version: str
    """Of the Cloud API: ``v26.0``."""
    name: str = "whatsapp"

    @cached_property
    def account(self) -> str:
        """The phone number whose health and rate the messages share."""
        return account_of(self.name, self.phone_number_id, self.token)

    def send(self, outbound: Outbound, *, timeout: float) -> SendResult:
        """Hand one message to WhatsApp; see :class:`notifications.channels.base.Channel`."""
        return transfers.finish(self.exchange(outbound, timeout=timeout))

    def is_all_talk(self, outbound: Outbound) -> bool:
        """Return that a message needs nothing but its own requests."""
        return True

    def exchange(self, outbound: Outbound, *, timeout: float) -> Exchange[SendResult]:
        """Ask for one message; see :class:`notifications.channels.base.Talking`.

        Should WhatsApp know better than we that the person has not written for a day, it has
        refused the message for good, and the approved template goes in its place at once.
        """
        begun, template = time.monotonic(), outbound.message.approved
        if outbound.window_open:
            try:
                free = whatsapp_messages.free(outbound)
                return (yield from self._asked(free, outbound, timeout=timeout))
            except PermanentError as error:
                if error.code is not FailureCode.WINDOW_CLOSED or template is None:
                    raise
                timeout = _time_left(timeout - (time.monotonic() - begun), error)
        if template is None:
            raise PermanentError(
                "The person has not written on WhatsApp for 24 hours, and this type has no "
                "approved template.",
                code=FailureCode.WINDOW_CLOSED,
            )
        body = whatsapp_messages.approved(template, outbound)
        result = yield from self._asked(body, outbound, timeout=timeout)
        said = f"Sent as the approved template {template.name} ({template.language})."
        return replace(result, answer=replace(result.answer, excerpt=said))

    def parse_receipts(self, headers: Mapping[str, str], raw: bytes) -> list[Receipt]:
        """Return the events of a webhook; raises InvalidSignature or ValueError."""
        whatsapp_webhooks.verify(headers, raw, app_secret=self.app_secret)
        return whatsapp_webhooks.receipts(raw)

    def parse_inbound(self, raw: bytes) -> list[Inbound]:
        """Return who has written, by a webhook whose signature is verified; raises ValueError."""
        return whatsapp_webhooks.inbound(raw, phone_number_id=self.phone_number_id)

    def parse_wishes(self, raw: bytes) -> list[MarketingWish]:
        """Return who wants our marketing or not, by a verified webhook; raises ValueError."""
        return whatsapp_webhooks.marketing_wishes(raw, phone_number_id=self.phone_number_id)

    def challenge(self, query: Mapping[str, str]) -> str:
        """Return the answer to Meta's handshake; raises InvalidSignature."""
        return whatsapp_webhooks.challenge(query, verify_token=self.verify_token)

    def _asked(self, body: Body, outbound: Outbound, *, timeout: float) -> Exchange[SendResult]:
        if is_over(outbound, now=self.clock()):
            raise NotTried
        response = yield Request(
            url=f"{self.base_url}/{self.version}/{self.phone_number_id}/messages",
            body=_encoded(body),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
            timeout=timeout,
        )
        accepted = _accepted(response)
        if accepted is None:
            raise refusal(response, now=self.clock())
        return accepted


def _time_left(seconds: float, refused: PermanentError) -> float:
    if seconds < SECOND_REQUEST:
        raise TransientError(
            "WhatsApp wants the approved template, and no time was left to send it.",
            code=FailureCode.PROVIDER_ERROR,
            answer=refused.answer,
        ) from refused
    return seconds


def _encoded(body: Body) -> bytes:
    try:
        return msgspec.json.encode(body)
    except ValueError as error:
        raise PermanentError(
            "The message cannot be made into one for WhatsApp.", code=FailureCode.RENDER_FAILED
        ) from error


def _accepted(response: http.Response) -> SendResult | None:
    """Return the documented acceptance; None if the answer is anything else."""
    if response.status != HTTPStatus.OK:
        return None
    messages = decoded(response.body).get("messages")
    first = messages[0] if isinstance(messages, list) and messages else None
    if not isinstance(first, dict):
        return None
    message_id, state = first.get("id"), first.get("message_status")
    if not isinstance(message_id, str) or not message_id:
        return None
    held = state[:MAX_ID_LENGTH] if isinstance(state, str) and state != ORDINARY else None
    return SendResult(
        provider_id=message_id[:MAX_ID_LENGTH],
        answer=Answer(status=response.status, code=held),
    )
