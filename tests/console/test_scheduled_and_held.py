"""Scheduled and held notifications: wait reasons, sending now, rescheduling, and cancelling."""

from datetime import datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from console.widgets import lists, window_list
from delivery import provider_pauses
from domain.channels import Channel
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from domain.time import utc_now
from domain.wait_reasons import WaitReason, find_waits, wait_condition
from notifications.store import leases
from notifications.store.claims import NotSent
from notifications.store.new_notifications import NewDelivery
from notifyproject.db.collections import collection
from tests.support.clients.console import listed
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

LIST = "/admin/notifications/waitingnotification/"
ONE = "/admin/notifications/notification/"
HOUR = timedelta(hours=1)
S = DeliveryStatus


def post(client: Client, url: str, form: dict[str, Any]) -> str:
    return client.post(url, form, follow=True).content.decode()


def scheduled(now: datetime, *, after: timedelta = HOUR, **fields: Any) -> Any:
    at = now + after
    document = factories.accepted(created_at=now, send_at=at, scheduled_at=at, **fields)
    return factories.read(document["_id"])


def not_sent(
    now: datetime, code: FailureCode, *, reason: str = "Later.", held: WaitReason | None = None
) -> Any:
    claim = factories.claimed(at=now, created_at=now)
    later = NotSent(claim, S.PENDING, code, reason, now + HOUR, held)
    leases.settle_not_sent([later], now=now)
    return factories.read(claim.notification_id)


def each_kind(now: datetime) -> dict[WaitReason, Any]:
    unavailable = FailureCode.CHANNEL_UNAVAILABLE
    later = NewDelivery(channel=Channel.PUSH, step=2, delay=HOUR)
    both = (NewDelivery(channel=Channel.EMAIL), later)
    with_fallback = factories.accepted(created_at=now, deliveries=both)
    sent = factories.start(factories.claim(with_fallback["_id"], at=now), at=now)
    leases.settle([factories.settlement(sent, S.SENT, at=now)], now=now)
    return {
        WaitReason.SCHEDULE: scheduled(now),
        WaitReason.QUIET_HOURS: not_sent(now, FailureCode.QUIET_HOURS),
        WaitReason.PROVIDER_PAUSED: not_sent(now, unavailable, held=WaitReason.PROVIDER_PAUSED),
        WaitReason.CIRCUIT_OPEN: not_sent(now, unavailable, held=WaitReason.CIRCUIT_OPEN),
        WaitReason.PROVIDER_UNAVAILABLE: not_sent(now, unavailable),
        WaitReason.RATE_LIMITED: not_sent(
            now, FailureCode.RATE_LIMITED, held=WaitReason.RATE_LIMITED
        ),
        WaitReason.DECRYPTION_FAILED: not_sent(now, FailureCode.DECRYPTION_FAILED),
        WaitReason.DAILY_UNITS: not_sent(now, FailureCode.OVER_DAILY_UNITS),
        WaitReason.RETRY: factories.settled(S.PENDING, at=now, created_at=now),
        WaitReason.STEP: factories.read(with_fallback["_id"]),
        WaitReason.RECEIPT: factories.settled(S.UNKNOWN, at=now, created_at=now),
        WaitReason.WORKER: factories.accepted(created_at=now),
    }


def test_wait_reasons_are_shown_and_can_be_filtered(console: Client) -> None:
    now = utc_now()
    for reason, document in each_kind(now).items():
        open_ones = [row(delivery) for delivery in document["delivery"]]
        assert [wait.reason for wait in find_waits(open_ones, now=now)] == [reason]
        assert listed(console, f"{LIST}?reason={reason.value}") == [document["_id"]], reason
        found = {"delivery": {"$elemMatch": wait_condition(reason, now=now)}}
        assert collection("notifications").count_documents(found) == 1
    shown = console.get(LIST).content.decode()
    for text in (
        "Quiet hours until",
        "Retry at",
        "Scheduled for",
        "Rate limited until",
        "Held: provider paused<",
        "Held: circuit open<",
        "Held: provider unavailable<",
    ):
        assert text in shown
    provider_pauses.pause("sendgrid", by="maria", reason="OPS-12", now=now)
    assert "Held: SendGrid paused by maria (OPS-12)" in console.get(LIST).content.decode()


def row(delivery: dict[str, Any]) -> Any:
    """Return a stored delivery as an object, as the rows of the list have it."""
    default = {
        "failure_code": None,
        "held_reason": None,
        "claim": None,
        "next_attempt_at": None,
    }
    return SimpleNamespace(**{**default, **delivery})


def test_list_is_ordered_by_due_time_without_ended_ones(console: Client) -> None:
    now = utc_now()
    later, sooner = scheduled(now, after=2 * HOUR), scheduled(now)
    factories.settled(S.FAILED, at=now, created_at=now)
    assert listed(console, LIST) == [sooner["_id"], later["_id"]]
    filtered = listed(console, f"{LIST}?priority=normal&channel=email")
    assert filtered == [sooner["_id"], later["_id"]]
    assert listed(console, f"{LIST}?q={later['_id']}") == [later["_id"]]
    page = console.get(f"{LIST}{later['_id']}/change/")
    assert page["Location"] == f"{ONE}{later['_id']}/change/?list=waitingnotification"


def test_rare_reason_is_searched_window_by_window(
    console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_list, "WINDOW", 3)
    now = utc_now()
    before = [scheduled(now, after=timedelta(minutes=n)) for n in range(1, 5)]
    rare = not_sent(now, FailureCode.RATE_LIMITED, held=WaitReason.RATE_LIMITED)
    for n in range(2, 6):
        scheduled(now, after=n * HOUR)
    first = console.get(f"{LIST}?reason=rate_limited")
    assert "No match in the next" in first.content.decode()
    assert "No results" not in first.content.decode()
    second = console.get(LIST + first.context["cl"].next_window_url)
    assert [row.pk for row in second.context["cl"].result_list] == [rare["_id"]]
    assert "Matches in the next" in second.content.decode()
    third = console.get(LIST + second.context["cl"].next_url)
    assert third.context["cl"].result_list == []
    assert third.context["cl"].next_window_url == ""
    assert "No results" in third.content.decode()
    back = console.get(LIST + second.context["cl"].previous_url).context["cl"]
    assert (back.result_list, back.next_window_url) == ([], back.previous_url)
    assert console.get(LIST + back.next_window_url).context["cl"].next_window_url == ""
    assert listed(console, LIST)[:4] == [document["_id"] for document in before]


def test_full_page_has_no_window_link(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window_list, "WINDOW", 4)
    monkeypatch.setattr(lists.ConsoleAdmin, "list_per_page", 2)
    now = utc_now()
    ids = [scheduled(now, after=n * HOUR)["_id"] for n in range(1, 8)]
    seen, url = [], "?reason=schedule"
    while url:
        page = console.get(LIST + url).context["cl"]
        seen += [row.pk for row in page.result_list]
        assert page.next_window_url == ""
        url = page.next_url
    assert seen == ids


def test_scheduled_notification_is_sent_now(console: Client) -> None:
    document = scheduled(utc_now())
    page = console.get(f"{ONE}{document['_id']}/change/").content.decode()
    assert "Send now" in page
    assert ">Reschedule</button>" in page
    url = f"{ONE}{document['_id']}/run/"
    assert "Send this notification now?" in console.post(url).content.decode()
    assert "1 notification is being sent." in post(console, url, {"confirmed": "yes"})
    assert factories.read(document["_id"])["status"] == "queued"
    assert LogEntry.objects.get().change_message == "Made due now."


def test_selected_notifications_are_sent_now(console: Client) -> None:
    now = utc_now()
    documents = [scheduled(now), not_sent(now, FailureCode.QUIET_HOURS)]
    ids = [str(document["_id"]) for document in documents]
    action = {"action": "run_selected", "_selected_action": ids, "confirmed": "yes"}
    assert "2 notifications are being sent." in post(console, LIST, action)
    assert all(factories.read(document["_id"])["due_at"] <= utc_now() for document in documents)


def test_scheduled_notification_is_rescheduled(console: Client) -> None:
    now = utc_now()
    document = scheduled(now)
    url = f"{ONE}{document['_id']}/reschedule/"
    assert 'type="datetime-local"' in console.post(url).content.decode()
    at = (now + 3 * HOUR).replace(second=0, microsecond=0)
    form = {"confirmed": "yes", "at": f"{at:%Y-%m-%dT%H:%M}"}
    assert "1 notification rescheduled." in post(console, url, form)
    assert factories.read(document["_id"])["due_at"] == at
    assert f"Rescheduled to {at:%Y-%m-%d %H:%M} UTC." in LogEntry.objects.get().change_message


@each_case(
    "at, problem",
    [
        ("", "No change: enter the time"),
        ("tomorrow", "No change: enter the time"),
        ("2020-01-01T09:00", "more than 5 minutes in the past"),
    ],
)
def test_invalid_time_is_refused(console: Client, at: str, problem: str) -> None:
    document = scheduled(utc_now())
    url = f"{ONE}{document['_id']}/reschedule/"
    assert problem in post(console, url, {"confirmed": "yes", "at": at})
    assert factories.read(document["_id"]) == document


def test_attempted_notification_is_not_rescheduled(console: Client) -> None:
    now = utc_now()
    document = factories.settled(S.PENDING, at=now, created_at=now)
    page = console.get(f"{ONE}{document['_id']}/change/").content.decode()
    assert "Send now" in page
    assert ">Reschedule</button>" not in page


def test_selected_notifications_are_cancelled(console: Client) -> None:
    documents = [scheduled(utc_now()) for _ in range(2)]
    ids = [str(document["_id"]) for document in documents]
    action = {"action": "cancel_selected", "_selected_action": ids, "confirmed": "yes"}
    assert "2 notifications cancelled." in post(console, LIST, action)
    assert listed(console, LIST) == []
