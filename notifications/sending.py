"""Handing claimed deliveries to a provider, and what becomes of them.

The only place where an exception becomes an outcome.
"""

import os
import random
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import cache

import structlog
from bson import ObjectId
from django.conf import settings

from . import retry
from .channels.base import Channel as Provider
from .channels.base import Message, Outbound, SendResult
from .channels.http import TOTAL_TIMEOUT
from .errors import Answer, FailureCode, ProviderError, TransientError
from .states import DeliveryStatus
from .store import Claimed, ProviderAnswer, Settlement

log = structlog.get_logger(__name__)

LEASE_MARGIN = timedelta(seconds=2)
"""A send starts only if its lease outlives the longest request by this much."""
Clock = Callable[[], datetime]
S = DeliveryStatus
_dice = random.SystemRandom()


def send_all(
    provider: Provider,
    started: Sequence[Claimed],
    messages: dict[ObjectId, Message],
    clock: Clock,
) -> list[Settlement]:
    """Send concurrently; a single one in this thread, so that it never queues behind a batch."""

    def send(claimed: Claimed) -> Settlement | None:
        return _send_one(provider, claimed, messages[claimed.notification_id], clock)

    results = map(send, started) if len(started) == 1 else _senders(os.getpid()).map(send, started)
    return [settlement for settlement in results if settlement is not None]


def _send_one(
    provider: Provider, claimed: Claimed, message: Message, clock: Clock
) -> Settlement | None:
    """Send one delivery and return its outcome; None if its lease is not ours for long enough.

    A process that was frozen wakes up here: nothing has left yet, and another worker may be at it.
    """
    started_at, ticks = clock(), time.monotonic()
    if started_at + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return None
    outbound = Outbound(
        reference=claimed.reference,
        recipient=claimed.recipient.address(claimed.channel) or claimed.user_id or "",
        recipient_name=claimed.recipient.name,
        message=message,
        category=claimed.category.value,
        expires_at=claimed.expires_at,
    )
    settlement = outcome(
        claimed,
        _try(provider, outbound),
        provider=provider.name,
        now=clock(),
        duration_ms=round((time.monotonic() - ticks) * 1000),
        dice=_dice.uniform(-1, 1),
    )
    log.info(
        "delivery_attempted",
        delivery_id=claimed.reference,
        channel=claimed.channel.value,
        attempt=claimed.attempt_count,
        status=settlement.status.value,
        code=settlement.code,
        duration_ms=settlement.duration_ms,
        request_id=claimed.request_id,
    )
    return settlement


def _try(provider: Provider, outbound: Outbound) -> SendResult | ProviderError:
    """Return what came of handing a message to the provider, whatever it was."""
    try:
        return provider.send(outbound, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        return error
    except Exception:
        # A defect of ours. The rest of the batch goes on; whether this one left, nobody knows.
        log.exception("provider_adapter_failed", delivery_id=outbound.reference)
        return TransientError(
            "The service itself failed while it was sending.",
            code=FailureCode.INTERNAL_ERROR,
            ambiguous=True,
        )


def outcome(
    claimed: Claimed,
    result: SendResult | ProviderError,
    *,
    provider: str,
    now: datetime,
    duration_ms: int,
    dice: float,
) -> Settlement:
    """Return what an attempt's result makes of the delivery. Pure."""
    if isinstance(result, SendResult):
        return Settlement(
            claimed=claimed,
            status=S.DELIVERED if result.delivered else S.SENT,
            finished_at=now,
            duration_ms=duration_ms,
            answer=_provider_answer(provider, result.answer, message_id=result.provider_id),
        )
    decision = retry.decide(error=result, standing=claimed.standing, now=now, dice=dice)
    status, next_attempt_at = S.FAILED, None
    if isinstance(decision, retry.RetryAt | retry.ExcusedUntil):
        status, next_attempt_at = S.PENDING, decision.at
    elif isinstance(decision, retry.AwaitReceipt):
        status, next_attempt_at = S.UNKNOWN, decision.until
    return Settlement(
        claimed=claimed,
        status=status,
        finished_at=now,
        duration_ms=duration_ms,
        answer=_provider_answer(provider, result.answer),
        next_attempt_at=next_attempt_at,
        excused=isinstance(decision, retry.ExcusedUntil),
        code=result.code,
        reason=result.reason,
    )


def _provider_answer(
    provider: str, answer: Answer | None, *, message_id: str | None = None
) -> ProviderAnswer:
    response = None
    if answer is not None:
        said = {"status": answer.status, "code": answer.code, "body": answer.excerpt or None}
        response = {name: value for name, value in said.items() if value is not None}
    return ProviderAnswer(provider=provider, message_id=message_id, response=response)


@cache
def _senders(_process_id: int) -> ThreadPoolExecutor:
    """Return this process's sending threads, shared by every batch."""
    return ThreadPoolExecutor(max_workers=settings.WORKER_THREADS, thread_name_prefix="send")
