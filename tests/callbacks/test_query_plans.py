"""Query plans of callbacks among thousands of documents."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from callbacks import outbox
from callbacks.events import CallbackStatus
from domain.channels import Channel
from notifications.store import acceptance, callback_marks
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor
from tests.support.factories.notifications import CLIENT, NOON, new
from tests.support.fakes.callback_receiver import called_back
from tests.support.mongo.query_plans import emptied, plans

COUNT, WAITING = 2_000, 50
USED = ("notifications", "callback_messages", "callbacks")


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    with django_db_blocker.unblock(), emptied(*USED):
        called_back("http://127.0.0.1:9/")
        acceptance.accept(
            [new(channels=(Channel.IN_APP,), has_callback=not n % 40) for n in range(COUNT)],
            now=NOON,
        )
        collection("callback_messages").insert_many([_message(n) for n in range(COUNT)])
        yield


pytestmark = pytest.mark.usefixtures("db")


def _message(number: int) -> dict[str, Any]:
    """Return a message: one in 40 is pending, every third is of another client."""
    at = NOON + timedelta(seconds=number)
    waits = {"next_try_at": at} if not number % 40 else {}
    return {
        "_id": f"evt_{number:05}",
        "client_id": CLIENT if number % 3 else ObjectId("d" * 24),
        "type": "delivery.sent",
        "status": "pending" if waits else ("delivered" if number % 2 else "failed"),
        "body": "{}",
        "tries": 0,
        "created_at": at,
        "purge_at": at + timedelta(days=30),
        **waits,
    }


READS: dict[str, tuple[str, int, Callable[[], Any]]] = {
    "pending callbacks": ("notifications", 20, lambda: callback_marks.pending_callbacks(limit=20)),
    "due messages of a client": (
        "callback_messages",
        10,
        lambda: outbox.claim(client_id=CLIENT, limit=10, now=NOON + timedelta(hours=1)),
    ),
    "next due time of a client": ("callback_messages", 1, lambda: outbox.next_due_at(CLIENT)),
    "clients with pending messages": ("callback_messages", WAITING, outbox.waiting_clients),
    "messages of a client": (
        "callback_messages",
        21,
        lambda: outbox.page(client_id=CLIENT, status=None, limit=20, cursor=None),
    ),
    "failed messages of a client": (
        "callback_messages",
        21,
        lambda: outbox.page(
            client_id=CLIENT,
            status=CallbackStatus.FAILED,
            limit=20,
            cursor=Cursor((NOON + timedelta(seconds=900), "evt_00900")),
        ),
    ),
}


@pytest.mark.parametrize("name", READS)
def test_reads_use_indexes_in_order(name: str) -> None:
    of, most, read = READS[name]
    with plans(of) as found:
        read()
    assert found
    for plan in found:
        assert plan.is_indexed, plan
        assert not plan.sorts or plan.is_by_id, plan
        assert plan.examined <= most, plan
