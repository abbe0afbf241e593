"""Describes each delivery of a notification in one sentence. Pure."""

from collections.abc import Iterable
from datetime import datetime

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.channels import Channel
from domain.errors import RECEIPT_FAILURES, FailureCode
from domain.states import DeliveryStatus
from domain.wait_reasons import WaitReason, find_waits, wait_reason
from notifications.documents.notification import DeliveryDocument, NotificationDocument

from ..texts.failure_codes import explain, explain_cause
from ..texts.labels import CHANNELS, provider_label
from ..widgets.formats import clock, duration
from ..widgets.waits import Pauses, wait_text

S = DeliveryStatus
_SUMMARY_ORDER = (
    S.FAILED,
    S.UNKNOWN,
    S.SENDING,
    S.PENDING,
    S.EXPIRED,
    S.SUPPRESSED,
    S.CANCELLED,
    S.MERGED,
    S.SENT,
    S.DELIVERED,
    S.READ,
)
"""Order of the deliveries: problems first."""


def problems_first(deliveries: Iterable[DeliveryDocument]) -> list[DeliveryDocument]:
    """Return the deliveries, those that didn't reach the recipient first."""
    return sorted(deliveries, key=lambda d: _SUMMARY_ORDER.index(DeliveryStatus(d["status"])))


def summarize(document: NotificationDocument, *, pauses: Pauses, now: datetime) -> SafeString:
    """Return a sentence for each delivery, problems first."""
    lines = (
        (summarize_delivery(delivery, goal=document.get("plan_until"), pauses=pauses, now=now),)
        for delivery in problems_first(document["delivery"])
    )
    return format_html_join(" ", "{}", lines)


def summarize_delivery(
    delivery: DeliveryDocument, *, goal: str | None = None, pauses: Pauses, now: datetime
) -> SafeString:
    """Return a sentence on the state of a delivery, and on why and until when it waits.

    ``goal`` is the goal of the notification's plan.
    """
    predicate = _predicate(delivery, goal, pauses, now)
    return format_html("{} {}", CHANNELS[Channel(delivery["channel"])], predicate)


def _predicate(delivery: DeliveryDocument, goal: str | None, pauses: Pauses, now: datetime) -> str:
    status = DeliveryStatus(delivery["status"])
    code = delivery.get("failure_code")
    meaning = explain(code).meaning
    if status is S.EXPIRED and delivery.get("held_reason"):
        meaning = explain_cause(code, delivery.get("failure_reason")).meaning
    if status is S.PENDING:
        return _pending(delivery, goal, pauses, now=now)
    if status is S.FAILED:
        return _failed(delivery)
    if status is S.UNKNOWN:
        return format_html(
            "may have been sent: {}. The type's policy applies at {} unless a receipt arrives "
            "first.",
            meaning,
            clock(delivery.get("next_attempt_at") or now, now=now),
        )
    predicates = {
        S.SENDING: "is being sent",
        S.SENT: f"sent by {provider_label(delivery.get('provider'))}; no delivery receipt yet",
        S.DELIVERED: "delivered",
        S.READ: "delivered and read",
        S.CANCELLED: "cancelled",
        S.MERGED: "sent in a digest",
    }
    return f"{predicates.get(status, f'not sent: {meaning}')}."


def _pending(delivery: DeliveryDocument, goal: str | None, pauses: Pauses, *, now: datetime) -> str:
    at, channel = delivery.get("next_attempt_at") or now, Channel(delivery["channel"])
    reason = wait_reason(delivery, now=now)
    if reason is WaitReason.DIGEST:
        [wait] = find_waits([delivery], now=now)
        at = wait.until or at
    count = delivery["attempt_count"]
    if reason is WaitReason.WORKER:
        if not count:
            return f"queued for {duration((now - at).total_seconds())}."
        meaning = explain(delivery.get("failure_code")).meaning
        return f"failed {_times(count)}: {meaning}. A retry is due."
    text = wait_text(reason, channel, at, goal=goal, pauses=pauses, now=now)
    if reason is WaitReason.RETRY:
        meaning = explain(delivery.get("failure_code")).meaning
        return format_html("failed {}: {}. {}.", _times(count), meaning, text)
    if reason is WaitReason.RECEIPT:
        return format_html("may have been sent. {}.", text)
    return format_html("isn't sent yet. {}.", text)


def _failed(delivery: DeliveryDocument) -> str:
    count, code = delivery["attempt_count"], delivery.get("failure_code")
    how = f"failed {_times(count)}" if count else "not sent"
    if code == FailureCode.BOUNCED:
        how = "bounced"
    elif code in RECEIPT_FAILURES:
        how = "sent, but not delivered"
    return f"{how}: {explain(code).meaning}. No more retries."


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
