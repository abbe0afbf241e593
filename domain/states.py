"""States and transitions of notifications, deliveries, attempts, broadcasts, and bulk operations.

docs/state_machine.md shows the transitions; a test holds the page and this module together.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Protocol


class Channel(StrEnum):
    """A way to reach a person."""

    EMAIL = "email"
    PUSH = "push"
    WHATSAPP = "whatsapp"
    IN_APP = "in_app"


class Priority(StrEnum):
    """How urgent a notification is; each has queues of its own, served strictly in order."""

    CRITICAL = "critical"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class Category(StrEnum):
    """What a notification is for; marketing needs the recipient's consent."""

    TRANSACTIONAL = "transactional"
    MARKETING = "marketing"
    ALERT = "alert"


class DeliveryStatus(StrEnum):
    """Where one channel's delivery stands."""

    PENDING = "pending"
    """Waiting for its time, a worker, or another try."""
    SENDING = "sending"
    """A worker may have put bytes on the wire."""
    UNKNOWN = "unknown"
    """Bytes left and no answer came: the provider may have sent it."""
    SENT = "sent"
    """The provider accepted it."""
    DELIVERED = "delivered"
    """The provider reported it delivered, or it is in the person's inbox."""
    READ = "read"
    """The person opened it."""
    FAILED = "failed"
    """It will not be tried again unless somebody asks."""
    EXPIRED = "expired"
    """Its time was over before it could be sent."""
    CANCELLED = "cancelled"
    """The caller or an operator withdrew it before it was sent."""
    SUPPRESSED = "suppressed"
    """The person does not want it, or the address is known to be bad."""


class NotificationStatus(StrEnum):
    """Where a notification stands as a whole: computed from its deliveries in every write."""

    CREATED = "created"
    """All that is open lies in the future."""
    QUEUED = "queued"
    """Due and waiting for a worker."""
    PROCESSING = "processing"
    """Being sent, or the outcome is not known yet."""
    RETRYING = "retrying"
    """A channel failed and will be tried again."""
    SENT = "sent"
    """Every channel's provider accepted it."""
    DELIVERED = "delivered"
    """Every channel delivered it."""
    PARTIALLY_DELIVERED = "partially_delivered"
    """Some channels succeeded, some did not."""
    FAILED = "failed"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    """Nothing was sent: withdrawn, or suppressed on every channel."""


class AttemptStatus(StrEnum):
    """What became of one try to hand a message to a provider."""

    STARTED = "started"
    SENT = "sent"
    FAILED = "failed"
    UNKNOWN = "unknown"
    EXPIRED = "expired"
    """Its lease or the notification's time was over before it began: nothing was sent."""


class AudienceKind(StrEnum):
    """Whom a broadcast is for."""

    TOPIC = "topic"
    """A topic's members."""
    USER_IDS = "user_ids"
    """People named one by one."""
    ALL = "all"
    """Everybody who is registered."""


class BroadcastStatus(StrEnum):
    """Where a broadcast stands: how far its audience has been read, not what arrived."""

    SCHEDULED = "scheduled"
    """Its time has not come, and nobody of its audience has been looked at."""
    RUNNING = "running"
    """Its audience is being read, or waits for room."""
    PAUSED = "paused"
    """No more of its audience is read before it is resumed; what was accepted goes on."""
    CANCELLING = "cancelling"
    """No more is read, and what has not been sent is being withdrawn."""
    CANCELLED = "cancelled"
    """All of it that was not sent is withdrawn."""
    COMPLETED = "completed"
    """Its whole audience was read."""
    FAILED = "failed"
    """It ended before its audience did; its failure says why."""


S = DeliveryStatus
OPEN = frozenset({S.PENDING, S.SENDING, S.UNKNOWN})
"""The service still has something to do; only these have a due time."""
SUCCEEDED = frozenset({S.SENT, S.DELIVERED, S.READ})
TRANSITIONS: dict[DeliveryStatus, frozenset[DeliveryStatus]] = {
    # To itself: claimed, snoozed. To failed: no provider, cannot be rendered, quarantined.
    # To sent and beyond: a receipt that came before our own write.
    S.PENDING: frozenset(
        {
            S.PENDING,
            S.SENDING,
            S.SENT,
            S.DELIVERED,
            S.READ,
            S.FAILED,
            S.EXPIRED,
            S.CANCELLED,
        }
        | {S.SUPPRESSED}
    ),
    S.SENDING: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED, S.UNKNOWN}),
    S.UNKNOWN: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED}),
    S.SENT: frozenset({S.DELIVERED, S.READ, S.FAILED}),
    # A mail server may take a message and bounce it later.
    S.DELIVERED: frozenset({S.READ, S.FAILED}),
    S.READ: frozenset(),
    # Re-opened by an operator; or we gave up, and the provider reports that it went after all,
    # or what it failed of.
    S.FAILED: frozenset({S.PENDING, S.SENT, S.DELIVERED, S.READ, S.FAILED}),
    S.EXPIRED: frozenset(),
    S.CANCELLED: frozenset(),
    S.SUPPRESSED: frozenset(),
}
"""Every step a delivery may take. Anything else in the store is a defect."""


class HasDeliveryState(Protocol):
    """What the overall status is computed from."""

    @property
    def status(self) -> DeliveryStatus:
        """Where it stands."""
        ...

    @property
    def attempt_count(self) -> int:
        """How often it was tried."""
        ...

    @property
    def is_waiting(self) -> bool:
        """Pending, unclaimed, and its time has not come."""
        ...


def overall_status(deliveries: Sequence[HasDeliveryState]) -> NotificationStatus:
    """Return the overall status of a notification with these deliveries, at least one.

    The same rule stands as an aggregation expression in :mod:`notifications.store.pipelines`,
    which is what writes it; a test holds the two together.
    """
    statuses = {d.status for d in deliveries}
    if any(d.status is S.PENDING and d.attempt_count > 0 for d in deliveries):
        return NotificationStatus.RETRYING
    if statuses & {S.SENDING, S.UNKNOWN}:
        return NotificationStatus.PROCESSING
    if S.PENDING in statuses:
        are_all_scheduled = all(d.is_waiting for d in deliveries if d.status is S.PENDING)
        return NotificationStatus.CREATED if are_all_scheduled else NotificationStatus.QUEUED
    return _final_status(statuses - {S.CANCELLED, S.SUPPRESSED})


def _final_status(statuses: set[DeliveryStatus]) -> NotificationStatus:
    """Return the overall status when nothing is open; withdrawn channels do not count."""
    if not statuses:
        return NotificationStatus.CANCELLED
    if statuses <= {S.DELIVERED, S.READ}:
        return NotificationStatus.DELIVERED
    if statuses <= SUCCEEDED:
        return NotificationStatus.SENT
    if statuses & SUCCEEDED:
        return NotificationStatus.PARTIALLY_DELIVERED
    return NotificationStatus.FAILED if S.FAILED in statuses else NotificationStatus.EXPIRED


class BulkAction(StrEnum):
    """What a bulk operation does to each notification of its cohort."""

    RETRY = "retry"
    """Re-open the failed deliveries."""
    RESEND = "resend"
    """Say the same again in a new, linked notification."""
    CANCEL = "cancel"
    """Withdraw what has not been sent."""
    RESCHEDULE = "reschedule"
    """Send at another time what has not been tried."""
    RUN_NOW = "run_now"
    """Send now what was to be sent later."""


class BulkStage(StrEnum):
    """Where a bulk operation stands."""

    PREVIEWING = "previewing"
    """The cohort is being counted and judged; nothing is done to it."""
    READY = "ready"
    """A person has to look at the preview and start it."""
    RUNNING = "running"
    PAUSED = "paused"
    CANCELLED = "cancelled"
    """Stopped by a person; what was done stays done."""
    COMPLETED = "completed"


class BulkOutcome(StrEnum):
    """What became of one delivery in a bulk operation."""

    WAITING = "waiting"
    """It was in the preview; its turn has not come."""
    BEGUN = "begun"
    """A worker is about to act, or stopped while it did."""
    DONE = "done"
    SKIPPED = "skipped"
    """Left out: by its verdict, or because it has changed since the preview."""
    FAILED = "failed"
    """It was to be done, and could not be."""


BULK_TRANSITIONS: dict[BulkStage, frozenset[BulkStage]] = {
    BulkStage.PREVIEWING: frozenset({BulkStage.READY, BulkStage.CANCELLED}),
    BulkStage.READY: frozenset({BulkStage.RUNNING, BulkStage.CANCELLED}),
    BulkStage.RUNNING: frozenset({BulkStage.PAUSED, BulkStage.CANCELLED, BulkStage.COMPLETED}),
    BulkStage.PAUSED: frozenset({BulkStage.RUNNING, BulkStage.CANCELLED}),
    BulkStage.CANCELLED: frozenset(),
    BulkStage.COMPLETED: frozenset(),
}
"""Every step a bulk operation may take."""
ACTIVE_BULK_STAGES = frozenset({BulkStage.PREVIEWING, BulkStage.RUNNING})
"""A worker has something to do."""
FINAL_BULK_OUTCOMES = frozenset({BulkOutcome.DONE, BulkOutcome.SKIPPED, BulkOutcome.FAILED})
"""Nothing more becomes of it."""
