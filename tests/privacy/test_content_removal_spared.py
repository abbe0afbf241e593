"""What is open, or in an inbox, keeps what it says; and what says nothing is not sent again."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from bson import ObjectId

from domain.states import Channel, DeliveryStatus
from notifications import store
from notifications.resend import actions
from notifications.resend.assessment import assess_risks
from notifications.resend.risk import RiskKind
from notifications.store import Document
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.aged_notifications import (
    DAY,
    DUE,
    FULL,
    TICK,
    ended,
    is_removed,
    remove,
    report,
)
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus


# What is open.


@pytest.mark.parametrize(
    "still_open",
    [
        lambda: factories.accepted(**FULL),
        lambda: factories.accepted(**FULL, send_at=NOON + 300 * DAY),
        lambda: factories.settled(S.PENDING, **FULL),
        lambda: factories.settled(S.UNKNOWN, **FULL),
        lambda: factories.read(factories.claimed(**FULL).notification_id),
        lambda: factories.read(factories.started(**FULL).notification_id),
        lambda: factories.settled(S.SENT, channels=(EMAIL, WHATSAPP), **FULL),
    ],
    ids=["due", "scheduled", "retrying", "unknown", "claimed", "sending", "one of two"],
)
def test_what_is_open_is_left_alone_and_found_once_it_has_ended(
    still_open: Callable[[], Document],
) -> None:
    document = factories.read(still_open()["_id"])
    late = NOON + 32 * DAY
    remove(at=late)
    assert factories.read(document["_id"]) == document
    channels = [Channel(name) for name in document["channels"]]
    store.expire_leases(now=late)
    store.apply_receipt(report(document["_id"], S.DELIVERED), now=late)
    store.cancel(notification_id=document["_id"], channels=channels, reason="x", now=late)
    remove(at=late + 30 * DAY + TICK)
    assert is_removed(document)


def test_an_erased_one_stays_as_it_is() -> None:
    document = ended()
    store.erase(store.erasable(user_id="ada", limit=9), user_id="ada", now=NOON)
    remove()
    assert not is_removed(document)


# In the inbox.


def in_app(*channels: Channel) -> Document:
    return factories.accepted(**FULL, channels=(IN_APP, *channels))


def test_what_is_in_an_inbox_still_says_what_it_said_there() -> None:
    document = in_app()
    remove()
    after = factories.read(document["_id"])
    kept = ("subject", "body", "image_url", "deep_link", "payload")
    assert {name: after["content"][name] for name in kept} == {
        name: document["content"][name] for name in kept
    }
    assert not {"attachments", "reply_to"} & after["content"].keys()
    assert (after["data"], after["content_removed_at"]) == ({}, DUE)
    assert "ada@" not in str(after)


def test_what_has_left_the_inbox_goes_whole() -> None:
    document = in_app()
    collection("notifications").update_one({}, {"$set": {"is_active": False}})
    remove()
    assert "body" not in factories.read(document["_id"])["content"]


# Again, once it is gone.


@pytest.mark.parametrize("again", [actions.resend, actions.retry])
def test_nothing_is_sent_again(again: Callable[..., Any]) -> None:
    document = ended()
    remove()
    before = factories.read(document["_id"])
    with pytest.raises(actions.ContentRemovedError, match=f"removed on {DUE:%Y-%m-%d}"):
        again(notification_id=document["_id"], channels=None, now=DUE)
    assert factories.read(document["_id"]) == before
    assert collection("notifications").count_documents({}) == 1


def test_the_verdict_says_so_before_anybody_asks() -> None:
    document = ended()
    remove()
    found = assess_risks([factories.read(document["_id"])], now=DUE)[(document["_id"], EMAIL)]
    assert found.kind is RiskKind.WILL_FAIL_AGAIN
    assert "not kept any more, as it is old" in found.reason


def test_a_retry_and_a_removal_at_once_leave_an_open_one_whole() -> None:
    """Whoever comes first wins: it is open and says everything, or it is removed and not open."""
    ids = [ended()["_id"] for _ in range(30)]
    start = threading.Barrier(2)

    def retry() -> set[ObjectId]:
        start.wait()
        return {
            one
            for one in reversed(ids)
            if store.reopen(notification_id=one, channels=[EMAIL], extra_attempts=1, now=DUE)
        }

    def strip() -> None:
        start.wait()
        for one in ids:
            store.remove_content(ids=[one], before=DUE - 30 * DAY, now=DUE)

    with ThreadPoolExecutor(2) as pool:
        retried, _ = pool.submit(retry), pool.submit(strip)
    for one in ids:
        document, (attempt,) = factories.read(one), factories.attempts(one)
        is_open = one in retried.result()
        assert ("due_at" in document) is is_open
        assert ("content_removed_at" in document) is not is_open
        assert ("body" in document["content"]) is is_open
        assert ("error_message" in attempt) is is_open
