"""The test clock: what is due by a test client's own time happens at once, and only that."""

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from pymongo import monitoring

from delivery import pipeline, sweeper, test_clock
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.queues import DIGESTS
from domain.time import utc_now
from notifications.catalog import types
from notifications.queueing import wakeups
from notifications.receipts import processor
from notifications.store import leases, test_clocks
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind, SendRequest, SendResult
from tests.support.broker_messages import queued_messages
from tests.support.clients.api import App, new_app, pointers
from tests.support.clients.inbox import InboxUser
from tests.support.clients.live_data import Untouched, seed
from tests.support.factories import notifications as factories
from tests.support.fakes import provider as scripted
from tests.support.fakes.provider import ScriptedProvider
from tests.support.tables import each_case
from tests.support.threads import at_once

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
Events = list[tuple[str, str | None]]


@pytest.fixture
def with_own_types(
    db: None, broker: Any, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> Iterator[App]:
    """Return a test client. Its messages go to the scripted provider, without receipts."""
    monkeypatch.setattr(test_clock, "RECEIPT_SECONDS", 0.0)
    # However slow the machine is.
    monkeypatch.setattr(test_clock, "BUDGET_SECONDS", 600.0)
    monkeypatch.setattr(test_clock, "LEASE_WAIT_SECONDS", 600.0)
    yield new_app("tester", is_test=True)
    types.invalidate_types()


@pytest.fixture
def tester(shipped_types: None, with_own_types: App) -> App:
    return with_own_types


def move(app: App, **to: str) -> dict[str, Any]:
    answer = app.post("/test/clock", to)
    assert answer.status_code == 200, answer.json()
    moved: dict[str, Any] = answer.json()
    assert moved["is_complete"]
    return moved


def events(moved: dict[str, Any]) -> Events:
    return [(one["event"], one["channel"]) for one in moved["happened"]]


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


def shown(app: App, sent: Any) -> dict[str, Any]:
    found: dict[str, Any] = app.get(f"/notifications/{sent.json()['id']}").json()
    return found


def statuses(app: App, sent: Any) -> dict[str, str]:
    return {one["channel"]: one["status"] for one in shown(app, sent)["delivery"]}


def later(**ahead: float) -> str:
    return (utc_now() + timedelta(**ahead)).isoformat(timespec="milliseconds")


def test_schedules_are_sent_in_their_order_and_at_their_time(
    tester: App, fcm: ScriptedProvider
) -> None:
    times = {days: later(days=days) for days in (3, 1, 2, 5)}
    sent = {
        days: tester.notify(user_id=f"in-{days}", channels=["email"], scheduled_at=when)
        for days, when in times.items()
    }
    moved = move(tester, to=times[3])
    assert [one["user_id"] for one in moved["happened"]] == ["in-1", "in-2", "in-3"]
    assert {one["event"] for one in moved["happened"]} == {"sent"}
    for days in (1, 2, 3):
        [delivery] = shown(tester, sent[days])["delivery"]
        assert at(delivery["sent_at"]) == at(times[days])
    assert statuses(tester, sent[5]) == {"email": "pending"}
    assert len(fcm.seen) == 3


def test_clock_stands_where_it_was_moved_until_it_is_reset(tester: App) -> None:
    real = tester.get("/test/clock").json()
    assert (real["is_ahead"], real["happened"]) == (False, [])
    target = later(hours=2)
    moved = move(tester, to=target)
    assert (at(moved["now"]), moved["is_ahead"], moved["target"]) == (at(target), True, None)
    assert tester.get("/test/clock").json() == {**moved, "happened": []}
    assert at(move(tester, advance="1d2h3m4s")["now"]) == at(target) + timedelta(
        days=1, hours=2, minutes=3, seconds=4
    )
    assert tester.delete("/test/clock").status_code == 204
    assert tester.delete("/test/clock").status_code == 204
    assert not tester.get("/test/clock").json()["is_ahead"]


def test_what_is_created_by_a_clock_has_its_time_and_is_sent_by_a_worker(
    tester: App, broker: Any, fcm: ScriptedProvider
) -> None:
    moved = move(tester, advance="2d")
    published = Counter(_tasks(broker))
    sent = tester.notify(channels=["email"])
    assert at(sent.json()["created_at"]) == at(moved["now"])
    assert (Counter(_tasks(broker)) - published)[wakeups.TEST_CLOCK] == 1
    pipeline.dispatch(SendingRuntime(), [ObjectId(sent.json()["id"])], channel=Channel.EMAIL)
    assert fcm.seen == [], "an ordinary worker leaves it alone"
    assert test_clock.catch_up(tester.id)
    [delivery] = shown(tester, sent)["delivery"]
    assert (delivery["status"], at(delivery["sent_at"])) == ("sent", at(moved["now"]))


def _tasks(broker: Any) -> list[str]:
    return [message.task for message in queued_messages(broker, DIGESTS)]


def test_sweeper_finds_what_a_lost_wakeup_left_by_a_clock(tester: App, broker: Any) -> None:
    move(tester, advance="2d")
    sweeper.sweep(now=utc_now())
    before = Counter(_tasks(broker))[wakeups.TEST_CLOCK]
    tester.notify(channels=["email"])
    broker.flushdb()
    sweeper.sweep(now=utc_now())
    assert Counter(_tasks(broker))[wakeups.TEST_CLOCK] == 1
    assert before == 0, "nothing was due"


def test_retry_after_twenty_minutes_happens_by_the_clock(
    tester: App, fcm: ScriptedProvider
) -> None:
    fcm.always(lambda: scripted.rate_limited(retry_after=1200.0))
    sent = tester.notify(channels=["email"])
    moved = move(tester, advance="1s")
    assert events(moved) == [("waits", "email")]
    fcm.always(scripted.accepted)
    assert events(move(tester, advance="10m")) == []
    assert statuses(tester, sent) == {"email": "pending"}
    moved = move(tester, advance="20m")
    assert events(moved) == [("sent", "email")]
    [delivery] = shown(tester, sent)["delivery"]
    waited = at(delivery["sent_at"]) - at(shown(tester, sent)["created_at"])
    assert 20 * MINUTE <= waited < 31 * MINUTE


def test_retries_are_used_up_in_one_move(tester: App, fcm: ScriptedProvider) -> None:
    fcm.always(scripted.provider_error)
    sent = tester.notify(channels=["email"])
    moved = move(tester, advance="3d")
    happened = [one["event"] for one in moved["happened"]]
    assert happened == ["waits"] * (len(fcm.seen) - 1) + ["failed"]
    assert statuses(tester, sent) == {"email": "failed"}
    times = [one["at"] for one in moved["happened"]]
    assert times == sorted(times)


def plan(*steps: tuple[str, timedelta], until: str = "read") -> dict[str, Any]:
    return {
        "until": until,
        "steps": [
            {"channels": [channel], "after": int(after.total_seconds())} for channel, after in steps
        ],
    }


PEOPLE = {"email": "ada@example.com", "phone": "+447700900001"}
THREE_DAYS = plan(("email", timedelta(0)), ("whatsapp", DAY), ("sms", 3 * DAY))


def test_plan_of_three_days_happens_in_one_move(tester: App) -> None:
    sent = tester.notify(recipient=PEOPLE, plan=THREE_DAYS, channels=...)
    assert sent.status_code == 202, sent.json()
    moved = move(tester, advance="3d")
    assert events(moved) == [("sent", "email"), ("sent", "whatsapp"), ("sent", "sms")]
    began = at(shown(tester, sent)["created_at"])
    assert [at(one["at"]) - began for one in moved["happened"]][1:] == [DAY, 3 * DAY]


def test_later_step_isnt_sent_once_the_goal_is_reached(tester: App) -> None:
    sent = tester.notify(recipient=PEOPLE, plan=THREE_DAYS, channels=...)
    assert events(move(tester, advance="1d")) == [("sent", "email"), ("sent", "whatsapp")]
    assert tester.post(f"/notifications/{sent.json()['id']}/read").status_code == 200
    assert events(move(tester, advance="2d")) == [("cancelled", "sms")]


def test_receipt_that_is_on_its_way_is_awaited_before_a_later_step(
    tester: App, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_clock, "RECEIPT_SECONDS", 600.0)
    steps = plan(("email", timedelta(0)), ("sms", HOUR), until="delivered")
    sent = tester.notify(recipient=PEOPLE, plan=steps, channels=...)
    read, reads = test_clocks.read, itertools.count()

    def arriving(ids: Sequence[ObjectId]) -> Any:
        # The first reads are those before and after the send.
        if next(reads) >= 2:
            factories.arrive(ObjectId(sent.json()["id"]), at=utc_now())
        return read(ids)

    monkeypatch.setattr(test_clocks, "read", arriving)
    assert events(move(tester, advance="2h")) == [("sent", "email"), ("cancelled", "sms")]
    delivery = shown(tester, sent)["delivery"][0]
    assert delivery["status"] == "delivered"
    assert delivery["delivered_at"] >= delivery["sent_at"]


def test_bounce_opens_the_next_step_by_the_clock(tester: App, fcm: ScriptedProvider) -> None:
    move(tester, advance="1d")
    steps = plan(("email", timedelta(0)), ("sms", HOUR), until="delivered")
    sent = tester.notify(recipient=PEOPLE, plan=steps, channels=...)
    fcm.name = "sandbox-sendgrid"
    moved = move(tester, advance="1m")
    assert events(moved) == [("sent", "email")]
    receipt = Receipt(
        reference=f"{sent.json()['id']}.email.1",
        provider_id="x",
        kind=ReceiptKind.BOUNCED,
        at=utc_now(),
        reason="No such mailbox.",
        event_id="one",
        address="ada@example.com",
    )
    processor.apply_receipts([receipt], provider="sendgrid", now=utc_now())
    email, _ = shown(tester, sent)["delivery"]
    assert email["status"] == "failed"
    assert at(email["failed_at"]) >= at(moved["happened"][0]["at"])
    pipeline.dispatch(SendingRuntime(), [ObjectId(sent.json()["id"])], channel=Channel.SMS)
    assert statuses(tester, sent)["sms"] == "pending", "an ordinary worker leaves it alone"
    assert events(move(tester, advance="1s")) == [("sent", "sms")]


def test_later_step_expires_by_the_clock(with_own_types: App) -> None:
    tester, live = with_own_types, new_app("live")
    steps = plan(("email", timedelta(0)), ("sms", 2 * HOUR))
    stream = {**COMMENT, "channels": ["email", "sms"], "digest": None, "plan": steps}
    assert live.put("/types/stream", stream).status_code == 201
    parts = {"default": {"subject": "Live", "body": "Now.", "sms": "Live now."}}
    assert live.post("/types/stream/templates", {"parts": parts}).status_code == 201
    assert live.post("/types/stream/templates/versions/1/publish").status_code == 200
    sent = tester.notify(type="stream", recipient=PEOPLE, data={}, ttl=3600)
    assert sent.status_code == 202, sent.json()["errors"]
    moved = move(tester, advance="1d")
    assert events(moved) == [("sent", "email"), ("expired", "sms")]
    assert len({one["at"] for one in moved["happened"]}) == 2


def test_retry_after_the_expiry_is_not_awaited(tester: App, fcm: ScriptedProvider) -> None:
    fcm.always(lambda: scripted.rate_limited(retry_after=7200.0))
    sent = tester.notify(channels=["email"], ttl=3600)
    assert events(move(tester, advance="1d")) == [("failed", "email")]
    assert statuses(tester, sent) == {"email": "failed"}
    assert len(fcm.seen) == 1


def test_unknown_outcome_is_decided_by_the_clock(tester: App, fcm: ScriptedProvider) -> None:
    fcm.always(scripted.timeout)
    sent = tester.notify(channels=["email"])
    moved = move(tester, advance="1d")
    assert events(moved)[0] == ("unknown", "email")
    assert events(moved)[-1] == ("failed", "email")
    assert statuses(tester, sent) == {"email": "failed"}
    assert len(shown(tester, sent)["delivery"]) == 1


COMMENT = {
    "name": "Comment",
    "category": "transactional",
    "channels": ["email"],
    "digest": {"window": {"minutes": 30}},
}
SUBJECT = "{% if digest %}{{ digest.count }} comments{% else %}A comment{% endif %}"
PARTS = {"default": {"subject": SUBJECT, "body": "See them."}}


def test_digest_is_closed_and_sent_by_the_clock(with_own_types: App, fcm: ScriptedProvider) -> None:
    tester, live = with_own_types, new_app("live")
    assert live.put("/types/comment", COMMENT).status_code == 201
    assert live.post("/types/comment/templates", {"parts": PARTS}).status_code == 201
    assert live.post("/types/comment/templates/versions/1/publish").status_code == 200
    for _ in range(3):
        for app in (tester, live):
            answer = app.notify(type="comment", user_id="ada", data={}, channels=["email"])
            assert answer.status_code == 202, answer.json()
    moved = move(tester, advance="10m")
    assert {one["event"] for one in moved["happened"]} == {"waits"}
    assert {one["failure_code"] for one in moved["happened"]} == {"in_digest"}
    assert fcm.seen == []
    moved = move(tester, advance="1h")
    assert events(moved) == [("digest_closed", "email"), ("sent", "email")]
    assert len({one["notification_id"] for one in moved["happened"]}) == 1
    [sent] = fcm.seen
    assert sent.message.subject == "3 comments"
    [message] = tester.get("/test/outbox").json()["results"]
    assert message["subject"] == "3 comments"


def test_quiet_hours_are_those_of_the_clock(tester: App, fcm: ScriptedProvider) -> None:
    live = new_app("live")
    assert live.put("/recipients/ada", {"email": "ada@example.com"}).status_code == 201
    night = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "UTC"}
    assert live.put("/recipients/ada/preferences", {"quiet_hours": night}).status_code == 200
    tomorrow = (utc_now() + DAY).replace(hour=23, minute=0, second=0, microsecond=0)
    move(tester, to=tomorrow.isoformat())
    sent = tester.notify(user_id="ada", recipient=..., channels=["email"])
    moved = move(tester, advance="1s")
    morning = (tomorrow + DAY).replace(hour=7)
    assert [(one["event"], one["failure_code"]) for one in moved["happened"]] == [
        ("waits", "quiet_hours")
    ]
    assert at(moved["happened"][0]["next_attempt_at"]) == morning
    moved = move(tester, to=morning.isoformat())
    assert events(moved) == [("sent", "email")]
    assert at(shown(tester, sent)["delivery"][0]["sent_at"]) == morning


def test_snooze_is_over_by_the_clock(tester: App) -> None:
    ada = InboxUser(app=tester)
    sent = tester.notify(user_id="ada", channels=["in_app"])
    until = later(hours=3)
    assert ada.post(f"/{sent.json()['id']}/snooze", {"until": until}).status_code == 200
    assert ada.ids() == []
    assert events(move(tester, advance="2h")) == []
    moved = move(tester, advance="2h")
    assert [(one["event"], at(one["at"])) for one in moved["happened"]] == [
        ("resurfaced", at(until))
    ]
    assert ada.ids() == [sent.json()["id"]]
    again = ada.post(f"/{sent.json()['id']}/snooze", {"until": later(hours=2)})
    assert pointers(again) == {"/until": "out_of_range"}, "two hours have passed by the clock"


def test_scheduled_inbox_message_arrives_by_the_clock(tester: App, fcm: ScriptedProvider) -> None:
    fcm.always(lambda: scripted.accepted(is_delivered=True))
    when = later(days=1)
    tester.notify(user_id="ada", channels=["in_app"], scheduled_at=when)
    assert InboxUser(app=tester).ids() == []
    assert events(move(tester, to=when)) == [("delivered", "in_app")]
    assert len(InboxUser(app=tester).ids()) == 1


def test_live_key_has_no_clock(app: App) -> None:
    for answer in (
        app.get("/test/clock"),
        app.post("/test/clock", {"advance": "1h"}),
        app.delete("/test/clock"),
    ):
        assert (answer.status_code, answer.json()["code"]) == (403, "live_key")
    assert collection("test_clocks").count_documents({}) == 0


@each_case(
    "body, problems",
    (
        ({}, {"/advance": "required"}),
        ({"advance": "1h", "to": "2099-01-01T00:00:00Z"}, {"/to": "conflict"}),
        ({"advance": "soon"}, {"/advance": "invalid_duration"}),
        ({"advance": "0s"}, {"/advance": "invalid_duration"}),
        ({"advance": ""}, {"/advance": "invalid_duration"}),
        ({"advance": "366d"}, {"/advance": "too_far_ahead"}),
        ({"to": "2026-01-01T00:00:00Z"}, {"/to": "in_the_past"}),
        ({"to": "2099-01-01T00:00:00Z"}, {"/to": "too_far_ahead"}),
        ({"to": "2099-01-01T00:00:00"}, {"/to": "naive_datetime"}),
    ),
)
def test_invalid_move_is_refused(
    tester: App, body: dict[str, str], problems: dict[str, str]
) -> None:
    assert pointers(tester.post("/test/clock", body)) == problems
    assert not tester.get("/test/clock").json()["is_ahead"]


def test_two_moves_at_once_follow_each_other_and_send_nothing_twice(
    tester: App, fcm: ScriptedProvider
) -> None:
    for n in range(20):
        tester.notify(user_id=f"user-{n}", channels=["email"], scheduled_at=later(minutes=n + 10))
    begun = utc_now()
    moved = at_once(*(lambda: move(tester, advance="1h") for _ in range(4)))
    assert len(fcm.seen) == 20
    assert sum(len(one["happened"]) for one in moved) == 20
    assert at(max(one["now"] for one in moved)) >= begun + 4 * HOUR


def test_clock_that_another_process_moves_for_long_is_refused(
    tester: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(test_clock, "LEASE_WAIT_SECONDS", 0.1)
    held = test_clocks.acquire(tester.id, worker="other", now=utc_now(), is_new=True)
    assert held is not None
    refused = tester.post("/test/clock", {"advance": "1h"})
    assert (refused.status_code, refused.json()["code"]) == (409, "clock_moving")
    assert refused.headers["Retry-After"] == "1"
    assert not test_clock.catch_up(tester.id)
    held.release()
    move(tester, advance="1h")


def test_move_that_takes_too_long_is_continued(
    tester: App, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    for n in range(3):
        tester.notify(user_id=f"user-{n}", channels=["email"], scheduled_at=later(minutes=n + 10))
    monkeypatch.setattr(test_clock, "MAX_HAPPENED", 1)
    target = later(hours=1)
    first = tester.post("/test/clock", {"to": target}).json()
    assert (first["is_complete"], at(first["target"])) == (False, at(target))
    assert at(first["now"]) < at(target)
    assert tester.get("/test/clock").json()["target"] == first["target"]
    monkeypatch.setattr(test_clock, "MAX_HAPPENED", 1_000)
    moved = move(tester, advance="1h")
    assert len(moved["happened"]) == 2
    assert at(moved["now"]) == at(target) + HOUR, "from where the first move was to end"
    assert len(fcm.seen) == 3


def test_reset_ends_a_move(tester: App, fcm: ScriptedProvider) -> None:
    for n in range(3):
        tester.notify(user_id=f"user-{n}", channels=["email"], scheduled_at=later(minutes=n + 10))

    def reset(_request: SendRequest) -> SendResult:
        test_clocks.remove(tester.id)
        return scripted.accepted()

    fcm.behave = reset
    moved = tester.post("/test/clock", {"advance": "1h"}).json()
    assert (moved["is_complete"], len(moved["happened"])) == (False, 1)
    assert not tester.get("/test/clock").json()["is_ahead"]
    assert len(fcm.seen) == 1


def test_clock_waits_for_what_a_worker_is_sending(
    tester: App, fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = ObjectId(tester.notify(channels=["email"]).json()["id"])
    [claim] = leases.claim(ids=[sent], channel=Channel.EMAIL, worker="w", now=utc_now())
    started = leases.start([claim], provider="fcm", worker="w", now=utc_now())
    is_worked_on = test_clocks.is_worked_on

    def settling(documents: Any, *, now: datetime) -> bool:
        found = is_worked_on(documents, now=now)
        outcome = factories.settlement(started[0], factories.S.SENT, provider="fcm")
        leases.settle([outcome], now=utc_now())
        return found

    monkeypatch.setattr(test_clocks, "is_worked_on", settling)
    assert events(move(tester, advance="10s")) == []
    assert factories.delivery(factories.read(sent))["status"] == "sent"
    assert fcm.seen == []


def test_clients_have_clocks_of_their_own(tester: App, fcm: ScriptedProvider) -> None:
    other = new_app("other", is_test=True)
    for app in (tester, other):
        app.notify(channels=["email"], scheduled_at=later(hours=1))
    assert len(move(tester, advance="2h")["happened"]) == 1
    assert not other.get("/test/clock").json()["is_ahead"]
    assert len(fcm.seen) == 1


def test_circuits_and_rates_of_all_are_left_alone(
    tester: App, fcm: ScriptedProvider, broker: Any
) -> None:
    fcm.always(lambda: scripted.channel_unavailable(retry_after=600.0))
    tester.notify(channels=["email"])
    move(tester, advance="1h")
    assert len(fcm.seen) > 1
    assert broker.keys("circuit*") == []
    assert broker.keys("rate:*") == []


def test_live_data_of_every_collection_stays_as_it_is(
    with_own_types: App, fcm: ScriptedProvider
) -> None:
    tester, live = with_own_types, new_app("live")
    seed(live)
    live.notify(channels=["email"], scheduled_at=later(hours=1))
    untouched = Untouched(tester=tester)
    outcomes = [
        scripted.accepted,
        scripted.timeout,
        scripted.invalid_token,
        scripted.provider_error,
    ]
    fcm.behave = lambda _request: outcomes[len(fcm.seen) % len(outcomes)]()
    for user_id in ("ada", "bob"):
        named = {"user_id": user_id, "recipient": ...}
        for channel in ("email", "whatsapp", "push", "in_app", "sms"):
            tester.notify(**named, channels=[channel])
            tester.notify(**named, channels=[channel], scheduled_at=later(days=3))
    assert len(move(tester, advance="40d")["happened"]) > 20
    tester.notify(channels=["email"])
    move(tester, advance="1h")
    assert tester.delete("/test/clock").status_code == 204
    untouched.check()


class _Commands(monitoring.CommandListener):
    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        self.found.append((event.command_name, str(event.command.get(event.command_name))))

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        pass

    def failed(self, event: monitoring.CommandFailedEvent) -> None:
        pass


COMMANDS = _Commands()
monitoring.register(COMMANDS)


def test_live_request_takes_no_trip_for_clocks(tester: App, app: App) -> None:
    def commands(client: App) -> Counter[tuple[str, str]]:
        sent = client.notify(channels=["email"])
        client.get(f"/notifications/{sent.json()['id']}")
        COMMANDS.found.clear()
        assert client.notify(channels=["email"]).status_code == 202
        assert client.get(f"/notifications/{sent.json()['id']}").status_code == 200
        return Counter(COMMANDS.found)

    live, test = commands(app), commands(tester)
    assert "test_clocks" not in {name for _, name in live}
    assert test - live == {("find", "test_clocks"): 2}
    assert live - test == {}
