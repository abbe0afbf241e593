"""What the log of attempts says of a person's devices: who has a push, who is not to get it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain.errors import FailureCode
from domain.states import AttemptStatus

from .collections import attempts
from .documents import ClaimedDelivery, Document

PERMANENT_FAILURES = frozenset(
    {
        FailureCode.INVALID_RECIPIENT,
        FailureCode.REJECTED,
        FailureCode.TOO_LARGE,
        FailureCode.RENDER_FAILED,
    }
)
"""A device that the message failed at of one of these will never get it."""
ATTEMPTED = frozenset({AttemptStatus.SENT, AttemptStatus.FAILED, AttemptStatus.UNKNOWN})
"""Attempts that were made: the others say nothing of a device."""
ATTEMPT_FIELDS = (
    *("notification_id", "device_id", "attempt_number", "status", "attempted_at"),
    *("finished_at", "error_code", "error_message"),
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why one device will never get a message."""

    code: FailureCode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHistory:
    """How the devices stand that one push was tried at."""

    delivered: frozenset[str] = frozenset()
    """The provider took it for them."""
    ambiguous: Mapping[str, datetime] = field(default_factory=dict)
    """It may have, since then."""
    refused: Mapping[str, Refusal] = field(default_factory=dict)

    @property
    def excluded(self) -> frozenset[str]:
        """Devices that nothing more goes to.

        A doubtful one is tried again, if its type says so, only while nobody is known to have it.
        """
        return (
            self.delivered
            | self.refused.keys()
            | (self.ambiguous.keys() if self.delivered else set())
        )


def device_histories(claims: Sequence[ClaimedDelivery]) -> Mapping[ObjectId, DeviceHistory]:
    """Return how the devices of pushes stand that were tried before, by notification.

    What was tried before an operator opened a delivery again does not count against a device. One
    read for all, and none if none was tried. Raises PyMongoError.
    """
    tried = {c.notification_id: c for c in claims if c.attempt_count > 0}
    if not tried:
        return {}
    found = attempts().find({"notification_id": {"$in": list(tried)}}, ATTEMPT_FIELDS)
    records: dict[ObjectId, list[Document]] = {one: [] for one in tried}
    for record in sorted(found, key=lambda r: r["attempt_number"]):
        if "device_id" in record:
            records[record["notification_id"]].append(record)
    return {one: _history_of(tried[one], some) for one, some in records.items()}


def _history_of(claimed: ClaimedDelivery, records: Sequence[Document]) -> DeviceHistory:
    """Return how the devices stand by their records, the oldest first."""
    sent = {r["device_id"] for r in records if r["status"] == AttemptStatus.SENT}
    last = {
        r["device_id"]: r
        for r in records
        if r["status"] in ATTEMPTED and r["attempted_at"] >= claimed.first_due_at
    }
    return DeviceHistory(
        delivered=frozenset(sent | {*claimed.accepted_targets}),
        ambiguous={
            device: record.get("finished_at", record["attempted_at"])
            for device, record in last.items()
            if record["status"] == AttemptStatus.UNKNOWN
        },
        refused={
            device: Refusal(FailureCode(record["error_code"]), record.get("error_message", ""))
            for device, record in last.items()
            if record.get("error_code") in PERMANENT_FAILURES
        },
    )
