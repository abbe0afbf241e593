"""Handing claimed deliveries to a provider, and what becomes of them.

The only place where an exception becomes an outcome.
"""

import os
import random
import time
import traceback
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
LOGGED_ERRORS, LOGGED_FRAMES = 5, 20
"""How much of a defect is logged: so many errors, each from so many of the last calls."""
Clock = Callable[[], datetime]
S = DeliveryStatus
_dice = random.SystemRandom()


def send_all(
    provider: Provider,
    started: Sequence[Claimed],
    messages: dict[ObjectId, Message],
    clock: Clock,
) -> list[Settlement]:
    """Send concurrently; a single one in this thread, so that it never queues behind a batch.

    Return an outcome of each that was begun. The others came too late, and nothing of them left.
    """

    def send(claimed: Claimed) -> Settlement | None:
        return _send_one(provider, claimed, messages[claimed.notification_id], clock)

    results = map(send, started) if len(started) == 1 else _senders(os.getpid()).map(send, started)
    return [settlement for settlement in results if settlement is not None]


def _send_one(
    provider: Provider, claimed: Claimed, message: Message, clock: Clock
) -> Settlement | None:
    """Send one delivery and return its outcome; None if it is too late to begin."""
    started_at, ticks = clock(), time.monotonic()
    if _is_too_late(claimed, started_at):
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


def _is_too_late(claimed: Claimed, now: datetime) -> bool:
    """Return whether a delivery's lease is not ours for long enough, or its own time is over.

    A process that was frozen wakes up here: nothing has left yet, and another worker may be at it.
    The last of a batch may have waited for a minute behind a slow provider.
    """
    if now + timedelta(seconds=TOTAL_TIMEOUT) + LEASE_MARGIN >= claimed.lease_until:
        log.warning("send_aborted_lease_over", delivery_id=claimed.reference)
        return True
    if claimed.expires_at is not None and now >= claimed.expires_at:
        log.info("send_aborted_expired", delivery_id=claimed.reference)
        return True
    return False


def _try(provider: Provider, outbound: Outbound) -> SendResult | ProviderError:
    """Return what came of handing a message to the provider, whatever it was."""
    try:
        return provider.send(outbound, timeout=TOTAL_TIMEOUT)
    except ProviderError as error:
        return error
    except Exception as error:
        # A defect of ours. The rest of the batch goes on; whether this one left, nobody knows.
        return _defect(error, outbound)


def _defect(error: Exception, outbound: Outbound) -> TransientError:
    # Where it happened, and not what it says: there may be an address or a body in that.
    log.error("provider_adapter_failed", delivery_id=outbound.reference, stack=_places(error))
    return TransientError(
        "The service itself failed while it was sending.",
        code=FailureCode.INTERNAL_ERROR,
        ambiguous=True,
    )


def _places(error: BaseException) -> str:
    """Return where an error was raised, and before it those that it came from, without texts."""
    chain: list[str] = []
    one: BaseException | None = error
    while one is not None and len(chain) < LOGGED_ERRORS:
        frames = "".join(traceback.format_tb(one.__traceback__, limit=-LOGGED_FRAMES))
        chain.append(f"{frames}{type(one).__module__}.{type(one).__qualname__}")
        one = one.__cause__ or one.__context__
    return "\n".join(reversed(chain))


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
