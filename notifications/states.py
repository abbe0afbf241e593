"""The vocabulary of a notification and the states its deliveries may pass through. Pure.

The diagram and the mapping onto other vocabularies: docs/state_machine.md.
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


class Status(StrEnum):
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


def summary(deliveries: Sequence[HasDeliveryState]) -> Status:
    """Return the overall status of a notification with these deliveries, at least one.

    The same rule stands as an aggregation expression in :mod:`notifications.store.expressions`,
    which is what writes it; a test holds the two together.
    """
    statuses = {d.status for d in deliveries}
    if any(d.status is S.PENDING and d.attempt_count > 0 for d in deliveries):
        return Status.RETRYING
    if statuses & {S.SENDING, S.UNKNOWN}:
        return Status.PROCESSING
    if S.PENDING in statuses:
        waiting = all(d.is_waiting for d in deliveries if d.status is S.PENDING)
        return Status.CREATED if waiting else Status.QUEUED
    return _final_summary(statuses - {S.CANCELLED, S.SUPPRESSED})


def _final_summary(statuses: set[DeliveryStatus]) -> Status:
    """Return the overall status when nothing is open; withdrawn channels do not count."""
    if not statuses:
        return Status.CANCELLED
    if statuses <= {S.DELIVERED, S.READ}:
        return Status.DELIVERED
    if statuses <= SUCCEEDED:
        return Status.SENT
    if statuses & SUCCEEDED:
        return Status.PARTIALLY_DELIVERED
    return Status.FAILED if S.FAILED in statuses else Status.EXPIRED
