"""Finds deliveries that a retry can send, or a resend once their suppressions are lifted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from bson import ObjectId

from devices import queries as devices
from domain.channels import PUSH, Channel
from domain.errors import MUTED_BY_DEVICES, UNREACHED, FailureCode
from domain.states import SUCCEEDED, DeliveryStatus
from notifications.documents.notification import DeliveryDocument, NotificationDocument
from notifications.store.encrypted_content import is_secret_expired
from notifications.store.reading import recipient_of
from notifications.store.removal import is_content_removed
from recipients import queries as recipients
from recipients import suppressions
from recipients.queries import RecipientSnapshot

from .assessment import accepts_push, push_devices, read_push_targets, suppression_reason

S = DeliveryStatus
BOUNCED_IN_TEST_MODE = "The address bounced."
"""Refusal after a bounce in test mode, which suppresses no address."""
LIFTABLE_STATUSES = frozenset({S.FAILED, S.SUPPRESSED})
"""Statuses of deliveries that are resent once the suppression of their address is lifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChoice:
    """What a retry of a notification would send, and what it can't."""

    channels: tuple[Channel, ...] = ()
    """Channels to send on: failed, waiting for another attempt, or suppressed without a reason
    that still holds."""
    waiting: tuple[Channel, ...] = ()
    """Those of ``channels`` that wait for another attempt."""
    refused: Mapping[Channel, str] = field(default_factory=dict)
    """Channels whose address is suppressed or bounced, or whose recipient opted out, with the
    reason."""
    unreachable: Mapping[Channel, str] = field(default_factory=dict)
    """Suppressed channels that still have no address or device, with the reason."""
    addresses: Mapping[Channel, str] = field(default_factory=dict)
    """Registered addresses of those of ``channels`` for which the notification has none."""

    def covers(self, delivery: DeliveryDocument) -> bool:
        """Return whether a retry concerns a delivery: it sends it, or says why it doesn't."""
        return delivery["status"] == S.FAILED or delivery["channel"] in self.channels

    def obstacle(self, channels: Sequence[Channel] | None) -> str | None:
        """Return why these channels, or all for None, can't be reached, as :meth:`refusal` does."""
        return self._first_of(self.unreachable, channels)

    def refusal(self, channels: Sequence[Channel] | None) -> str | None:
        """Return why to refuse a retry on these channels, or on all for None. None allows it.

        A retry of named channels is refused if one of them is. A retry of all leaves refused
        channels out and is refused if none remains.
        """
        return self._first_of(self.refused, channels)

    def _first_of(
        self, reasons: Mapping[Channel, str], channels: Sequence[Channel] | None
    ) -> str | None:
        if channels is None and self.channels:
            return None
        named = reasons if channels is None else channels
        return next((reasons[channel] for channel in named if channel in reasons), None)


def retry_choices(
    documents: Sequence[NotificationDocument], *, now: datetime
) -> dict[ObjectId, RetryChoice]:
    """Return what a retry of each notification would send, by ID.

    Takes two reads if a delivery has failed, waits for another attempt, or was suppressed, and one
    for suppressed pushes; otherwise none. Raises PyMongoError.
    """
    candidates = {
        document["_id"]: deliveries
        for document in documents
        if (deliveries := _candidates(document, now=now))
    }
    found = {document["_id"]: RetryChoice() for document in documents}
    open_documents = [document for document in documents if document["_id"] in candidates]
    snapshot = recipients.load_snapshot(
        [document["user_id"] for document in open_documents if document.get("user_id")],
        {
            (delivery["channel"], address)
            for document in open_documents
            for delivery in candidates[document["_id"]]
            if (address := recipient_of(document).address(Channel(delivery["channel"])))
        },
        now=now,
    )
    registered = _registered_addresses(open_documents, candidates, snapshot)
    suppressed = recipients.find_suppressed(
        {(channel.value, address) for (_, channel), address in registered.items()}, now=now
    )
    snapshot = replace(snapshot, suppressed={**snapshot.suppressed, **suppressed})
    targets = read_push_targets(
        [
            document
            for document in open_documents
            if any(_is_suppressed_push(delivery) for delivery in candidates[document["_id"]])
        ]
    )
    for document in open_documents:
        key, deliveries = document["_id"], candidates[document["_id"]]
        own = {channel: address for (of, channel), address in registered.items() if of == key}
        found[key] = _choose(document, deliveries, snapshot, targets, own)
    return found


def _choose(
    document: NotificationDocument,
    deliveries: Sequence[DeliveryDocument],
    snapshot: RecipientSnapshot,
    targets: devices.PushTargets,
    registered: Mapping[Channel, str],
) -> RetryChoice:
    channels: list[Channel] = []
    refused: dict[Channel, str] = {}
    unreachable: dict[Channel, str] = {}
    for delivery in deliveries:
        channel = Channel(delivery["channel"])
        address = registered.get(channel)
        reason = suppression_reason(document, channel, snapshot, address=address)
        if reason is None and _is_test_bounce(document, delivery):
            reason = BOUNCED_IN_TEST_MODE
        if reason is None and _is_suppressed_push(delivery):
            found = push_devices(document, targets)
            if found and not any(accepts_push(device, document) for device in found):
                reason = MUTED_BY_DEVICES
        if reason is not None:
            refused[channel] = reason
        elif delivery["status"] == S.SUPPRESSED and not _is_reachable(
            document, channel, targets, address
        ):
            unreachable[channel] = channel.spec.reach.obstacle
        else:
            channels.append(channel)
    return RetryChoice(
        channels=tuple(channels),
        waiting=tuple(
            Channel(delivery["channel"])
            for delivery in deliveries
            if delivery["channel"] in channels and delivery["status"] == S.PENDING
        ),
        refused=refused,
        unreachable=unreachable,
        addresses={name: address for name, address in registered.items() if name in channels},
    )


def _registered_addresses(
    documents: Sequence[NotificationDocument],
    candidates: Mapping[ObjectId, Sequence[DeliveryDocument]],
    snapshot: RecipientSnapshot,
) -> dict[tuple[ObjectId, Channel], str]:
    """Return the registered addresses of suppressed deliveries that were accepted without one."""
    found: dict[tuple[ObjectId, Channel], str] = {}
    for document in documents:
        known, own = snapshot.registered.get(document.get("user_id") or ""), recipient_of(document)
        for delivery in candidates[document["_id"]] if known is not None else ():
            channel = Channel(delivery["channel"])
            address = known.address(channel) if known is not None else None
            if delivery["status"] == S.SUPPRESSED and address and own.address(channel) is None:
                found[document["_id"], channel] = address
    return found


def _is_reachable(
    document: NotificationDocument,
    channel: Channel,
    targets: devices.PushTargets,
    registered: str | None,
) -> bool:
    return channel.can_reach(
        address=recipient_of(document).address(channel) or registered,
        user_id=document.get("user_id"),
        has_device=channel.has_devices and bool(push_devices(document, targets)),
    )


def _is_suppressed_push(delivery: DeliveryDocument) -> bool:
    return delivery["channel"] == PUSH and bool(delivery["status"] == S.SUPPRESSED)


def liftable_channels(document: NotificationDocument, *, now: datetime) -> list[Channel]:
    """Return the failed or suppressed channels whose suppression staff can lift for a resend.

    A recipient's opt-out can't be lifted. A deleted notification has no such channels. Takes one
    read for each address. Raises PyMongoError.
    """
    if not document["is_active"]:
        return []
    recipient = recipient_of(document)
    found = []
    for delivery in document["delivery"]:
        channel = Channel(delivery["channel"])
        address = recipient.address(channel)
        if address is None or delivery["status"] not in LIFTABLE_STATUSES:
            continue
        reasons = {
            suppression["reason"]
            for suppression in suppressions.find_by_address(channel=channel.value, address=address)
            if suppressions.is_active(suppression, now=now)
            and suppressions.is_category_blocked(
                document["category"], marketing_only=suppression["marketing_only"]
            )
        }
        if reasons and reasons <= suppressions.OPERATOR_REASONS:
            found.append(channel)
    return found


def _candidates(document: NotificationDocument, *, now: datetime) -> list[DeliveryDocument]:
    """Return the deliveries that a retry may send, of an unexpired notification with content."""
    expires_at = document.get("expires_at")
    if (
        (expires_at is not None and expires_at <= now)
        or not document["is_active"]
        or is_content_removed(document)
        or is_secret_expired(document)
    ):
        return []
    # A concurrent retry with a slightly later ``now`` made deliveries due at that time.
    due_until = max(now, document["updated_at"])
    return [
        delivery
        for delivery in document["delivery"]
        if delivery["status"] == S.FAILED
        or _was_unreached(document, delivery)
        or _awaits_retry(delivery, due_until=due_until)
    ]


def _was_unreached(document: NotificationDocument, delivery: DeliveryDocument) -> bool:
    """Return whether a delivery was suppressed, and no other step of its plan was sent."""
    is_replaced = "plan_until" in document and any(
        delivery["status"] in SUCCEEDED for delivery in document["delivery"]
    )
    return (
        delivery["status"] == S.SUPPRESSED
        and delivery.get("failure_code") in UNREACHED
        and not is_replaced
    )


def _awaits_retry(delivery: DeliveryDocument, *, due_until: datetime) -> bool:
    next_at = delivery.get("next_attempt_at")
    return (
        delivery["status"] == S.PENDING
        and delivery["attempt_count"] > 0
        and delivery.get("claim") is None
        and next_at is not None
        and next_at > due_until
    )


def _is_test_bounce(document: NotificationDocument, delivery: DeliveryDocument) -> bool:
    code = delivery.get("failure_code")
    return bool(document.get("is_test")) and code == FailureCode.BOUNCED
