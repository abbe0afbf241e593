"""A process dies at each boundary between two steps; the others find everything and end it.

The same with every channel and with waits as long as they are: ``make chaos SCENARIO=1``.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from bench.chaos.boundaries import Trigger, cases_of
from delivery import dispatcher, sweeper
from domain.content import Recipient
from domain.retry import UNKNOWN_WAIT
from domain.states import OPEN, Channel, Priority
from domain.time import utc_now
from notifications.store import LEASE
from notifyproject.platform.crash_points import Boundary
from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.servers import die_with_parent
from sandbox.server import Sandbox
from tests.support.clients.api import App, new_app, request
from tests.support.clients.sandbox import copies
from tests.support.factories import broadcasts as crowds
from tests.support.factories import notifications as factories
from tests.support.mongo.written_collections import written
from tests.support.subprocess import environment

Die = Callable[..., int]
SECOND = timedelta(seconds=1)
SENDING = [boundary for boundary, _ in cases_of(Trigger.SENDING)]
UNHEARD = {Boundary.SEND_ANSWERED, Boundary.BATCH_SENT}
"""The provider has taken it, and the only process that knew is gone."""
SETTLED = {Boundary.SETTLE_LOGGED, Boundary.SETTLED, Boundary.REPORTED, Boundary.TASK_DONE}
KEY = {"Idempotency-Key": "order-1001"}


@pytest.fixture(scope="module")
def nursery(_database: None) -> Iterator[subprocess.Popen[str]]:
    """Run a process whose children die at a boundary, on the test's own database and broker."""
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
def die(db: None, broker: Any, taker: Sandbox, nursery: subprocess.Popen[str]) -> Iterator[Die]:
    """Give a test a way to let a process die at a boundary; returns the signal that ended it."""
    into, out_of = nursery.stdin, nursery.stdout
    assert into is not None
    assert out_of is not None

    def one(do: str, crash_at: Boundary, **job: Any) -> int:
        job |= {"do": do, "crash_at": crash_at, "provider": taker.url}
        print(json.dumps(job), file=into, flush=True)
        return int(out_of.readline())

    yield one
    # What only another process has written to is to be emptied, too.
    written.names.update(connection.database.list_collection_names())


def accepted(name: str) -> Any:
    """Return the id of a mail of its own that is due."""
    document = factories.accepted(
        created_at=utc_now(), recipient=Recipient(email=f"{name}@example.com")
    )
    return document["_id"]


def test_a_worker_that_dies_anywhere_loses_nothing_and_doubles_only_what_was_in_doubt(
    die: Die, taker: Sandbox
) -> None:
    ids = {boundary: accepted(boundary.value) for boundary in SENDING}
    for boundary, one in ids.items():
        assert die("deliver", boundary, ids=[str(one)]) == signal.SIGKILL, boundary
    later = utc_now() + LEASE + SECOND
    for boundary, _ in cases_of(Trigger.SWEEP):
        assert die("sweep", boundary, now=later.isoformat()) == signal.SIGKILL, boundary
    sweeper.sweep(now=later)
    later += UNKNOWN_WAIT[Priority.NORMAL] + SECOND
    sweeper.sweep(now=later)
    dispatcher.dispatch(list(ids.values()), channel=Channel.EMAIL, clock=lambda: later)

    taken = copies(taker)
    for boundary, one in ids.items():
        assert factories.delivery(factories.read(one))["status"] not in OPEN, boundary
        assert taken[str(one)] == (2 if boundary in UNHEARD else 1), boundary
        record = [a["status"] for a in factories.attempts(one)]
        if boundary in UNHEARD:
            assert record == ["unknown", "sent"]
        if boundary in SETTLED:
            assert record == ["sent"]


def test_a_worker_that_dies_in_a_broadcast_tells_nobody_twice_and_passes_nobody_over(
    die: Die,
) -> None:
    names = crowds.recipients(5)
    now = utc_now()
    ones = {boundary: crowds.begun(at=now) for boundary, _ in cases_of(Trigger.BROADCAST)}
    for boundary, one in ones.items():
        assert die("broadcast", boundary, id=str(one)) == signal.SIGKILL, boundary
    for boundary, one in ones.items():
        crowds.run_to_completion(one, at=now + LEASE)
        assert crowds.notified_users(one) == names, boundary
        assert crowds.read(one)["accepted"] == len(names), boundary


@pytest.mark.parametrize("boundary", [boundary for boundary, _ in cases_of(Trigger.POST)])
def test_an_api_that_dies_inside_a_post_makes_one_notification_of_it(
    die: Die, boundary: Boundary, stored: Callable[[], list[Any]]
) -> None:
    app = new_app("app")
    headers = {"Authorization": f"Bearer {app.key}", **KEY}
    path = "/api/v1/notifications"
    assert die("post", boundary, path=path, body=request(), headers=headers) == signal.SIGKILL
    answer = again(app)
    assert answer.status_code == 202
    assert [str(one["_id"]) for one in stored()] == [answer.json()["id"]]
    assert again(app).json()["id"] == answer.json()["id"]
    assert len(stored()) == 1


def again(app: App) -> Any:
    return app.post("/notifications", request(), headers=KEY)


@pytest.fixture
def stored() -> Callable[[], list[Any]]:
    """Give a test a look at everything that is stored."""
    from notifyproject.db.collections import collection

    return lambda: list(collection("notifications").find())
