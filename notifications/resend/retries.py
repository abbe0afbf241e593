"""Which deliveries a retry can send again: the rule of ``can_retry`` and of the retry itself."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from bson import ObjectId

from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from recipients import queries as recipients

from ..store import Document, is_content_removed, is_secret_expired, recipient_of
from .assessment import suppression_reason

S = DeliveryStatus
BOUNCED_IN_TEST_MODE = "The address bounced."
"""A bounce of the sandbox suppresses no address, so its failure is the only trace."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryChoice:
    """The channels of a notification that a retry would send on."""

    channels: tuple[Channel, ...] = ()
    """Failed, or waiting for another try."""
    refused: Mapping[Channel, str] = field(default_factory=dict)
    """Failed or waiting channels whose address is suppressed or bounced, with the reason."""

    def refusal(self, channels: Sequence[Channel] | None) -> str | None:
        """Return why a retry on these channels, or on all, is refused for their addresses.

        A channel that the caller names is never left out silently; of all channels, those that
        can be retried are.
        """
        if channels is None and self.channels:
            return None
        named = self.refused if channels is None else channels
        return next((self.refused[one] for one in named if one in self.refused), None)


def retry_choices(documents: Sequence[Document], *, now: datetime) -> dict[ObjectId, RetryChoice]:
    """Return what a retry of each notification would send, by id.

    Reads the recipients and suppressions of those with a candidate, in two queries; none without.
    Raises PyMongoError.
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
        found[document["_id"]] = RetryChoice(channels=tuple(channels), refused=refused)
    return found


def _candidates(document: Document, *, now: datetime) -> list[Mapping[str, Any]]:
    """Return the deliveries that have failed or wait for another try; none of a lost content."""
    expires_at = document.get("expires_at")
    if (
        (expires_at is not None and expires_at <= now)
        or not document["is_active"]
        or is_content_removed(document)
        or is_secret_expired(document)
    ):
        return []
    return [one for one in document["delivery"] if _has_failed(one) or _awaits_retry(one, now=now)]


def _has_failed(delivery: Mapping[str, Any]) -> bool:
    return bool(delivery["status"] == S.FAILED)


def _awaits_retry(delivery: Mapping[str, Any], *, now: datetime) -> bool:
    return bool(
        delivery["status"] == S.PENDING
        and delivery["attempt_count"] > 0
        and delivery.get("claim") is None
        and delivery["next_attempt_at"] > now
    )


def _is_test_bounce(document: Document, delivery: Mapping[str, Any]) -> bool:
    code = delivery.get("failure_code")
    return bool(document.get("is_test")) and code == FailureCode.BOUNCED
