"""The log of attempts: one record for each try to hand a message to a provider."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pymongo.errors import BulkWriteError

from domain.states import AttemptStatus, DeliveryStatus
from notifyproject.db.collections import came_twice

from .collections import attempts, patiently
from .documents import ERROR_LENGTH, Claimed, Settlement, Try
from .expressions import row_of

S = DeliveryStatus


def log_started(started: Sequence[Claimed], *, provider: str, worker: str, now: datetime) -> None:
    """Record that these attempts begin; doing it twice is doing it once."""
    documents = [
        {
            "_id": c.reference_to(device_id),
            "notification_id": c.notification_id,
            "channel": c.channel.value,
            "attempt_number": c.attempt_count,
            "status": AttemptStatus.STARTED.value,
            "provider": provider,
            "worker": worker,
            "attempted_at": now,
            "purge_at": c.purge_at,
            **({"device_id": device_id} if device_id is not None else {}),
        }
        for c in started
        for device_id in c.targets
    ]
    if not documents:
        return
    try:
        patiently(attempts().insert_many, documents, ordered=False)
    except BulkWriteError as error:
        # The driver repeats a write whose answer was lost: then the record is there already.
        if not came_twice(error):
            raise


def log_outcomes(settlements: Sequence[Settlement]) -> None:
    """Record what became of attempts, in one command."""
    outcomes = dict(outcome for s in settlements for outcome in _outcomes(s))
    ids, rows = list(outcomes), list(outcomes.values())
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
    wanted = {"_id": {"$in": [c.reference_to(device) for c in started for device in c.targets]}}
    patiently(attempts().update_many, wanted, {"$set": fields})


def _outcomes(s: Settlement) -> list[tuple[str, dict[str, Any]]]:
    """Return the records of an attempt's requests, each with its id."""
    if s.tries:
        return [
            (s.claimed.reference_to(one.device_id), _record(one, one.status)) for one in s.tries
        ]
    status = {
        S.SENT: AttemptStatus.SENT,
        S.DELIVERED: AttemptStatus.SENT,
        S.UNKNOWN: AttemptStatus.UNKNOWN,
    }.get(s.status, AttemptStatus.FAILED)
    return [(s.claimed.reference, _record(s, status))]


def _record(one: Settlement | Try, status: AttemptStatus) -> dict[str, Any]:
    fields = {
        "status": status.value,
        "provider_message_id": one.answer.message_id,
        "platform_response": one.answer.response,
        "error_code": one.code.value if one.code else None,
        "error_message": one.reason[:ERROR_LENGTH] if one.reason else None,
        "finished_at": one.finished_at,
        "duration_ms": one.duration_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}
