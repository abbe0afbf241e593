"""What the console says: codes, sentences, concerns. No database."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import product
from typing import Any

import pytest

from console.home import issues
from console.notifications import summary
from console.notifications.filters import OVERALL_STATUSES
from console.widgets import labels
from console.widgets.labels import EXPLANATIONS, RESEND_RISKS
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, NotificationStatus, overall_status
from monitoring.dashboard import WorkSummary
from monitoring.failure_groups import FailureCount, FailureCounts
from notifications.resend.risk import RiskKind

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
S, F = DeliveryStatus, FailureCode


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


def test_every_code_and_state_has_words() -> None:
    assert set(EXPLANATIONS) == set(F)
    assert set(labels.STATUS_LABELS) == set(labels.STATUS_COLORS) == set(NotificationStatus)
    assert set(labels.DELIVERY_LABELS) == set(labels.DELIVERY_COLORS) == set(S)
    assert set(labels.CHANNELS) == set(labels.CHANNEL_ICONS) == set(Channel)
    assert set(RESEND_RISKS) == set(RiskKind)


@pytest.mark.parametrize("code", list(F))
def test_an_explanation_reads_as_a_sentence(code: FailureCode) -> None:
    known = EXPLANATIONS[code]
    assert known.meaning[0].islower()
    assert not known.meaning.endswith(".")
    assert known.advice[0].isupper()
    assert known.advice.endswith(".")


def test_a_code_of_another_release_is_no_error() -> None:
    assert labels.explain("brand_new").meaning == "for a reason we have no words for"
    assert labels.code_label("brand_new") == "Brand new"


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


QUIET = WorkSummary(due=0, oldest_due_at=None, scheduled=0, retrying=0, unknown=0, last_sweep=NOW)
NO_FAILURES = FailureCounts(groups=(), counted_since=None)


def failed(code: FailureCode, count: int, *, ago: timedelta = timedelta()) -> FailureCounts:
    """Return failures of one cause."""
    group = FailureCount(
        channel=Channel.EMAIL,
        code=code.value,
        count=count,
        first_at=NOW - timedelta(hours=20),
        last_at=NOW - ago,
    )
    return FailureCounts(groups=(group,), counted_since=None)


def test_nobody_is_needed_when_all_is_well() -> None:
    assert issues(backlog=QUIET, failures=NO_FAILURES, now=NOW) == []
    few = failed(F.PROVIDER_ERROR, 9)
    assert issues(backlog=QUIET, failures=few, now=NOW) == []


def test_a_missing_sweep_is_told() -> None:
    never = replace(QUIET, last_sweep=None)
    late = replace(QUIET, last_sweep=NOW - timedelta(minutes=4))
    assert [c.text for c in issues(backlog=never, failures=NO_FAILURES, now=NOW)] == [
        "No sweep yet: what no hint reaches waits."
    ]
    assert [c.text for c in issues(backlog=late, failures=NO_FAILURES, now=NOW)] == [
        "No sweep for 4 minutes: what no hint reaches waits."
    ]


def test_work_that_nobody_takes_is_told() -> None:
    waiting = replace(QUIET, due=3, oldest_due_at=NOW - timedelta(minutes=6))
    (concern,) = issues(backlog=waiting, failures=NO_FAILURES, now=NOW)
    assert (concern.color, concern.text) == ("danger", "Work has been due for 6 minutes.")


def test_a_cause_that_is_ours_is_told_however_rare() -> None:
    (concern,) = issues(backlog=QUIET, failures=failed(F.RENDER_FAILED, 1), now=NOW)
    assert concern.color == "danger"
    assert concern.text == (
        "Email failed 1 time in 24 hours: the message could not be made from its template "
        "(render failed)."
    )
    assert concern.list_query == "channel=email&code=render_failed"
    old = failed(F.RENDER_FAILED, 1, ago=timedelta(hours=2))
    assert [c.color for c in issues(backlog=QUIET, failures=old, now=NOW)] == ["warning"]


def test_many_recent_failures_of_one_cause_are_told_after_a_standstill() -> None:
    late = replace(QUIET, last_sweep=None)
    many = failed(F.PROVIDER_ERROR, 1_234)
    found = issues(backlog=late, failures=many, now=NOW)
    assert [c.color for c in found] == ["danger", "warning"]
    assert "1,234 times" in found[1].text
    long_ago = failed(F.PROVIDER_ERROR, 1_234, ago=timedelta(hours=2))
    assert issues(backlog=QUIET, failures=long_ago, now=NOW) == []


@dataclass(frozen=True)
class _State:
    status: DeliveryStatus
    attempt_count: int
    is_waiting: bool


def test_a_delivery_status_limits_the_overall_status() -> None:
    one = [_State(s, n, w) for s, n, w in product(S, (0, 1), (True, False))]
    seen: dict[DeliveryStatus, set[NotificationStatus]] = {status: set() for status in S}
    for states in [*product(one), *product(one, one), *product(one, one, one)]:
        overall = overall_status(states)
        for state in states:
            seen[state.status].add(overall)
    for status, possible in OVERALL_STATUSES.items():
        assert seen[status] <= possible, status
    # Nothing is in the table that does not help.
    for status in set(S) - set(OVERALL_STATUSES):
        assert len(seen[status]) > len(NotificationStatus) - 3
