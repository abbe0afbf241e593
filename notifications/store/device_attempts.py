"""Reads the attempts of a push at each device."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain.errors import FailureCode
from domain.states import AttemptStatus, DeliveryStatus
from notifications.documents.records import DeliveryAttemptDocument

from .claims import ClaimedDelivery
from .collections import attempts

F = FailureCode
PERMANENT_FAILURES = frozenset({F.INVALID_RECIPIENT, F.REJECTED, F.TOO_LARGE, F.RENDER_FAILED})
"""After one of these failures, a device never gets the message."""
ATTEMPTED = frozenset({AttemptStatus.SENT, AttemptStatus.FAILED, AttemptStatus.UNKNOWN})
"""Statuses of completed attempts. Others say nothing about a device."""
ATTEMPT_FIELDS = (
    "notification_id",
    "device_id",
    "attempt_number",
    "status",
    "attempted_at",
    "finished_at",
    "error_code",
    "error_message",
)


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why a device can never get a message."""

    code: FailureCode
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceHistory:
    """The outcomes of one push at the devices it was sent to."""

    delivered: frozenset[str] = frozenset()  # Accepted by the provider
    ambiguous: Mapping[str, datetime] = field(default_factory=dict)  # Outcome unknown, since when
    refused: Mapping[str, Refusal] = field(default_factory=dict)
    last_attempts: Mapping[str, int] = field(default_factory=dict)  # Numbers

    @property
    def reached(self) -> frozenset[str]:
        """Devices that have the push, or may have it while another has."""
        # A device with an unknown outcome is retried only while no device is known to have the
        # push, and if the type allows it.
        return self.delivered | (self.ambiguous.keys() if self.delivered else set())

    @property
    def excluded(self) -> frozenset[str]:
        """Devices that the push must not be sent to again."""
        return self.reached | self.refused.keys()


def device_histories(claims: Sequence[ClaimedDelivery]) -> Mapping[ObjectId, DeviceHistory]:
    """Return the earlier attempts at each device, of those pushes that were attempted.

    Raises PyMongoError.
    """
    # Failures before an operator reopened a delivery don't count. Takes at most one read.
    attempted = {c.notification_id: c for c in claims if c.attempt_count > 0}
    if not attempted:
        return {}
    found = attempts().find({"notification_id": {"$in": list(attempted)}}, ATTEMPT_FIELDS)
    records: dict[ObjectId, list[DeliveryAttemptDocument]] = {
        attempted_id: [] for attempted_id in attempted
    }
    for record in sorted(found, key=lambda r: r["attempt_number"]):
        if "device_id" in record:
            records[record["notification_id"]].append(record)
    return {
        notification_id: _history_of(attempted[notification_id], some)
        for notification_id, some in records.items()
    }


def attempts_at(
    notification_id: ObjectId, device_ids: Sequence[str]
) -> list[DeliveryAttemptDocument]:
    """Return the attempts of a push at these devices that may have been sent, oldest first."""
    wanted = {"notification_id": notification_id, "device_id": {"$in": device_ids}}
    found = attempts().find(wanted).sort("attempt_number", 1)
    return [record for record in found if record["status"] != AttemptStatus.EXPIRED]


def record_device_receipt(
    attempt: DeliveryAttemptDocument, status: DeliveryStatus, *, at: datetime
) -> bool:
    """Record a device's receipt on its attempt and return whether it changed the attempt."""
    # The earliest receipt counts, in whatever order they arrive. None is before the attempt.
    names = ("delivered_at", "opened_at") if status is DeliveryStatus.READ else ("delivered_at",)
    earliest = max(at, attempt["attempted_at"])
    changes = {name: {"$min": [f"${name}", earliest]} for name in names}
    result = attempts().update_one({"_id": attempt["_id"]}, [{"$set": changes}])
    return result.modified_count == 1


def _history_of(
    claimed: ClaimedDelivery, records: Sequence[DeliveryAttemptDocument]
) -> DeviceHistory:
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
        last_attempts={device: record["attempt_number"] for device, record in last.items()},
    )
