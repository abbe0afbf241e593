"""A process dies at each boundary, and others complete its work.

``make chaos SCENARIO=1`` runs this with every channel and real waits.
"""

import itertools
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.db import connection

from access.models import Scope
from bench.chaos.boundaries import Trigger, cases_of
from callbacks import outbox, subscriptions
from callbacks.events import DisabledReason, Event, EventType
from delivery import pipeline, sweeper, test_clock
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Recipient
from domain.retry import UNKNOWN_WAIT
from domain.states import OPEN, Priority
from domain.time import utc_now
from notifications.catalog import types
from notifications.store import test_clocks
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from notifyproject.platform.crash_points import Boundary
from notifyproject.settings.environment import BASE_DIR
from notifyproject.supervision.forking import die_with_parent
from sandbox.assembly import Sandbox
from tests.support.clients.api import new_app, request
from tests.support.clients.sandbox import copies
from tests.support.factories import broadcasts
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import CLIENT, NOON
from tests.support.fakes.callback_receiver import called_back, receiving
from tests.support.mongo.written_collections import written
from tests.support.subprocess import environment

Die = Callable[..., int]
SECOND = timedelta(seconds=1)
SENDING = [boundary for boundary, _ in cases_of(Trigger.SENDING)]
UNKNOWN_SENDS = {Boundary.SEND_ANSWERED, Boundary.BATCH_SENT}
"""The provider accepted the message, and only the dead process had the answer."""
SETTLED = {Boundary.SETTLE_LOGGED, Boundary.SETTLED, Boundary.REPORTED, Boundary.TASK_DONE}
KEY = {"Idempotency-Key": "order-1001"}


@pytest.fixture(scope="module")
def crashing_process(_database: None) -> Iterator[subprocess.Popen[str]]:
    """Run a process whose children die at a boundary."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.faults.crashing_process"],
        cwd=BASE_DIR,
        env={**os.environ, **environment()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=die_with_parent,
    )
    with process:
        yield process
        process.kill()


@pytest.fixture
def die(
    db: None, broker: Any, taker: Sandbox, crashing_process: subprocess.Popen[str]
) -> Iterator[Die]:
    """Return a function that runs a job, which dies at a boundary, and returns the signal."""
    into, out_of = crashing_process.stdin, crashing_process.stdout
    assert into is not None
    assert out_of is not None

    def one(do: str, crash_at: Boundary, **job: Any) -> int:
        job |= {"do": do, "crash_at": crash_at, "provider": taker.url}
        print(json.dumps(job), file=into, flush=True)
        return int(out_of.readline())

    yield one
    # Empty the collections that only another process has written to, too.
    written.names.update(connection.database.list_collection_names())


def accepted(name: str) -> Any:
    document = factories.accepted(
        created_at=utc_now(), recipient=Recipient(email=f"{name}@example.com")
    )
    return document["_id"]


def test_crashed_worker_loses_nothing_and_repeats_only_unknown_sends(
    die: Die, taker: Sandbox
) -> None:
    ids = {boundary: accepted(boundary.value) for boundary in SENDING}
    for boundary, notification_id in ids.items():
        assert die("deliver", boundary, ids=[str(notification_id)]) == signal.SIGKILL, boundary
    later = utc_now() + LEASE + SECOND
    for boundary, _ in cases_of(Trigger.SWEEP):
        assert die("sweep", boundary, now=later.isoformat()) == signal.SIGKILL, boundary
    sweeper.sweep(now=later)
    later += UNKNOWN_WAIT[Priority.NORMAL] + SECOND
    sweeper.sweep(now=later)
    pipeline.dispatch(
        SendingRuntime(), list(ids.values()), channel=Channel.EMAIL, clock=lambda: later
    )

    taken = copies(taker)
    for boundary, notification_id in ids.items():
        assert factories.delivery(factories.read(notification_id))["status"] not in OPEN, boundary
        assert taken[str(notification_id)] == (2 if boundary in UNKNOWN_SENDS else 1), boundary
        record = [a["status"] for a in factories.attempts(notification_id)]
        if boundary in UNKNOWN_SENDS:
            assert record == ["unknown", "sent"]
        if boundary in SETTLED:
            assert record == ["sent"]


def _later(by: timedelta) -> datetime:
    return utc_now() + by


def test_test_clock_whose_movers_are_killed_sends_nothing_twice(
    die: Die, taker: Sandbox, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SANDBOX_URL = taker.url
    monkeypatch.setattr(test_clock, "RECEIPT_SECONDS", 0.0)
    tester, ahead = new_app("tester", is_test=True), 0.0
    at = {boundary: utc_now() + n * timedelta(hours=1) for n, boundary in enumerate(SENDING, 1)}
    ids = {}
    for boundary, due_at in at.items():
        when = due_at.isoformat(timespec="milliseconds")
        sent = tester.notify(user_id=boundary.value, channels=["email"], scheduled_at=when)
        ids[boundary] = ObjectId(sent.json()["id"])
    for boundary, due_at in at.items():
        to = due_at + timedelta(minutes=30)
        job = {"id": str(tester.id), "to": to.isoformat(), "ahead": ahead}
        assert die("move_clock", boundary, **job) == signal.SIGKILL, boundary
        # Another process goes on once the lease of the clock has run out.
        ahead += test_clocks.LEASES.length.total_seconds() + 1
        later = timedelta(seconds=ahead)
        moved = test_clock.move(tester.id, to=to, real=partial(_later, later))
        assert (moved.now, moved.target) == (to, None)

    taken = copies(taker)
    for boundary, notification_id in ids.items():
        assert factories.delivery(factories.read(notification_id))["status"] not in OPEN, boundary
        assert taken[str(notification_id)] == (2 if boundary in UNKNOWN_SENDS else 1), boundary
        record = [attempt["status"] for attempt in factories.attempts(notification_id)]
        if boundary in UNKNOWN_SENDS:
            assert record == ["unknown", "sent"]
        if boundary in SETTLED:
            assert record == ["sent"]


def test_crashed_broadcast_reaches_everyone_once(die: Die) -> None:
    names = broadcasts.recipients(5)
    now = utc_now()
    ones = {boundary: broadcasts.begun(at=now) for boundary, _ in cases_of(Trigger.BROADCAST)}
    for boundary, broadcast_id in ones.items():
        assert die("broadcast", boundary, id=str(broadcast_id)) == signal.SIGKILL, boundary
    for boundary, broadcast_id in ones.items():
        broadcasts.run_to_completion(broadcast_id, at=now + LEASE)
        assert broadcasts.notified_users(broadcast_id) == names, boundary
        assert broadcasts.read(broadcast_id)["accepted"] == len(names), boundary


def test_approval_killed_at_each_write_is_made_or_not(die: Die) -> None:
    names = broadcasts.recipients(2)
    types.define_type("marketing", {"approval": {"above": 0, "by": "approvers"}}, now=utc_now())
    approver = new_app("approver", Scope.BROADCASTS_APPROVE)
    headers = {"Authorization": f"Bearer {approver.key}"}
    statuses = []
    for moment in itertools.count():
        broadcast_id = broadcasts.begun(at=utc_now())
        seen = {"fingerprint": broadcasts.read(broadcast_id)["approval"]["fingerprint"]}
        path = f"/broadcasts/{broadcast_id}/approve"
        job = {"path": f"/api/v1{path}", "body": seen, "headers": headers, "kills_at": moment}
        signal_number = die("post", Boundary.TASK_DONE, **job)
        killed = broadcasts.read(broadcast_id)
        is_made = killed["status"] == "scheduled"
        assert is_made or killed["status"] == "awaiting_approval", moment
        assert is_made == ("decided_at" in killed["approval"]), "both in one write"
        statuses.append(killed["status"])
        assert approver.post(path, seen).status_code == 200, "again, whatever was done"
        broadcasts.run_to_completion(broadcast_id, at=utc_now() + LEASE)
        assert broadcasts.notified_users(broadcast_id) == names, moment
        if signal_number == 0:
            break
    assert statuses == sorted(statuses), "awaiting first, then scheduled"
    assert set(statuses) == {"awaiting_approval", "scheduled"}


def test_callback_that_kills_each_worker_fails_and_the_others_arrive(die: Die) -> None:
    with receiving() as receiver:
        called_back(receiver.url)
        events = [
            Event(
                id=name, client_id=CLIENT, type=EventType.DELIVERY_SENT, at=NOON, data={"n": name}
            )
            for name in ("evt_before", "evt_lethal", "evt_after")
        ]
        outbox.store_messages(events, now=NOON)
        at, killed = NOON, 0
        while outbox.next_due_at(CLIENT) is not None:
            job = {"id": str(CLIENT), "now": at.isoformat(), "kills": "evt_lethal"}
            killed += die("call_back", Boundary.SETTLED, **job) == signal.SIGKILL
            at += LEASE + SECOND
        assert receiver.ids().count("evt_lethal") == killed == 3
    stored = {message["_id"]: message for message in collection("callback_messages").find()}
    assert {name: document["status"] for name, document in stored.items()} == {
        "evt_before": "delivered",
        "evt_lethal": "failed",
        "evt_after": "delivered",
    }
    assert stored["evt_lethal"]["error"] == outbox.QUARANTINED_REASON
    assert subscriptions.get(CLIENT)["state"] == "active"


def test_endpoint_that_kills_each_worker_is_disabled(die: Die) -> None:
    with receiving() as receiver:
        called_back(receiver.url)
        events = [
            Event(id=f"evt_{n}", client_id=CLIENT, type=EventType.DELIVERY_SENT, at=NOON, data={})
            for n in range(9)
        ]
        outbox.store_messages(events, now=NOON)
        at, killed = NOON, 0
        while subscriptions.get(CLIENT)["state"] == "active":
            job = {"id": str(CLIENT), "now": at.isoformat(), "kills": "{"}
            killed += die("call_back", Boundary.SETTLED, **job) == signal.SIGKILL
            at += LEASE + SECOND
    assert killed == 5
    assert subscriptions.get(CLIENT)["disabled_reason"] == DisabledReason.STUCK
    assert collection("callback_messages").count_documents({"status": "failed"}) == len(events)
    assert "workers in a row" in LogEntry.objects.get().change_message


def test_lone_events_that_kill_their_workers_hours_apart_disable_the_endpoint(die: Die) -> None:
    at, killed = NOON, 0
    with receiving() as receiver:
        called_back(receiver.url)
        for name in ("evt_1", "evt_2"):
            at += timedelta(hours=3)
            event = Event(id=name, client_id=CLIENT, type=EventType.DELIVERY_SENT, at=at, data={})
            outbox.store_messages([event], now=at)
            while outbox.next_due_at(CLIENT) is not None:
                job = {"id": str(CLIENT), "now": at.isoformat(), "kills": "{"}
                killed += die("call_back", Boundary.SETTLED, **job) == signal.SIGKILL
                at += LEASE + SECOND
    assert killed == 5
    assert subscriptions.get(CLIENT)["disabled_reason"] == DisabledReason.STUCK


@pytest.mark.parametrize("boundary", [boundary for boundary, _ in cases_of(Trigger.POST)])
def test_crashed_api_process_creates_one_notification(die: Die, boundary: Boundary) -> None:
    app = new_app("app")
    headers = {"Authorization": f"Bearer {app.key}", **KEY}
    path = "/api/v1/notifications"
    assert die("post", boundary, path=path, body=request(), headers=headers) == signal.SIGKILL
    for _ in range(2):
        answer = app.post("/notifications", request(), headers=KEY)
        assert answer.status_code == 202
        (stored,) = collection("notifications").find()
        assert str(stored["_id"]) == answer.json()["id"]
