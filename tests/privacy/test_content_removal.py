"""Content removal: what goes, what is spared, and how it is found."""

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import call_command

from background import tasks
from domain.states import Category, Channel, DeliveryStatus
from domain.time import utc_now
from notifications import store
from notifications.catalog import retention
from notifications.resend import actions
from notifications.resend.assessment import assess_risks
from notifications.resend.risk import RiskKind
from notifications.store import Document, removal
from notifyproject.db.collections import collection
from privacy import content_removal
from privacy.content_removal import ContentRemoval
from tests.support.factories import notifications as factories
from tests.support.factories.aged_notifications import (
    DAY,
    DUE,
    FULL,
    TICK,
    ended,
    is_removed,
    policy,
    remove,
    report,
)
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import Plan, plans

pytestmark = pytest.mark.usefixtures("db")


EMAIL, PUSH, WHATSAPP, IN_APP = Channel

S = DeliveryStatus


def test_what_it_says_and_to_which_address_goes() -> None:
    before = ended()
    assert remove() == ContentRemoval(notifications=1, attempts=1, is_complete=True)
    after = factories.read(before["_id"])
    assert after["content"] == {"template_id": "payment_confirmed", "template_version": 3}
    assert after["data"] == {}
    assert after["recipient"] == {
        "device_ids": ["d" * 64],
        "locale": "pt",
        "timezone": "Europe/Lisbon",
    }
    assert after["content_removed_at"] == DUE
    for said in ("Ada", "ada@", "+351", "49.90", "payment has", "app://", "files.example", "503)"):
        assert said not in str(after)


def test_what_explains_the_delivery_stays() -> None:
    before = ended()
    remove()
    after = factories.read(before["_id"])
    gone = {"content", "recipient", "data", "error", "error_history", "delivery"}
    assert {k: v for k, v in after.items() if k not in {*gone, "content_removed_at"}} == {
        k: v for k, v in before.items() if k not in gone
    }
    (was,), (is_,) = before["delivery"], after["delivery"]
    assert is_ == {name: value for name, value in was.items() if name != "failure_reason"}
    assert is_["failure_code"] == "provider_error"
    (line,) = after["error_history"]
    assert (line["code"], line["error"]) == ("provider_error", "")


@pytest.mark.parametrize("status", [S.SENT, S.FAILED])
def test_of_an_attempt_stays_all_but_the_words(status: DeliveryStatus) -> None:
    document = ended(status)
    words = {"platform_response.body": "ada@ is unknown", "platform_response.code": "5.1.1"}
    collection("delivery_attempts").update_one({}, {"$set": {**words, "error_message": "Ada?"}})
    (before,) = factories.attempts(document["_id"])
    remove()
    (after,) = factories.attempts(document["_id"])
    status_code = before["platform_response"]["status"]
    answer = {"status": status_code, "code": "5.1.1"}
    assert after == {
        **{name: value for name, value in before.items() if name != "error_message"},
        "platform_response": answer,
    }


def test_the_store_still_reads_it() -> None:
    document = ended()
    remove()
    after = factories.read(document["_id"])
    assert store.content_of(after).template_version == 3
    assert store.recipient_of(after).address(EMAIL) is None


def test_an_attempt_without_an_answer_is_given_none() -> None:
    document = factories.started()
    store.expire_leases(now=NOON + DAY)
    store.apply_receipt(report(document.notification_id, S.DELIVERED), now=NOON + DAY)
    remove(at=DUE + DAY)
    (attempt,) = factories.attempts(document.notification_id)
    assert {"platform_response", "error_message"}.isdisjoint(attempt)


@pytest.mark.parametrize(("at", "goes"), [(DUE - TICK, False), (DUE, True)])
def test_it_goes_when_its_days_are_over_and_not_a_moment_before(at: datetime, goes: bool) -> None:
    document = ended()
    remove(at=at)
    assert is_removed(document) is goes


def test_each_category_has_its_own_days() -> None:
    policy(Category.MARKETING, content_days=7)
    policy(Category.ALERT, content_days=60)
    some = {one: ended(category=one) for one in Category}
    gone = []
    for days in (7, 30, 60):
        remove(at=NOON + days * DAY + TICK)
        gone.append([c.value for c, document in some.items() if is_removed(document)])
    assert gone == [
        ["marketing"],
        ["transactional", "marketing"],
        ["transactional", "marketing", "alert"],
    ]


def test_the_days_begin_with_the_last_thing_that_happened() -> None:
    document = ended(S.SENT)
    store.apply_receipt(report(document["_id"], S.DELIVERED), now=NOON + 5 * DAY)
    remove()
    assert not is_removed(document)
    remove(at=DUE + 5 * DAY)
    assert is_removed(document)


def test_to_remove_is_nothing_that_happened() -> None:
    """Deleting what nobody touched for so long counts from before, and figures are not redone."""
    document = ended()
    remove()
    assert factories.read(document["_id"])["updated_at"] == document["updated_at"]


def test_again_changes_nothing() -> None:
    document = ended()
    remove()
    first = factories.read(document["_id"]), factories.attempts(document["_id"])
    again = remove(at=DUE + DAY, is_from_beginning=True)
    assert (again.notifications, again.attempts) == (0, 0)
    assert (factories.read(document["_id"]), factories.attempts(document["_id"])) == first


def test_what_a_provider_reports_after_it_goes_in_its_turn() -> None:
    document = ended(S.SENT)
    remove()
    store.apply_receipt(report(document["_id"], S.FAILED), now=DUE)
    assert "ada@" in str(factories.read(document["_id"]))
    remove(at=DUE + 30 * DAY + TICK)
    after = factories.read(document["_id"])
    assert "ada@" not in str(after)
    assert (after["status"], after["content_removed_at"]) == ("failed", DUE)


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
    assert "removed by retention" in found.reason


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


HOUR = timedelta(hours=1)

COUNT = 300


def positions() -> dict[str, datetime | None]:
    return {one.category.value: one.removed_until for one in retention.read_all()}


@pytest.fixture
def many() -> None:
    """Store notifications that ended a minute apart from noon on, of each category in turn."""
    model = factories.settled(S.FAILED)
    (attempt,) = factories.attempts(model["_id"])
    ids = [ObjectId() for _ in range(COUNT)]
    categories = [category.value for category in Category]
    collection("notifications").insert_many(
        {
            **model,
            "_id": one,
            "category": categories[n % 3],
            "updated_at": NOON + n * timedelta(minutes=1),
        }
        for n, one in enumerate(ids)
    )
    collection("delivery_attempts").insert_many(
        {**attempt, "_id": f"{one}.email.1", "notification_id": one} for one in ids
    )
    collection("notifications").delete_one({"_id": model["_id"]})
    collection("delivery_attempts").delete_one({"_id": attempt["_id"]})


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ten done at once."""
    monkeypatch.setattr(content_removal, "BATCH", 10)


def gone() -> int:
    wanted = {"content_removed_at": {"$exists": True}}
    return collection("notifications").count_documents(wanted)


def read(found: list[Plan]) -> list[Plan]:
    return [plan for plan in found if "find" in plan.command]


@pytest.mark.usefixtures("many")
def test_what_is_due_is_found_by_the_last_change_and_changed_by_id() -> None:
    with plans("notifications") as found:
        done = remove(at=NOON + 30 * DAY + 2 * HOUR)
    assert (done.notifications, done.attempts, gone()) == (120, 120, 120)
    walked = [p for p in read(found) if "updated_at: 1" in p.summary]
    assert walked
    assert sum(plan.examined for plan in walked) <= 120 + 1, "one of them to see where to begin"
    assert not any(plan.sorts for plan in found)
    assert all(plan.is_indexed or plan.is_by_id for plan in found)


@pytest.mark.usefixtures("many")
def test_the_attempts_of_a_batch_are_found_by_their_notification() -> None:
    with plans("delivery_attempts") as found:
        remove(at=NOON + 30 * DAY + 2 * HOUR)
    assert all("notification_id: 1" in plan.summary for plan in found)
    assert sum(plan.examined for plan in found) == 120


@pytest.mark.usefixtures("many")
def test_a_second_run_looks_only_at_what_has_come_since() -> None:
    remove(at=NOON + 30 * DAY + 2 * HOUR)
    with plans("notifications") as found:
        assert remove(at=NOON + 30 * DAY + 2 * HOUR).notifications == 0
    assert sum(plan.examined for plan in found) <= 1
    with plans("notifications") as found:
        assert remove(at=NOON + 30 * DAY + 3 * HOUR).notifications == 60
    walked = [p for p in read(found) if "updated_at: 1" in p.summary]
    assert sum(plan.examined for plan in walked) <= 60 + 1


@pytest.mark.usefixtures("many")
def test_categories_with_the_same_days_are_walked_together_and_others_apart() -> None:
    remove(at=NOON + 30 * DAY + HOUR)
    assert set(positions().values()) == {NOON + HOUR}
    collection("retention_policies").update_one(
        {"_id": "marketing"}, {"$set": {"content_days": 29}}
    )
    remove(at=NOON + 30 * DAY + HOUR)
    assert positions() == {
        "transactional": NOON + HOUR,
        "marketing": NOON + DAY + HOUR,
        "alert": NOON + HOUR,
    }
    left = collection("notifications").find({"content_removed_at": None}).distinct("category")
    assert left == ["alert", "transactional"]


@pytest.mark.usefixtures("many")
def test_longer_days_bring_nothing_back_and_nothing_is_passed_over_by_them() -> None:
    policies = collection("retention_policies")
    remove(at=NOON + 30 * DAY + HOUR)
    policies.update_many({}, {"$set": {"content_days": 40}})
    assert remove(at=NOON + 31 * DAY).notifications == 0
    assert set(positions().values()) == {NOON + HOUR}
    assert remove(at=NOON + 41 * DAY).notifications == COUNT - 60
    assert gone() == COUNT


@pytest.mark.usefixtures("many", "small_batches")
def test_a_run_that_is_short_of_time_goes_on_where_it_was() -> None:
    until = NOON + 31 * DAY
    runs: list[ContentRemoval] = []
    while not runs or not runs[-1].is_complete:
        runs.append(remove(at=until, seconds=0))
    assert sum(run.notifications for run in runs) == COUNT
    assert len(runs) > COUNT // 10
    assert max(run.notifications for run in runs) == 10


@pytest.mark.usefixtures("many", "small_batches")
def test_a_run_that_breaks_off_between_notifications_and_attempts_is_made_good(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = iter([True])

    def breaking() -> Iterator[object]:
        if next(broken, False):
            raise ConnectionError
        return whole()

    whole = removal.attempts
    monkeypatch.setattr(removal, "attempts", breaking)
    with pytest.raises(ConnectionError):
        remove(at=NOON + 31 * DAY)
    assert gone() == 10
    done = remove(at=NOON + 31 * DAY)
    assert (done.notifications, done.attempts) == (COUNT - 10, COUNT)


def test_nothing_at_all_is_no_trouble() -> None:
    assert remove(at=NOON) == ContentRemoval(notifications=0, attempts=0, is_complete=True)
    assert content_removal.count_expired_content(now=NOON) == 0


def test_the_task_of_every_minute_does_it() -> None:
    long_ago = utc_now() - 31 * DAY
    factories.settled(S.FAILED, at=long_ago, created_at=long_ago)
    tasks.remove_content()
    assert gone() == 1


def told(*options: str) -> str:
    said = io.StringIO()
    call_command("retain", *options, stdout=said)
    return said.getvalue()


def test_the_command_counts_removes_and_looks_again() -> None:
    long_ago = utc_now() - 31 * DAY
    document = factories.settled(S.FAILED, at=long_ago, created_at=long_ago)
    assert told("--dry-run") == "The content of 1 notifications would be removed.\n"
    assert gone() == 0
    assert told().startswith("Removed the content of 1 notifications and of 1 ")
    assert told().startswith("Removed the content of 0 ")
    restored = {"$unset": {"content_removed_at": ""}}
    collection("notifications").update_one({"_id": document["_id"]}, restored)
    assert told("--dry-run").startswith("The content of 0 ")
    assert told("--dry-run", "--from-beginning").startswith("The content of 1 ")
    assert told("--from-beginning").startswith("Removed the content of 1 ")
