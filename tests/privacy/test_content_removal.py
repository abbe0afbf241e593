"""Content removal: removed fields, kept fields, and query plans."""

import io
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.core.management import call_command

from domain.channels import Channel
from domain.states import Category, DeliveryStatus
from domain.time import utc_now
from notifications.actions import actions
from notifications.actions.assessment import assess_risks
from notifications.actions.risk import RiskKind
from notifications.catalog import retention
from notifications.documents.notification import NotificationDocument
from notifications.store import actions as store_actions
from notifications.store import collections, receipts, recovery, removal
from notifications.store.reading import content_of, recipient_of
from notifyproject.db.collections import collection
from privacy import content_removal
from privacy.content_removal import ContentRemoval
from tasks import tasks
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import DAY, NOON
from tests.support.factories.notifications import FULL_FIELDS as FULL
from tests.support.factories.notifications import MILLISECOND as TICK
from tests.support.factories.notifications import REMOVAL_DUE as DUE
from tests.support.factories.notifications import is_content_removed as is_removed
from tests.support.factories.notifications import receipt as report
from tests.support.factories.notifications import remove_content as remove
from tests.support.factories.notifications import set_retention_days as policy
from tests.support.factories.notifications import settled_with_content as ended
from tests.support.mongo.query_plans import Plan, plans

pytestmark = pytest.mark.usefixtures("db", "search_keys_follow")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
ALL = set(Category)
HOUR = timedelta(hours=1)
COUNT = 300


def test_content_and_addresses_are_removed() -> None:
    before = ended()
    assert remove() == ContentRemoval(notifications=1, attempts=1, is_complete=True)
    after = factories.read(before["_id"])
    assert after["content"] == {
        "template_id": "payment_confirmed",
        "template_version": 3,
        "look": {"design": 3, "brand": "acme", "layout": "main"},
    }
    assert after["data"] == {}
    locale = {"locale": "pt", "timezone": "Europe/Lisbon"}
    assert after["recipient"] == {"device_ids": ["d" * 64], "given": [], **locale}
    assert after["content_removed_at"] == DUE
    for text in ("Ada", "ada@", "+351", "49.90", "payment has", "app://", "files.example", "503)"):
        assert text not in str(after)


def test_delivery_history_is_kept() -> None:
    before = ended()
    remove()
    after = factories.read(before["_id"])
    changed = {"content", "recipient", "data", "error", "error_history", "delivery"}
    changed |= {"content_removed_at", "search_keys"}
    kept = [{k: v for k, v in document.items() if k not in changed} for document in (before, after)]
    assert kept[0] == kept[1]
    (was,), (is_,) = before["delivery"], after["delivery"]
    assert is_ == {name: value for name, value in was.items() if name != "failure_reason"}
    assert is_["failure_code"] == "provider_error"
    (line,) = after["error_history"]
    assert (line["code"], line["error"]) == ("provider_error", "")


@pytest.mark.parametrize("status", [S.SENT, S.FAILED])
def test_attempt_loses_only_its_texts(status: DeliveryStatus) -> None:
    document = ended(status)
    words = {"platform_response.body": "ada@ is unknown", "platform_response.code": "5.1.1"}
    collection("delivery_attempts").update_one({}, {"$set": {**words, "error_message": "Ada?"}})
    (before,) = factories.attempts(document["_id"])
    remove()
    (after,) = factories.attempts(document["_id"])
    answer = {"status": before["platform_response"]["status"], "code": "5.1.1"}
    assert after == {
        **{name: value for name, value in before.items() if name != "error_message"},
        "platform_response": answer,
    }


def test_stripped_notification_is_readable() -> None:
    document = ended()
    remove()
    after = factories.read(document["_id"])
    assert content_of(after).template_version == 3
    assert recipient_of(after).address(EMAIL) is None


def test_attempt_without_a_response_gets_none() -> None:
    document = factories.started()
    recovery.expire_leases(now=NOON + DAY)
    receipts.apply_receipt(report(document.notification_id, S.DELIVERED), now=NOON + DAY)
    remove(at=DUE + DAY)
    (attempt,) = factories.attempts(document.notification_id)
    assert {"platform_response", "error_message"}.isdisjoint(attempt)


@pytest.mark.parametrize(("at", "is_removed_"), [(DUE - TICK, False), (DUE, True)])
def test_content_is_removed_at_the_end_of_its_days(at: datetime, is_removed_: bool) -> None:
    document = ended()
    remove(at=at)
    assert is_removed(document) is is_removed_


def test_each_category_has_its_own_days() -> None:
    policy(Category.MARKETING, content_days=7)
    policy(Category.ALERT, content_days=60)
    documents = {category: ended(category=category) for category in Category}
    for days, expected in ((7, {"marketing"}), (30, {"transactional", "marketing"}), (60, ALL)):
        remove(at=NOON + days * DAY + TICK)
        assert {c for c, document in documents.items() if is_removed(document)} == expected


def test_days_count_from_the_last_change() -> None:
    document = ended(S.SENT)
    receipts.apply_receipt(report(document["_id"], S.DELIVERED), now=NOON + 5 * DAY)
    remove()
    assert not is_removed(document)
    remove(at=DUE + 5 * DAY)
    assert is_removed(document)


def test_removal_does_not_change_updated_at() -> None:
    """A change of ``updated_at`` would delay the purge, and make metrics be recounted."""
    document = ended()
    remove()
    assert factories.read(document["_id"])["updated_at"] == document["updated_at"]


def test_repeated_removal_changes_nothing() -> None:
    document = ended()
    remove()
    first = factories.read(document["_id"]), factories.attempts(document["_id"])
    again = remove(at=DUE + DAY, is_from_beginning=True)
    assert (again.notifications, again.attempts) == (0, 0)
    assert (factories.read(document["_id"]), factories.attempts(document["_id"])) == first


def test_text_of_a_later_receipt_is_removed_later() -> None:
    document = ended(S.SENT)
    remove()
    receipts.apply_receipt(report(document["_id"], S.FAILED), now=DUE)
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
def test_open_notification_is_kept_until_it_has_ended(
    still_open: Callable[[], NotificationDocument],
) -> None:
    document = factories.read(still_open()["_id"])
    late = NOON + 32 * DAY
    remove(at=late)
    assert factories.read(document["_id"]) == document
    channels = [Channel(name) for name in document["channels"]]
    recovery.expire_leases(now=late)
    receipts.apply_receipt(report(document["_id"], S.DELIVERED), now=late)
    store_actions.cancel(notification_id=document["_id"], channels=channels, reason="x", now=late)
    remove(at=late + 30 * DAY + TICK)
    assert is_removed(document)


def test_erased_notification_is_unchanged() -> None:
    document = ended()
    removal.erase(removal.erasable(user_id="ada", limit=9), user_id="ada", now=NOON)
    remove()
    assert not is_removed(document)


def in_app(*channels: Channel) -> NotificationDocument:
    return factories.accepted(**FULL, channels=(IN_APP, *channels))


def test_inbox_keeps_its_content() -> None:
    document = in_app()
    remove()
    after = factories.read(document["_id"])
    shown: dict[str, Any] = {**document["content"]}
    kept = ("subject", "body", "image_url", "deep_link", "payload")
    assert {name: dict(after["content"])[name] for name in kept} == {
        name: shown[name] for name in kept
    }
    assert not {"attachments", "reply_to"} & after["content"].keys()
    assert (after["data"], after["content_removed_at"]) == ({}, DUE)
    assert "ada@" not in str(after)


def test_content_deleted_from_the_inbox_is_removed() -> None:
    document = in_app()
    collection("notifications").update_one({}, {"$set": {"is_active": False}})
    remove()
    assert "body" not in factories.read(document["_id"])["content"]


@pytest.mark.parametrize("again", [actions.resend, actions.retry])
def test_stripped_notification_is_not_sent_again(again: Callable[..., Any]) -> None:
    document = ended()
    remove()
    before = factories.read(document["_id"])
    with pytest.raises(actions.ContentRemovedError, match=f"removed on {DUE:%Y-%m-%d}"):
        again(notification_id=document["_id"], channels=None, now=DUE)
    assert factories.read(document["_id"]) == before
    assert collection("notifications").count_documents({}) == 1


def test_risk_of_a_stripped_notification_is_will_fail_again() -> None:
    document = ended()
    remove()
    found = assess_risks([factories.read(document["_id"])], now=DUE)[(document["_id"], EMAIL)]
    assert found.kind is RiskKind.WILL_FAIL_AGAIN
    assert "removed by retention" in found.reason


def test_concurrent_retry_and_removal_leave_a_consistent_state() -> None:
    """Each notification is open with its content, or closed without it."""
    ids = [ended()["_id"] for _ in range(30)]
    start = threading.Barrier(2)

    def retry() -> set[ObjectId]:
        start.wait()
        return {
            notification_id
            for notification_id in reversed(ids)
            if store_actions.reopen(notification_id=notification_id, channels=[EMAIL], now=DUE)
        }

    def remove_all() -> None:
        start.wait()
        for notification_id in ids:
            removal.remove_content(ids=[notification_id], before=DUE - 30 * DAY, now=DUE)

    with ThreadPoolExecutor(2) as pool:
        retried, _ = pool.submit(retry), pool.submit(remove_all)
    for notification_id in ids:
        document, (attempt,) = factories.read(notification_id), factories.attempts(notification_id)
        is_open = notification_id in retried.result()
        assert ("due_at" in document) is is_open
        assert ("content_removed_at" in document) is not is_open
        assert ("body" in document["content"]) is is_open
        assert ("error_message" in attempt) is is_open


def positions() -> dict[str, datetime | None]:
    return {policy.category.value: policy.removed_until for policy in retention.read_all()}


@pytest.fixture
def many() -> None:
    """Store notifications that ended a minute apart, in alternating categories."""
    model = factories.settled(S.FAILED)
    (attempt,) = factories.attempts(model["_id"])
    ids = [ObjectId() for _ in range(COUNT)]
    categories = [category.value for category in Category]
    collection("notifications").insert_many(
        model
        | {"_id": notification_id, "category": categories[n % 3]}
        | {"updated_at": NOON + n * timedelta(minutes=1)}
        for n, notification_id in enumerate(ids)
    )
    collection("delivery_attempts").insert_many(
        {**attempt, "_id": f"{notification_id}.email.1", "notification_id": notification_id}
        for notification_id in ids
    )
    collection("notifications").delete_one({"_id": model["_id"]})
    collection("delivery_attempts").delete_one({"_id": attempt["_id"]})


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(content_removal, "BATCH", 10)


def removed_count() -> int:
    return collection("notifications").count_documents({"content_removed_at": {"$exists": True}})


def walked(found: list[Plan]) -> list[Plan]:
    """Return the plans of the reads that use the index on ``updated_at``."""
    return [p for p in found if "find" in p.command and "updated_at: 1" in p.summary]


@pytest.mark.usefixtures("many")
def test_due_content_is_found_by_the_last_change() -> None:
    with plans("notifications") as found:
        done = remove(at=NOON + 30 * DAY + 2 * HOUR)
    assert (done.notifications, done.attempts, removed_count()) == (120, 120, 120)
    assert walked(found)
    assert sum(plan.examined for plan in walked(found)) <= 120 + 1, "one to find the position"
    assert not any(plan.sorts for plan in found)
    assert all(plan.is_indexed or plan.is_by_id for plan in found)


@pytest.mark.usefixtures("many")
def test_attempts_are_found_by_their_notification() -> None:
    with plans("delivery_attempts") as found:
        remove(at=NOON + 30 * DAY + 2 * HOUR)
    assert all("notification_id: 1" in plan.summary for plan in found)
    assert sum(plan.examined for plan in found) == 120


@pytest.mark.usefixtures("many")
def test_second_run_reads_only_later_changes() -> None:
    remove(at=NOON + 30 * DAY + 2 * HOUR)
    with plans("notifications") as found:
        assert remove(at=NOON + 30 * DAY + 2 * HOUR).notifications == 0
    assert sum(plan.examined for plan in found) <= 1
    with plans("notifications") as found:
        assert remove(at=NOON + 30 * DAY + 3 * HOUR).notifications == 60
    assert sum(plan.examined for plan in walked(found)) <= 60 + 1


@pytest.mark.usefixtures("many")
def test_categories_with_equal_days_share_a_position() -> None:
    remove(at=NOON + 30 * DAY + HOUR)
    assert set(positions().values()) == {NOON + HOUR}
    policies = collection("retention_policies")
    policies.update_one({"_id": "marketing"}, {"$set": {"content_days": 29}})
    remove(at=NOON + 30 * DAY + HOUR)
    others = dict.fromkeys(("transactional", "alert"), NOON + HOUR)
    assert positions() == others | {"marketing": NOON + DAY + HOUR}
    left = collection("notifications").find({"content_removed_at": None}).distinct("category")
    assert left == ["alert", "transactional"]


@pytest.mark.usefixtures("many")
def test_longer_retention_skips_nothing() -> None:
    policies = collection("retention_policies")
    remove(at=NOON + 30 * DAY + HOUR)
    policies.update_many({}, {"$set": {"content_days": 40}})
    assert remove(at=NOON + 31 * DAY).notifications == 0
    assert set(positions().values()) == {NOON + HOUR}
    assert remove(at=NOON + 41 * DAY).notifications == COUNT - 60
    assert removed_count() == COUNT


@pytest.mark.usefixtures("many", "small_batches")
def test_short_run_continues_where_it_stopped() -> None:
    until = NOON + 31 * DAY
    runs: list[ContentRemoval] = []
    while not runs or not runs[-1].is_complete:
        runs.append(remove(at=until, seconds=0))
    assert sum(run.notifications for run in runs) == COUNT
    assert len(runs) > COUNT // 10
    assert max(run.notifications for run in runs) == 10


@pytest.mark.usefixtures("many", "small_batches")
def test_run_interrupted_before_its_attempts_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([True])

    def fail_once() -> Iterator[object]:
        if next(failures, False):
            raise ConnectionError
        return real_attempts()

    real_attempts = collections.attempts
    monkeypatch.setattr(removal, "attempts", fail_once)
    with pytest.raises(ConnectionError):
        remove(at=NOON + 31 * DAY)
    assert removed_count() == 10
    done = remove(at=NOON + 31 * DAY)
    assert (done.notifications, done.attempts) == (COUNT - 10, COUNT)


def test_removal_of_nothing_succeeds() -> None:
    assert remove(at=NOON) == ContentRemoval(notifications=0, attempts=0, is_complete=True)
    assert content_removal.count_expired_content(now=NOON) == 0


def test_task_removes_content() -> None:
    long_ago = utc_now() - 31 * DAY
    factories.settled(S.FAILED, at=long_ago, created_at=long_ago)
    tasks.remove_content()
    assert removed_count() == 1


def remove_content(*options: str) -> str:
    output = io.StringIO()
    call_command("remove_content", *options, stdout=output)
    return output.getvalue()


def test_command_counts_removes_and_repeats() -> None:
    long_ago = utc_now() - 31 * DAY
    document = factories.settled(S.FAILED, at=long_ago, created_at=long_ago)
    assert remove_content("--dry-run") == "The content of 1 notifications would be removed.\n"
    assert removed_count() == 0
    assert remove_content().startswith("Removed the content of 1 notifications and of 1 ")
    assert remove_content().startswith("Removed the content of 0 ")
    restored = {"$unset": {"content_removed_at": ""}}
    collection("notifications").update_one({"_id": document["_id"]}, restored)
    assert remove_content("--dry-run").startswith("The content of 0 ")
    assert remove_content("--dry-run", "--from-beginning").startswith("The content of 1 ")
    assert remove_content("--from-beginning").startswith("Removed the content of 1 ")
