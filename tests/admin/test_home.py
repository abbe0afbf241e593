"""The figures, and the home page that shows them."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.test import Client

from notifications import figures, queries, store
from notifications.errors import FailureCode
from notifications.states import Channel, DeliveryStatus
from notifications.store import Reference, Report
from notifications.timing import utc_now
from notifyproject.db.collections import collection
from tests import factories

from .conftest import make_staff, signed_in

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus


@pytest.fixture
def now() -> datetime:
    """Give the middle of the present hour: an hour ago is in the one before."""
    return utc_now().replace(minute=30, second=0, microsecond=0)


def fail(at: datetime, code: FailureCode, **fields: Any) -> Any:
    """Return a notification that failed at an instant."""
    one = factories.started(at=at, created_at=at, **fields)
    store.settle([factories.settlement(one, S.FAILED, at=at, code=code)], now=at)
    return one.notification_id


def deliver(at: datetime) -> None:
    """Store a notification whose email is known to have arrived."""
    document = factories.settled(S.SENT, at=at, created_at=at)
    report = Report(
        reference=Reference(document["_id"], Channel.EMAIL, 1),
        status=S.DELIVERED,
        at=at,
        provider="sendgrid",
    )
    assert store.apply_report(report, now=at)


def test_traffic_counts_deliveries_by_hour_and_channel(now: datetime) -> None:
    hour_ago = now - timedelta(hours=1)
    deliver(now)
    factories.settled(S.SENT, at=hour_ago, created_at=hour_ago)
    fail(hour_ago, FailureCode.REJECTED)
    factories.accepted(created_at=now, channels=(Channel.EMAIL, Channel.IN_APP))
    too_old = now - timedelta(hours=24)
    factories.settled(S.SENT, at=too_old, created_at=too_old)

    traffic = figures.traffic(now=now)

    assert len(traffic.hours) == 24
    assert traffic.counted_since is None
    day = traffic.per_channel(since=min(traffic.hours))
    email = day[Channel.EMAIL]
    assert (email.sent, email.delivered, email.failed, email.open, email.total) == (2, 1, 1, 1, 4)
    assert email.success_rate == pytest.approx(2 / 3)
    assert (day[Channel.IN_APP].sent, day[Channel.IN_APP].success_rate) == (1, 1.0)
    assert day[Channel.PUSH].success_rate is None
    this_hour = traffic.per_channel(since=now.replace(minute=0))
    assert (this_hour[Channel.EMAIL].sent, this_hour[Channel.EMAIL].failed) == (1, 0)


def test_traffic_says_when_it_counts_a_part_only(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "TRAFFIC_CAP", 2)
    for minutes in range(3):
        factories.accepted(created_at=now - timedelta(minutes=minutes))
    traffic = figures.traffic(now=now)
    assert traffic.counted_since == now - timedelta(minutes=1)
    assert traffic.per_channel(since=min(traffic.hours))[Channel.EMAIL].open == 2


def test_failures_are_grouped_by_channel_and_code(now: datetime) -> None:
    for hours, code in ((3, FailureCode.REJECTED), (1, FailureCode.REJECTED)):
        fail(now - timedelta(hours=hours), code)
    fail(now, FailureCode.TIMEOUT, channel=Channel.PUSH, type="system_alert")
    fail(now - timedelta(hours=30), FailureCode.TIMEOUT)

    found = figures.failures(since=now - timedelta(hours=24))

    assert [(g.channel, g.code, g.count) for g in found.groups] == [
        (Channel.EMAIL, "rejected", 2),
        (Channel.PUSH, "timeout", 1),
    ]
    first = found.groups[0]
    assert (first.first_at, first.last_at) == (
        now - timedelta(hours=3),
        now - timedelta(hours=1),
    )
    assert (found.total, found.counted_since) == (3, None)
    only = figures.failures(since=now - timedelta(hours=24), match={"type": "system_alert"})
    assert [g.code for g in only.groups] == ["timeout"]
    before = figures.failures(since=now - timedelta(hours=40), until=now - timedelta(hours=24))
    assert (before.total, before.groups[0].code) == (1, "timeout")


def test_failures_say_when_they_count_a_part_only(
    now: datetime, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(figures, "FAILURE_CAP", 2)
    for hours in range(3):
        fail(now - timedelta(hours=hours), FailureCode.REJECTED)
    found = figures.failures(since=now - timedelta(hours=24))
    assert (found.total, found.counted_since) == (2, now - timedelta(hours=1))


def test_the_backlog_is_what_waits(now: datetime) -> None:
    empty = figures.backlog(now=now)
    assert (empty.due, empty.oldest_due_at, empty.last_sweep) == (0, None, None)
    hour_ago = now - timedelta(hours=1)
    factories.accepted(created_at=hour_ago)
    later = now + timedelta(hours=3)
    factories.accepted(created_at=now, send_at=later, scheduled_at=later)
    factories.settled(S.PENDING, at=now, created_at=now)
    factories.settled(S.UNKNOWN, at=now, created_at=now)
    collection("heartbeats").insert_one({"_id": "sweep", "at": now})

    backlog = figures.backlog(now=now)

    assert (backlog.due, backlog.oldest_due_at) == (1, hour_ago)
    assert (backlog.scheduled, backlog.retrying, backlog.unknown) == (1, 1, 1)
    assert backlog.last_sweep == now


def text_of(client: Client) -> str:
    return " ".join(client.get("/admin/").content.decode().split())


def test_home_says_that_nobody_is_needed(console: Client) -> None:
    collection("heartbeats").insert_one({"_id": "sweep", "at": utc_now()})
    page = text_of(console)
    assert "Nothing needs you now." in page
    assert "Nothing failed." in page


def test_home_shows_the_day(console: Client) -> None:
    now = utc_now()
    deliver(now)
    fail(now, FailureCode.REJECTED)
    context = console.get("/admin/").context
    email = context["channels"][0]
    assert (email["name"], email["today"].sent, email["day"].failed) == ("Email", 1, 1)
    assert context["sums"]["rate"] == "50.0 %"
    page = text_of(console)
    for words in (
        "No sweep yet: what no hint reaches waits.",
        "Email failed 1 time in 24 hours: the provider refuses this message (rejected).",
        "/admin/notifications/failednotification/?channel=email&amp;code=rejected",
        "The last 24 hours",
        "Retry queue",
        'data-type="bar"',
    ):
        assert words in page, words


def test_a_rate_is_100_percent_only_if_nothing_failed(console: Client) -> None:
    now = utc_now()
    factories.settled(S.SENT, at=now, created_at=now)
    assert console.get("/admin/").context["sums"]["rate"] == "100 %"


def test_home_says_when_it_counts_a_part_only(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = utc_now()
    assert "Counted from the newest" not in text_of(console)
    monkeypatch.setattr(figures, "TRAFFIC_CAP", 1)
    monkeypatch.setattr(queries, "COUNT_CAP", 1)
    factories.settled(S.PENDING, at=now, created_at=now)
    page = text_of(console)
    assert "Counted from the newest 1 notifications only" in page
    assert "1 or more" in page


def test_home_shows_figures_to_those_who_may_see_notifications(db: None) -> None:
    nobody = signed_in(make_staff("nobody"))
    page = text_of(nobody)
    assert "Choose a page in the menu." in page
    assert "The last 24 hours" not in page
