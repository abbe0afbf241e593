"""The log of attempts: one record for each try to hand a message to a provider."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo.errors import BulkWriteError

from ..states import AttemptStatus, DeliveryStatus
from .accepting import DUPLICATE_KEY
from .collections import attempts, patiently
from .documents import ERROR_LENGTH, Claimed, Settlement
from .expressions import row_of

S = DeliveryStatus


def log_started(started: Sequence[Claimed], *, provider: str, worker: str, now: datetime) -> None:
    """Record that these attempts begin; doing it twice is doing it once."""
    documents = [
        {
            "_id": c.reference,
            "notification_id": c.notification_id,
            "channel": c.channel.value,
            "attempt_number": c.attempt_count,
            "status": AttemptStatus.STARTED.value,
            "provider": provider,
            "worker": worker,
            "attempted_at": now,
            "purge_at": c.purge_at,
        }
        for c in started
    ]
    if not documents:
        return
    try:
        patiently(attempts().insert_many, documents, ordered=False)
    except BulkWriteError as error:
        # The driver repeats a write whose answer was lost: then the record is there already.
        if any(p["code"] != DUPLICATE_KEY for p in error.details["writeErrors"]):
            raise


def log_outcomes(settlements: Sequence[Settlement]) -> None:
    """Record what became of attempts, in one command."""
    ids = [s.claimed.reference for s in settlements]
    rows = [_outcome(s) for s in settlements]
    patiently(
        attempts().update_many,
        {"_id": {"$in": ids}},
        [{"$replaceWith": {"$mergeObjects": ["$$ROOT", row_of(ids, rows)]}}],
    )


def log_withdrawn(started: Sequence[Claimed], *, now: datetime) -> None:
    """Record that these attempts were never made: their time was over before they began."""
    fields = {
        "status": AttemptStatus.EXPIRED.value,
        "error_message": "Not begun: the time for it was over. Nothing was sent.",
        "finished_at": now,
    }
    wanted = {"_id": {"$in": [c.reference for c in started]}}
    patiently(attempts().update_many, wanted, {"$set": fields})


def _outcome(s: Settlement) -> dict[str, Any]:
    status = {
        S.SENT: AttemptStatus.SENT,
        S.DELIVERED: AttemptStatus.SENT,
        S.UNKNOWN: AttemptStatus.UNKNOWN,
    }.get(s.status, AttemptStatus.FAILED)
    fields = {
        "status": status.value,
        "provider_message_id": s.answer.message_id,
        "platform_response": s.answer.response,
        "error_code": s.code.value if s.code else None,
        "error_message": s.reason[:ERROR_LENGTH] if s.reason else None,
        "finished_at": s.finished_at,
        "duration_ms": s.duration_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}
