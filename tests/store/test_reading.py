"""Reading in the app: once, by the one it is for."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from notifications import store
from notifications.states import Channel, DeliveryStatus
from notifications.store import Document
from tests import factories
from tests.factories import CLIENT, NOON, accepted, delivery, read

pytestmark = pytest.mark.usefixtures("db")

IN_APP = Channel.IN_APP
S = DeliveryStatus
LATER = NOON + timedelta(minutes=5)


def in_app(**fields: Any) -> Document:
    return accepted(channels=[IN_APP], **fields)


def test_an_owner_marks_it_read() -> None:
    document = store.mark_read(notification_id=in_app()["_id"], user_id="ada", now=LATER)
    assert document is not None
    assert (document["status"], document["is_read"], document["read_at"]) == (
        *("delivered", True, LATER),
    )
    assert delivery(document, IN_APP)["read_at"] == LATER


def test_it_is_read_once() -> None:
    document = in_app()
    store.mark_read(notification_id=document["_id"], user_id="ada", now=LATER)
    again = store.mark_read(
        notification_id=document["_id"], user_id="ada", now=LATER + timedelta(hours=1)
    )
    assert again is None
    assert read(document["_id"])["read_at"] == LATER


@pytest.mark.parametrize("user_id", ["eve", "", "$ne", "ADA"])
def test_nobody_else_marks_it_read(user_id: str) -> None:
    document = in_app()
    assert store.mark_read(notification_id=document["_id"], user_id=user_id, now=LATER) is None
    assert not read(document["_id"])["is_read"]


def test_mail_that_was_delivered_is_not_read_in_the_app() -> None:
    document = factories.settled(S.DELIVERED)
    assert store.mark_read(notification_id=document["_id"], user_id="ada", now=LATER) is None


def test_what_is_not_delivered_yet_is_not_read() -> None:
    document = in_app(send_at=LATER)
    assert store.mark_read(notification_id=document["_id"], user_id="ada", now=NOON) is None


def test_everything_of_a_person_is_read_at_once() -> None:
    mine = [in_app()["_id"] for _ in range(5)]
    others = [in_app(user_id="eve")["_id"], accepted()["_id"], in_app(send_at=LATER)["_id"]]
    assert store.mark_all_read(user_id="ada", client_id=None, now=LATER) == 5
    assert all(read(one)["is_read"] for one in mine)
    assert not any(read(one)["is_read"] for one in others)
    assert store.mark_all_read(user_id="ada", client_id=None, now=LATER) == 0


def test_a_client_marks_its_own_only() -> None:
    own, other = in_app(), in_app(client_id=ObjectId("d" * 24))
    assert store.mark_all_read(user_id="ada", client_id=CLIENT, now=LATER) == 1
    assert read(own["_id"])["is_read"]
    assert not read(other["_id"])["is_read"]


def test_reading_at_once_reads_once() -> None:
    document = in_app()
    with ThreadPoolExecutor(8) as threads:
        results = list(
            threads.map(
                lambda n: store.mark_read(
                    notification_id=document["_id"],
                    user_id="ada",
                    now=LATER + timedelta(seconds=n),
                ),
                range(8),
            )
        )
    (winner,) = [result for result in results if result is not None]
    assert read(document["_id"])["read_at"] == winner["read_at"]
