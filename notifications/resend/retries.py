"""Finds deliveries that a retry can send, or a resend once their suppressions are lifted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import ObjectId

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from recipients import queries as recipients
from recipients import suppressions

from ..store import Document, is_content_removed, is_secret_expired, recipient_of
from .assessment import suppression_reason

S = DeliveryStatus
BOUNCED_IN_TEST_MODE = "The address bounced."
"""Refusal after a bounce in test mode, which suppresses no address."""
LIFTABLE_STATUSES = frozenset({S.FAILED, S.SUPPRESSED})
"""Statuses of deliveries that are resent once the suppression of their address is lifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChoice:
    """What a retry of a notification would send, and what it can't."""

    channels: tuple[Channel, ...] = ()
    """Channels to send on: failed, or waiting for another attempt."""
    waiting: tuple[Channel, ...] = ()
    """Those of ``channels`` that wait for another attempt."""
    refused: Mapping[Channel, str] = field(default_factory=dict)
    """Failed or waiting channels whose address is suppressed or bounced, with the reason."""

    def refusal(self, channels: Sequence[Channel] | None) -> str | None:
        """Return why to refuse a retry on these channels, or on all for None. None allows it.

        A retry of named channels is refused if one of them is. A retry of all leaves refused
        channels out and is refused if none remains.
        """
        if channels is None and self.channels:
            return None
        named = self.refused if channels is None else channels
        return next((self.refused[one] for one in named if one in self.refused), None)


def retry_choices(documents: Sequence[Document], *, now: datetime) -> dict[ObjectId, RetryChoice]:
    """Return what a retry of each notification would send, by ID.

    Takes two reads if a delivery has failed or waits for another attempt, otherwise none. Raises
    PyMongoError.
    """
    candidates = {
        document["_id"]: deliveries
        for document in documents
        if (deliveries := _candidates(document, now=now))
    }
    found = {document["_id"]: RetryChoice() for document in documents}
    open_documents = [one for one in documents if one["_id"] in candidates]
    snapshot = recipients.load_snapshot(
        [one["user_id"] for one in open_documents if one.get("user_id")],
        {
            (delivery["channel"], address)
            for one in open_documents
            for delivery in candidates[one["_id"]]
            if (address := recipient_of(one).address(Channel(delivery["channel"])))
        },
        now=now,
    )
    for document in open_documents:
        channels: list[Channel] = []
        refused: dict[Channel, str] = {}
        for delivery in candidates[document["_id"]]:
            channel = Channel(delivery["channel"])
            reason = suppression_reason(document, channel, snapshot)
            if reason is None and _is_test_bounce(document, delivery):
                reason = BOUNCED_IN_TEST_MODE
            if reason is None:
                channels.append(channel)
            else:
                refused[channel] = reason
        waiting = [
            Channel(one["channel"])
            for one in candidates[document["_id"]]
            if one["channel"] in channels and not _has_failed(one)
        ]
        found[document["_id"]] = RetryChoice(
            channels=tuple(channels), waiting=tuple(waiting), refused=refused
        )
    return found


def liftable_channels(document: Document, *, now: datetime) -> list[Channel]:
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
            one["reason"]
            for one in suppressions.find_by_address(channel=channel.value, address=address)
            if suppressions.is_active(one, now=now)
            and suppressions.is_category_blocked(
                document["category"], marketing_only=one["marketing_only"]
            )
        }
        if reasons and reasons <= suppressions.OPERATOR_REASONS:
            found.append(channel)
    return found


def _candidates(document: Document, *, now: datetime) -> list[Mapping[str, Any]]:
    """Return the failed and waiting deliveries that still have content and haven't expired."""
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
        one
        for one in document["delivery"]
        if _has_failed(one) or _awaits_retry(one, due_until=due_until)
    ]


def _has_failed(delivery: Mapping[str, Any]) -> bool:
    return bool(delivery["status"] == S.FAILED)


def _awaits_retry(delivery: Mapping[str, Any], *, due_until: datetime) -> bool:
    return bool(
        delivery["status"] == S.PENDING
        and delivery["attempt_count"] > 0
        and delivery.get("claim") is None
        and delivery["next_attempt_at"] > due_until
    )


def _is_test_bounce(document: Document, delivery: Mapping[str, Any]) -> bool:
    code = delivery.get("failure_code")
    return bool(document.get("is_test")) and code == FailureCode.BOUNCED
