"""One sentence on a delivery, the headline of a notification, and spans of time."""

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from console.notifications import summary
from domain.states import DeliveryStatus

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
S = DeliveryStatus


def delivery(status: DeliveryStatus, **fields: Any) -> Mapping[str, Any]:
    """Return a delivery as it is stored."""
    default = {
        "channel": "email",
        "status": status.value,
        "attempt_count": 1,
        "excused_count": 0,
        "provider": "sendgrid",
        "next_attempt_at": NOW + timedelta(minutes=5),
    }
    return default | fields


SENTENCES = [
    (
        delivery(S.FAILED, attempt_count=4, failure_code="provider_error"),
        "Email failed 4 times: the provider had a problem of its own. Nothing more will be tried.",
    ),
    (
        delivery(S.FAILED, attempt_count=1, failure_code="bounced"),
        (
            "Email was sent and did not arrive: the receiving server says that the address does "
            "not exist. Nothing more will be tried."
        ),
    ),
    (
        delivery(S.FAILED, attempt_count=0, failure_code="channel_unavailable", channel="push"),
        (
            "Push could not be sent: no provider takes anything on this channel. "
            "Nothing more will be tried."
        ),
    ),
    (
        delivery(S.PENDING, attempt_count=2, failure_code="rate_limited"),
        (
            "Email failed twice: the provider asked us to slow down. "
            "It will be tried again at 12:05 UTC."
        ),
    ),
    (
        delivery(S.PENDING, attempt_count=1, failure_code="timeout", next_attempt_at=NOW),
        (
            "Email failed once: the provider took the message and never answered. "
            "It is due to be tried again."
        ),
    ),
    (
        delivery(S.PENDING, attempt_count=0, next_attempt_at=NOW + timedelta(days=2)),
        "Email will be sent at 12:00 UTC on 23 November.",
    ),
    (
        delivery(S.PENDING, attempt_count=0, next_attempt_at=NOW - timedelta(minutes=3)),
        "Email has been due for 3 minutes and waits for a worker.",
    ),
    (delivery(S.SENDING), "Email is being sent right now."),
    (
        delivery(S.UNKNOWN, failure_code="timeout"),
        (
            "Email may have gone: the provider took the message and never answered. "
            "What to do is decided at 12:05 UTC, unless the provider reports before."
        ),
    ),
    (
        delivery(S.SENT),
        "Email was handed to SendGrid; there is no word yet that it arrived.",
    ),
    (delivery(S.DELIVERED), "Email was delivered."),
    (delivery(S.READ, channel="in_app"), "In-app was delivered and read."),
    (delivery(S.CANCELLED), "Email was withdrawn before it was sent."),
    (
        delivery(S.EXPIRED, failure_code="expired"),
        "Email was not sent: its time was over before it could be sent.",
    ),
    (
        delivery(S.SUPPRESSED, failure_code="suppressed", channel="whatsapp"),
        "WhatsApp was not sent: the address is on the suppression list.",
    ),
]


@pytest.mark.parametrize(("one", "expected"), SENTENCES, ids=[s[:40] for _, s in SENTENCES])
def test_a_delivery_in_one_sentence(one: Mapping[str, Any], expected: str) -> None:
    assert summary.summarize_delivery(one, now=NOW) == expected


def test_the_headline_tells_what_went_wrong_first() -> None:
    document = {
        "delivery": [
            delivery(S.DELIVERED, channel="in_app"),
            delivery(S.FAILED, attempt_count=1, failure_code="rejected"),
        ]
    }
    assert summary.summarize(document, now=NOW) == (
        "Email failed once: the provider refuses this message. Nothing more will be tried. "
        "In-app was delivered."
    )


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-5, "0 seconds"),
        (1, "1 second"),
        (59, "59 seconds"),
        (60, "1 minute"),
        (7_300, "2 hours"),
        (86_400, "1 day"),
        (200_000, "2 days"),
    ],
)
def test_a_span_of_time_in_words(seconds: float, words: str) -> None:
    assert summary.duration(seconds) == words
