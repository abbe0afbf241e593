"""States and transitions. A test compares those of deliveries with docs/reference/states.md."""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol


class Priority(StrEnum):
    """The urgency of a notification; each has its own queues, served in strict order."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class SchemaMode(StrEnum):
    """What happens to a request whose data differs from its type's schema."""

    OFF = "off"  # It isn't checked
    WARN = "warn"  # It is accepted, with warnings
    REJECT = "reject"


class ManagedBy(StrEnum):
    """Where a type is changed."""

    CONSOLE = "console"
    CODE = "code"  # In files that are pushed: staff change it only in an emergency


class Category(StrEnum):
    """The purpose of a notification; marketing requires the recipient's consent."""

    TRANSACTIONAL = "transactional"
    MARKETING = "marketing"
    ALERT = "alert"


class DeliveryStatus(StrEnum):
    """The status of one delivery."""

    PENDING = "pending"
    """Waiting for its time, a worker, or a retry."""
    SENDING = "sending"
    """A worker may have sent bytes."""
    UNKNOWN = "unknown"
    """Bytes were sent and no response arrived: the provider may have accepted the message."""
    SENT = "sent"
    """The provider accepted it."""
    DELIVERED = "delivered"
    """The provider reported delivery, or the message is in the recipient's inbox."""
    READ = "read"
    FAILED = "failed"
    """Ended without success. Only an operator or client can request a retry."""
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    """The client or an operator cancelled it before it was sent."""
    SUPPRESSED = "suppressed"
    """The recipient opted out or has no address or device, or the address is suppressed."""
    MERGED = "merged"
    """Part of a digest, which another notification carries."""


class NotificationStatus(StrEnum):
    """The overall status of a notification, computed from its deliveries in every write."""

    CREATED = "created"
    """Every open delivery is scheduled for the future."""
    QUEUED = "queued"
    PROCESSING = "processing"
    """Being sent, or the outcome is unknown."""
    RETRYING = "retrying"
    """A channel failed and is to be retried."""
    SENT = "sent"
    """Every channel's provider accepted it."""
    DELIVERED = "delivered"
    PARTIALLY_DELIVERED = "partially_delivered"
    """Some channels succeeded, others did not."""
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    """Nothing was sent, since the client or an operator cancelled it."""
    SUPPRESSED = "suppressed"
    """Nothing was sent: every channel was suppressed."""
    MERGED = "merged"
    """Part of a digest, which another notification carries, and sent on no other channel."""


class Phase(StrEnum):
    """The coarse status of a notification: one of four words for each overall status."""

    PENDING = "pending"
    """Not sent yet: it waits or is being sent, and no attempt has failed."""
    RETRYING = "retrying"
    """A channel failed and is to be retried."""
    SENT = "sent"
    """Sent on at least one channel, and no channel is open."""
    FAILED = "failed"
    """It ended without being sent on any channel, for whatever reason."""


class AttemptStatus(StrEnum):
    """The outcome of one attempt to hand a message to a provider."""

    STARTED = "started"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    """The lease or the notification expired before the attempt began: nothing was sent."""


class AudienceKind(StrEnum):
    """The kind of a broadcast's audience."""

    TOPIC = "topic"
    USER_IDS = "user_ids"
    ALL = "all"
    FILE = "file"


class FileStatus(StrEnum):
    """What happens to a file of recipients, or has."""

    UPLOADING = "uploading"
    """Chunks are missing, or no check was asked for."""
    READING = "reading"
    UNMAPPED = "unmapped"
    """It is read, and its columns don't fit the type."""
    CHECKING = "checking"
    CHECKED = "checked"
    REFUSED = "refused"
    """It can't be read."""
    REMOVED = "removed"
    """The client has removed what it contained."""


class Duplicates(StrEnum):
    """Which of several rows of a file are sent if they name the same person."""

    REFUSE = "refuse"
    """The first. The others are wrong."""
    FIRST = "first"
    """The first. The others are skipped."""
    LAST = "last"


class BroadcastStatus(StrEnum):
    """The status of a broadcast: how far its audience was read, not what was delivered."""

    DRAFT = "draft"
    """It was changed since somebody asked for its approval, and waits to be submitted again."""
    AWAITING_APPROVAL = "awaiting_approval"
    """Another person decides. No audience is read before."""
    REJECTED = "rejected"
    EXPIRED = "expired"
    """Nobody decided in time."""
    SCHEDULED = "scheduled"
    """The broadcast's time has not come, and no audience was read."""
    RUNNING = "running"
    """The audience is being read, or the reading waits because of backpressure."""
    PAUSED = "paused"
    """The audience is not read until staff resume. Accepted notifications continue."""
    CANCELLING = "cancelling"
    """The audience is no longer read, and unsent notifications are being cancelled."""
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    FAILED = "failed"
    """The broadcast ended before the whole audience was read. Its ``failure`` has the reason."""


DELIVERED_STATUSES = frozenset(
    {
        NotificationStatus.SENT,
        NotificationStatus.DELIVERED,
        NotificationStatus.PARTIALLY_DELIVERED,
    }
)
"""Statuses of a notification without open deliveries that was sent on at least one channel."""
N = NotificationStatus
PHASES: dict[NotificationStatus, Phase] = {
    N.CREATED: Phase.PENDING,
    N.QUEUED: Phase.PENDING,
    N.PROCESSING: Phase.PENDING,
    N.RETRYING: Phase.RETRYING,
    N.SENT: Phase.SENT,
    N.DELIVERED: Phase.SENT,
    N.PARTIALLY_DELIVERED: Phase.SENT,
    # Sent by the notification that carries its digest.
    N.MERGED: Phase.SENT,
    N.FAILED: Phase.FAILED,
    N.EXPIRED: Phase.FAILED,
    N.CANCELLED: Phase.FAILED,
    N.SUPPRESSED: Phase.FAILED,
}
"""The phase of each overall status."""
S = DeliveryStatus
OPEN = frozenset({S.PENDING, S.SENDING, S.UNKNOWN})
SUCCEEDED = frozenset({S.SENT, S.DELIVERED, S.READ})
TRANSITIONS: dict[DeliveryStatus, frozenset[DeliveryStatus]] = {
    # To pending: claimed or deferred. To failed: no provider, render error, or quarantined.
    # To sent, delivered, or read: a receipt arrived before the worker's own write.
    S.PENDING: frozenset(DeliveryStatus) - {S.UNKNOWN},
    S.SENDING: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED, S.UNKNOWN}),
    S.UNKNOWN: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED}),
    S.SENT: frozenset({S.DELIVERED, S.READ, S.FAILED}),
    # A mail server may accept a message and bounce it later.
    S.DELIVERED: frozenset({S.READ, S.FAILED}),
    S.READ: frozenset(),
    # An operator reopened the delivery, or a receipt arrived after the service gave up. The
    # receipt says that the message was delivered after all, or the cause of the failure.
    S.FAILED: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED}),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
    # Reopened once the recipient can be reached again.
    S.SUPPRESSED: frozenset({S.PENDING}),
    S.MERGED: frozenset(),
}
"""All permitted transitions of a delivery. Any other transition in the store is a defect."""


class HasDeliveryState(Protocol):
    """The fields of a delivery that determine the notification's overall status."""

    @property
    def status(self) -> DeliveryStatus:
        """The delivery's status."""

    @property
    def attempt_count(self) -> int:
        """The number of attempts."""

    @property
    def is_waiting(self) -> bool:
        """Whether the delivery is pending, unclaimed, and scheduled for the future."""


def overall_status(deliveries: Sequence[HasDeliveryState]) -> NotificationStatus:
    """Return a notification's status. :mod:`notifications.store.pipelines` has the same rule."""
    statuses = {d.status for d in deliveries}
    if any(d.status is S.PENDING and d.attempt_count > 0 for d in deliveries):
        return NotificationStatus.RETRYING
    if statuses & {S.SENDING, S.UNKNOWN}:
        return NotificationStatus.PROCESSING
    if S.PENDING in statuses:
        are_all_scheduled = all(d.is_waiting for d in deliveries if d.status is S.PENDING)
        return NotificationStatus.CREATED if are_all_scheduled else NotificationStatus.QUEUED
    return _final_status(statuses)


def _final_status(all_statuses: set[DeliveryStatus]) -> NotificationStatus:
    statuses = all_statuses - {S.CANCELLED, S.SUPPRESSED, S.MERGED}
    if S.MERGED in all_statuses and not statuses:
        return NotificationStatus.MERGED
    if not statuses:
        is_suppressed = all_statuses == {S.SUPPRESSED}
        return NotificationStatus.SUPPRESSED if is_suppressed else NotificationStatus.CANCELLED
    if statuses <= {S.DELIVERED, S.READ}:
        return NotificationStatus.DELIVERED
    if statuses <= SUCCEEDED:
        return NotificationStatus.SENT
    if statuses & SUCCEEDED:
        return NotificationStatus.PARTIALLY_DELIVERED
    return NotificationStatus.FAILED if S.FAILED in statuses else NotificationStatus.EXPIRED


class BulkAction(StrEnum):
    """What a bulk operation does with each selected notification."""

    RETRY = "retry"
    RESEND = "resend"
    CANCEL = "cancel"
    RESCHEDULE = "reschedule"
    RUN_NOW = "run_now"


class BulkStage(StrEnum):
    """The stage of a bulk operation."""

    PREVIEWING = "previewing"
    """The selection is being counted and its resend risk assessed; nothing changes yet."""
    READY = "ready"
    """The preview waits for staff to start the operation."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    """Stopped by staff; completed actions stay."""
    COMPLETED = "completed"


class BulkOutcome(StrEnum):
    """The outcome of one delivery in a bulk operation."""

    WAITING = "waiting"
    """Part of the preview, not acted on yet."""
    BEGUN = "begun"
    """A worker is about to act, or stopped while it did."""
    DONE = "done"
    SKIPPED = "skipped"
    """Skipped for its resend risk, or because it changed since the preview."""
    FAILED = "failed"


BULK_TRANSITIONS: dict[BulkStage, frozenset[BulkStage]] = {
    BulkStage.PREVIEWING: frozenset({BulkStage.READY, BulkStage.CANCELLED}),
    BulkStage.READY: frozenset({BulkStage.RUNNING, BulkStage.CANCELLED}),
    BulkStage.RUNNING: frozenset({BulkStage.PAUSED, BulkStage.CANCELLED, BulkStage.COMPLETED}),
    BulkStage.PAUSED: frozenset({BulkStage.RUNNING, BulkStage.CANCELLED}),
    BulkStage.CANCELLED: frozenset(),
    BulkStage.COMPLETED: frozenset(),
}
ACTIVE_BULK_STAGES = frozenset({BulkStage.PREVIEWING, BulkStage.RUNNING})
FINAL_BULK_OUTCOMES = frozenset({BulkOutcome.DONE, BulkOutcome.SKIPPED, BulkOutcome.FAILED})
