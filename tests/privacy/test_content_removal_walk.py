"""How old content is found: by an index that is there anyway, and nothing is looked at twice."""

import io
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from bson import ObjectId
from django.core.management import call_command

from background import tasks
from domain.states import Category, DeliveryStatus
from domain.time import utc_now
from notifications.catalog import retention
from notifications.store import removal
from notifyproject.db.collections import collection
from privacy import content_removal
from privacy.content_removal import ContentRemoval
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import Plan, plans

pytestmark = pytest.mark.usefixtures("db")

S = DeliveryStatus
DAY, HOUR, TICK = timedelta(days=1), timedelta(hours=1), timedelta(milliseconds=1)
COUNT = 300


def remove(*, at: datetime, **options: object) -> ContentRemoval:
    return content_removal.remove_expired_content(now=at, **options)


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
    collection(retention.COLLECTION).update_one(
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
    policies = collection(retention.COLLECTION)
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


# By hand.


def told(*options: str) -> str:
    said = io.StringIO()
    call_command("retain", *options, stdout=said)
    return said.getvalue()


def test_the_command_counts_removes_and_looks_again() -> None:
    long_ago = utc_now() - 31 * DAY
    document = factories.settled(S.FAILED, at=long_ago, created_at=long_ago)
    assert told("--dry-run") == "What 1 notifications say would be removed.\n"
    assert gone() == 0
    assert told().startswith("What 1 notifications said was removed, with the words of 1 ")
    assert told().startswith("What 0 ")
    restored = {"$unset": {"content_removed_at": ""}}
    collection("notifications").update_one({"_id": document["_id"]}, restored)
    assert told("--dry-run").startswith("What 0 ")
    assert told("--dry-run", "--from-beginning").startswith("What 1 ")
    assert told("--from-beginning").startswith("What 1 ")
