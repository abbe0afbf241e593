"""The sentence that summarizes a delivery, and the headline of a notification."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any

from django.utils.html import strip_tags

from console.notifications import summary
from domain.channels import Channel
from domain.states import DeliveryStatus
from tests.support.tables import each_case

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
S = DeliveryStatus


def text_of(html: str) -> str:
    """Return the text of a sentence with time elements."""
    return unescape(strip_tags(html))


def delivery(status: DeliveryStatus, **fields: Any) -> Mapping[str, Any]:
    default = {
        "channel": "email",
        "status": status.value,
        "attempt_count": 1,
        "uncounted_attempts": 0,
        "provider": "sendgrid",
        "next_attempt_at": NOW + timedelta(minutes=5),
    }
    return default | fields


SENTENCES = [
    (
        delivery(S.FAILED, attempt_count=4, failure_code="provider_error"),
        "Email failed 4 times: provider error (5xx). No more retries.",
    ),
    (delivery(S.FAILED, failure_code="bounced"), "Email bounced: hard bounce. No more retries."),
    (
        delivery(S.FAILED, failure_code="reported_failed"),
        "Email sent, but not delivered: reported as failed by the provider. No more retries.",
    ),
    (
        delivery(S.FAILED, attempt_count=0, failure_code="channel_unavailable", channel="push"),
        "Push not sent: provider unavailable. No more retries.",
    ),
    (
        delivery(S.PENDING, attempt_count=2, failure_code="provider_error"),
        "Email failed twice: provider error (5xx). Retry at 12:05.",
    ),
    (
        delivery(S.PENDING, attempt_count=2, failure_code="rate_limited"),
        "Email failed twice: rate limited by the provider. Retry at 12:05.",
    ),
    (
        delivery(
            S.PENDING, attempt_count=2, failure_code="rate_limited", held_reason="rate_limited"
        ),
        "Email isn't sent yet. Rate limited until 12:05.",
    ),
    (
        delivery(S.PENDING, failure_code="decryption_failed"),
        "Email isn't sent yet. Held: decryption failed.",
    ),
    (
        delivery(S.PENDING, failure_code="quiet_hours"),
        "Email isn't sent yet. Quiet hours until 12:05.",
    ),
    (
        delivery(S.PENDING, failure_code="outcome_unknown"),
        "Email may have been sent. Unknown: awaiting a receipt until 12:05.",
    ),
    (
        delivery(S.PENDING, failure_code="timeout", next_attempt_at=NOW),
        "Email failed once: no response after sending. A retry is due.",
    ),
    (
        delivery(S.PENDING, attempt_count=0, next_attempt_at=NOW + timedelta(days=2)),
        "Email isn't sent yet. Scheduled for 2026-11-23 12:00.",
    ),
    (
        delivery(S.PENDING, attempt_count=0, failure_code="quiet_hours"),
        "Email isn't sent yet. Quiet hours until 12:05.",
    ),
    (
        delivery(S.PENDING, attempt_count=0, step=2),
        "Email isn't sent yet. Held: later step at 12:05.",
    ),
    (
        delivery(S.PENDING, attempt_count=0, next_attempt_at=NOW - timedelta(minutes=3)),
        "Email queued for 3 min.",
    ),
    (delivery(S.SENDING), "Email is being sent."),
    (
        delivery(S.UNKNOWN, failure_code="timeout"),
        (
            "Email may have been sent: no response after sending. The type's policy applies at "
            "12:05 unless a receipt arrives first."
        ),
    ),
    (delivery(S.SENT), "Email sent by SendGrid; no delivery receipt yet."),
    (delivery(S.DELIVERED), "Email delivered."),
    (delivery(S.READ, channel="in_app"), "In-app delivered and read."),
    (delivery(S.CANCELLED), "Email cancelled."),
    (delivery(S.EXPIRED, failure_code="expired"), "Email not sent: expired before sending."),
    (
        delivery(S.SUPPRESSED, failure_code="suppressed", channel="whatsapp"),
        "WhatsApp not sent: address suppressed.",
    ),
]


@each_case("given, expected", SENTENCES)
def test_delivery_is_summarized_in_one_sentence(given: Mapping[str, Any], expected: str) -> None:
    assert text_of(summary.summarize_delivery(given, pauses={}, now=NOW)) == expected


def test_pause_is_named_with_who_paused_it_and_why() -> None:
    held = delivery(S.PENDING, attempt_count=0, failure_code="channel_unavailable")
    paused = held | {"held_reason": "provider_paused"}
    pauses = {Channel.EMAIL: "SendGrid paused by maria (OPS-12)"}
    assert text_of(summary.summarize_delivery(paused, pauses=pauses, now=NOW)) == (
        "Email isn't sent yet. Held: SendGrid paused by maria (OPS-12) (next check 12:05)."
    )
    assert text_of(summary.summarize_delivery(paused, pauses={}, now=NOW)) == (
        "Email isn't sent yet. Held: provider paused (next check 12:05)."
    )


def test_headline_starts_with_failures() -> None:
    in_app, email = (
        delivery(S.DELIVERED, channel="in_app"),
        delivery(S.FAILED, failure_code="rejected"),
    )
    document: Any = {"delivery": [in_app, email]}
    assert text_of(summary.summarize(document, pauses={}, now=NOW)) == (
        "Email failed once: message rejected by the provider. No more retries. In-app delivered."
    )
