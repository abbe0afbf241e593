"""What a provider's answer means for the address or the device, beyond the one delivery."""

from collections.abc import Sequence
from datetime import datetime

import structlog

from devices import status
from devices.models import DeactivationReason
from devices.status import Evidence
from domain.errors import InvalidRecipientError, RecipientAction
from providers.contract import SendResult
from recipients import suppressions
from recipients.models import SuppressionReason
from recipients.suppressions import suppress

from .jobs import Job
from .outcomes import Result

log = structlog.get_logger(__name__)

MISMATCH = "SENDER_ID_MISMATCH"
MANY = 5
"""So many devices that are all another sender's are no coincidence."""


def draw(sent: Sequence[tuple[Job, Result]], *, provider: str, now: datetime) -> None:
    """Switch off dead devices, suppress dead addresses, and note who is alive.

    What went to the sandbox says nothing about anybody. For devices, doing it twice is doing it
    once; a suspected address is counted each time. What it raises is the store's: PyMongoError.
    """
    alive: dict[str, datetime] = {}
    sent = [(job, result) for job, result in sent if not job.claimed.is_test]
    if _is_wrong_sender(sent):
        log.error("every_device_is_another_senders", provider=provider, count=len(sent))
        return
    for job, result in sent:
        if isinstance(result.outcome, InvalidRecipientError):
            _blame(job, result, result.outcome, provider=provider, now=now)
        elif isinstance(result.outcome, SendResult) and result.device_id is not None:
            known = alive.get(result.device_id, result.finished_at)
            alive[result.device_id] = max(known, result.finished_at)
    if alive:
        status.record_success(accepted=alive)


def _is_wrong_sender(sent: Sequence[tuple[Job, Result]]) -> bool:
    """Return whether a whole batch of devices is said to be another sender's.

    That is our credentials' fault, and not theirs: they are of another project.
    """
    codes = [
        result.outcome.answer.code
        for _, result in sent
        if isinstance(result.outcome, InvalidRecipientError) and result.outcome.answer
    ]
    return len(sent) >= MANY and len(codes) == len(sent) and set(codes) == {MISMATCH}


def _blame(
    job: Job, result: Result, error: InvalidRecipientError, *, provider: str, now: datetime
) -> None:
    if result.device_id is not None:
        _blame_device(job, result, error, provider=provider, now=now)
        return
    channel = job.claimed.channel
    address = job.claimed.recipient.address(channel)
    if address is None:
        return
    log.info("address_blamed", delivery_id=job.claimed.reference, action=error.action.value)
    if error.action is RecipientAction.SUSPECT:
        strikes = suppressions.record_soft_bounce(
            channel=channel.value, address=address, event=job.claimed.reference, now=now
        )
        if strikes < suppressions.MAX_SOFT_BOUNCES:
            return
    unsubscribed = error.action is RecipientAction.SUPPRESS_MARKETING
    suppress(
        channel=channel.value,
        address=address,
        reason=SuppressionReason.UNSUBSCRIBED if unsubscribed else SuppressionReason.HARD_BOUNCE,
        source=provider,
        marketing_only=unsubscribed,
        now=now,
    )


def _blame_device(
    job: Job, result: Result, error: InvalidRecipientError, *, provider: str, now: datetime
) -> None:
    evidence = Evidence(
        at=result.started_at,
        source=provider,
        code=error.answer.code if error.answer else None,
        notification_id=str(job.claimed.notification_id),
    )
    ids = [result.device_id or ""]
    # Whether a token is another sender's depends on who we are: one answer is no proof.
    if evidence.code == MISMATCH:
        reason = DeactivationReason.SENDER_MISMATCH
        status.record_suspicion(device_ids=ids, reason=reason, evidence=evidence, now=now)
    elif error.action is RecipientAction.SUSPECT:
        reason = DeactivationReason.SUSPECT
        status.record_suspicion(device_ids=ids, reason=reason, evidence=evidence, now=now)
    else:
        reason = DeactivationReason.UNREGISTERED
        status.deactivate(device_ids=ids, reason=reason, evidence=evidence, now=now)
