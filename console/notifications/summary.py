"""Describes each delivery of a notification in one sentence. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.errors import RECEIPT_FAILURES, FailureCode
from domain.states import Channel, DeliveryStatus

from ..texts.failure_codes import explain
from ..texts.labels import CHANNELS, provider_label
from ..texts.wait_reasons import HELD, WAIT_LABELS, WaitReason, wait_reason
from ..widgets.formats import clock, duration

S = DeliveryStatus
Delivery = Mapping[str, Any]
_SUMMARY_ORDER = (
    *(S.FAILED, S.UNKNOWN, S.SENDING, S.PENDING, S.EXPIRED),
    *(S.SUPPRESSED, S.CANCELLED, S.SENT, S.DELIVERED, S.READ),
)
"""Order of the deliveries: problems first."""


def summarize(document: Mapping[str, Any], *, now: datetime) -> SafeString:
    """Return a sentence for each delivery, problems first."""
    deliveries = sorted(
        document["delivery"], key=lambda d: _SUMMARY_ORDER.index(DeliveryStatus(d["status"]))
    )
    return format_html_join(
        " ", "{}", ((summarize_delivery(delivery, now=now),) for delivery in deliveries)
    )


def summarize_delivery(delivery: Delivery, *, now: datetime) -> SafeString:
    """Return a sentence on the state of a delivery and its next step."""
    return format_html("{} {}", CHANNELS[Channel(delivery["channel"])], _predicate(delivery, now))


def _predicate(delivery: Delivery, now: datetime) -> str:
    status = DeliveryStatus(delivery["status"])
    meaning = explain(delivery.get("failure_code")).meaning
    if status is S.PENDING:
        return _pending(delivery, now=now)
    if status is S.FAILED:
        return _failed(delivery)
    if status is S.UNKNOWN:
        return format_html(
            "may have been sent: {}. The type's policy applies at {} unless a receipt arrives "
            "first.",
            meaning,
            clock(delivery["next_attempt_at"], now=now),
        )
    predicates = {
        S.SENDING: "is being sent",
        S.SENT: f"sent by {provider_label(delivery.get('provider'))}; no delivery receipt yet",
        S.DELIVERED: "delivered",
        S.READ: "delivered and read",
        S.CANCELLED: "cancelled",
    }
    return f"{predicates.get(status, f'not sent: {meaning}')}."


def _pending(delivery: Delivery, *, now: datetime) -> str:
    at = delivery["next_attempt_at"]
    reason = wait_reason(delivery, now=now)
    # A wait has a code too, which explains it and no attempt.
    if reason is WaitReason.RECEIPT:
        return format_html("unknown: awaiting a receipt until {}.", clock(at, now=now))
    if reason not in HELD and (count := delivery["attempt_count"]):
        meaning = explain(delivery.get("failure_code")).meaning
        then = format_html("Retries at {}.", clock(at, now=now)) if at > now else "A retry is due."
        return format_html("failed {}: {}. {}", _times(count), meaning, then)
    if reason is WaitReason.FALLBACK:
        return format_html(
            "held: fallback at {} unless another channel delivers.", clock(at, now=now)
        )
    if reason in HELD:
        label = WAIT_LABELS[reason][0]
        return format_html("{} until {}.", label[0].lower() + label[1:], clock(at, now=now))
    if at > now:
        return format_html("scheduled for {}.", clock(at, now=now))
    return f"queued for {duration((now - at).total_seconds())}."


def _failed(delivery: Delivery) -> str:
    count, code = delivery["attempt_count"], delivery.get("failure_code")
    how = f"failed {_times(count)}" if count else "not sent"
    if code == FailureCode.BOUNCED:
        how = "bounced"
    elif code in RECEIPT_FAILURES:
        how = "sent, but not delivered"
    return f"{how}: {explain(code).meaning}. No more retries."


def _times(count: int) -> str:
    return {1: "once", 2: "twice"}.get(count, f"{count} times")
