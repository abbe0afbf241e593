"""What became of a notification, in sentences a support person can read out. Pure."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from domain.errors import RECEIPT_FAILURES
from domain.states import Channel, DeliveryStatus

from ..widgets.labels import CHANNELS, explain

S = DeliveryStatus
Delivery = Mapping[str, Any]
_PROVIDER_NAMES = {
    "sendgrid": "SendGrid",
    "smtp": "the mail server",
    "inbox": "the inbox",
    "fcm": "FCM",
    "whatsapp": "WhatsApp",
    **dict.fromkeys(("sandbox-sendgrid", "sandbox-fcm", "sandbox-whatsapp"), "the sandbox"),
}
PROVIDER_LABELS: Mapping[str, str] = {
    "sendgrid": "SendGrid",
    "smtp": "Mail server",
    "fcm": "FCM",
    "whatsapp": "WhatsApp",
    "inbox": "Inbox",
    "sandbox-sendgrid": "Sandbox (mail)",
    "sandbox-fcm": "Sandbox (push)",
    "sandbox-whatsapp": "Sandbox (WhatsApp)",
}
"""Every provider's name as a label."""
_SUMMARY_ORDER = (
    *(S.FAILED, S.UNKNOWN, S.SENDING, S.PENDING, S.EXPIRED),
    *(S.SUPPRESSED, S.CANCELLED, S.SENT, S.DELIVERED, S.READ),
)
"""Which channel is told about first."""


def removal_notice(document: Mapping[str, Any]) -> str:
    """Return that a notification's content was removed, when and why."""
    at, category = document["content_removed_at"], document["category"]
    return (
        f"Content removed on {at.day} {at:%b %Y}, as the retention of {category} notifications "
        "says: what it said, the data from the app, addresses, and what providers answered in "
        "words."
    )


def summarize(document: Mapping[str, Any], *, now: datetime) -> str:
    """Return what became of a notification, what went wrong first."""
    deliveries = sorted(
        document["delivery"], key=lambda d: _SUMMARY_ORDER.index(DeliveryStatus(d["status"]))
    )
    return " ".join(summarize_delivery(delivery, now=now) for delivery in deliveries)


def summarize_delivery(delivery: Delivery, *, now: datetime) -> str:
    """Return what became of one channel, and what comes next."""
    name = CHANNELS[Channel(delivery["channel"])]
    status = DeliveryStatus(delivery["status"])
    if status is S.PENDING:
        return _pending(name, delivery, now=now)
    if status is S.FAILED:
        return _failed(name, delivery)
    meaning = explain(delivery.get("failure_code")).meaning
    words = {
        S.SENDING: "is being sent right now",
        S.UNKNOWN: f"may have gone: {meaning}",
        S.SENT: f"was handed to {provider_name(delivery.get('provider'))}; "
        "there is no word yet that it arrived",
        S.DELIVERED: "was delivered",
        S.READ: "was delivered and read",
        S.CANCELLED: "was withdrawn before it was sent",
    }
    text = f"{name} {words.get(status, f'was not sent: {meaning}')}."
    if status is S.UNKNOWN:
        then = time_of_day(delivery["next_attempt_at"], now=now)
        return f"{text} What to do is decided {then}, unless the provider reports before."
    return text


def time_of_day(at: datetime, *, now: datetime) -> str:
    """Return an instant in words: "at 15:04 UTC", with the day unless it is today."""
    day = "" if at.date() == now.date() else f" on {at.day} {at:%B}"
    return f"at {at:%H:%M} UTC{day}"


def provider_name(stored: str | None) -> str | None:
    """Return a provider's name as people know it."""
    return _PROVIDER_NAMES.get(stored, stored) if stored else None


def count_of(count: int) -> str:
    """Return how often in words."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def duration(seconds: float) -> str:
    """Return a span of time in the largest fitting unit: "3 minutes"."""
    for unit, length in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds >= length:
            count = int(seconds // length)
            return f"{count} {unit}{'s' if count != 1 else ''}"
    count = max(int(seconds), 0)
    return f"{count} second{'s' if count != 1 else ''}"


def _pending(name: str, delivery: Delivery, *, now: datetime) -> str:
    at = delivery["next_attempt_at"]
    if delivery["attempt_count"]:
        meaning = explain(delivery.get("failure_code")).meaning
        then = (
            f"will be tried again {time_of_day(at, now=now)}"
            if at > now
            else "is due to be tried again"
        )
        return f"{name} failed {count_of(delivery['attempt_count'])}: {meaning}. It {then}."
    if at > now:
        return f"{name} will be sent {time_of_day(at, now=now)}."
    return f"{name} has been due for {duration((now - at).total_seconds())} and waits for a worker."


def _failed(name: str, delivery: Delivery) -> str:
    count = delivery["attempt_count"]
    how = f"failed {count_of(count)}" if count else "could not be sent"
    if delivery.get("failure_code") in RECEIPT_FAILURES:
        how = "was sent and did not arrive"
    meaning = explain(delivery.get("failure_code")).meaning
    return f"{name} {how}: {meaning}. Nothing more will be tried."
