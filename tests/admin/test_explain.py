"""Every read of the lists and of the home page: an index, no sort in memory, little read in vain.

There are enough documents for a scan to show. MongoDB may sort what the index on the deliveries
finds when that is less than a page: it is cheaper than to read on in the list's order.
"""

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.test import Client

from notifications import figures
from notifications.states import Channel, DeliveryStatus
from notifications.timing import utc_now
from notifyproject.db.collections import collection
from tests import conftest, factories

from .conftest import Plan, plans, reads

MANY = 12_000
PAGE = 50
COUNTED = 10_001
"""What counting may read: one more than the cap."""
CLIENTS = [ObjectId("a" * 24), ObjectId("b" * 24)]
TYPES = ["payment_confirmed", "order_shipped", "mfa_code"]


@pytest.fixture(scope="module")
def many(_database: None, django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    """Store many notifications, made of a few by varying what the indexes are on."""
    with django_db_blocker.unblock():
        now = utc_now()
        models = [
            *(factories.settled(status, at=now) for status in _SETTLED),
            factories.accepted(created_at=now),
            factories.accepted(created_at=now, channels=(Channel.EMAIL, Channel.IN_APP)),
        ]
        attempts = list(collection("delivery_attempts").find())
        documents = [_vary(models, n, now) for n in range(MANY)]
        collection("notifications").insert_many(documents)
        collection("delivery_attempts").insert_many(
            [_vary_attempt(attempts, n, document) for n, document in enumerate(documents)]
        )
        collection("webhook_log").insert_many(
            [{"provider": "sendgrid", "received_at": now, "body": "[]"} for _ in range(MANY)]
        )
        collection("recipients").insert_many([_recipient(n, now) for n in range(MANY)])
        collection("django_admin_log").insert_many([_entry(now) for _ in range(MANY)])
        conftest.written.names.clear()
        yield documents[MANY // 2]
        for name in (
            *("notifications", "delivery_attempts", "webhook_log", "recipients"),
            "django_admin_log",
        ):
            collection(name).delete_many({})


_SETTLED = (
    *(DeliveryStatus.SENT, DeliveryStatus.SENT, DeliveryStatus.SENT),
    *(DeliveryStatus.FAILED, DeliveryStatus.PENDING, DeliveryStatus.UNKNOWN),
)
_CHANCE = random.Random(3)


def _vary(models: list[Any], n: int, now: datetime) -> dict[str, Any]:
    """Return another document in the state of one of the models, up to 20 days old."""
    at = now - timedelta(minutes=n * 20 * 24 * 60 / MANY)
    document = dict(_CHANCE.choice(models))
    document |= {
        "_id": ObjectId(ObjectId.from_datetime(at).binary[:4] + n.to_bytes(8, "big")),
        "created_at": at,
        "user_id": f"user-{n % 3000}",
        "client_id": CLIENTS[n % 2],
        "type": TYPES[n % 3],
        "entity_id": f"entity-{n}",
        "external_id": f"external-{n}",
        "idempotency_key": f"key-{n}",
        "recipient": {**document["recipient"], "email": f"p{n % 3000}@example.com"}
        | {"phone": f"+3519{n % 3000:08d}"},
    }
    if "failed_at" in document:
        document["failed_at"] = at
        document["delivery"] = [{**d, "failed_at": at} for d in document["delivery"]]
    return document


def _vary_attempt(attempts: list[Any], n: int, document: dict[str, Any]) -> dict[str, Any]:
    return {
        **attempts[n % len(attempts)],
        "_id": f"{document['_id']}.email.1",
        "notification_id": document["_id"],
        "attempted_at": document["created_at"],
    }


def _recipient(n: int, now: datetime) -> dict[str, Any]:
    return {
        "_id": f"user-{n:05d}",
        "email": f"p{n}@example.com",
        "phone": f"+3519{n:08d}",
        "attributes": {},
        "preferences": {},
        "is_active": True,
        "created_at": now,
        "updated_at": now,
    }


def _entry(now: datetime) -> dict[str, Any]:
    return {"action_time": now, "user_id": ObjectId(), "object_repr": "x", "action_flag": 2} | {
        "content_type_id": None,
        "change_message": "",
        "object_id": "x",
    }


def assert_quick(found: list[Plan], *, examined: int) -> None:
    """Fail if any of the plans scans a collection, sorts in memory, or reads more than allowed."""
    assert found
    for plan in found:
        assert "COLLSCAN" not in plan.stages, plan.told
        assert "SORT" not in plan.stages or plan.documents_examined < PAGE, plan.told
        assert plan.documents_examined <= examined, plan.told


LISTS = [
    ("", COUNTED),
    ("?p=3", COUNTED),
    ("?status=sent", COUNTED),
    ("?status=processing", COUNTED),
    ("?type=order_shipped", COUNTED),
    (f"?client={CLIENTS[0]}", COUNTED),
    ("?channel=email", MANY * 7 / 20 + 100),
    ("?channel=push", MANY * 7 / 20 + 100),
    ("?priority=critical&category=alert", MANY * 7 / 20 + 100),
    ("?delivery_status=unknown", MANY / 3),
    ("?delivery_status=failed", MANY),
    ("?delivery_status=suppressed", MANY * 7 / 20 + 100),
    ("?delivery_status=delivered&channel=in_app&type=mfa_code", MANY * 7 / 20 + 100),
    ("?status=sent&type=mfa_code&created_within=24h", MANY / 20 + 100),
    ("?created_within=24h", MANY / 20 + 100),
]


@pytest.mark.parametrize(("query", "examined"), LISTS, ids=[query or "all" for query, _ in LISTS])
def test_the_list_of_all_notifications(
    many: Any, console: Client, query: str, examined: float
) -> None:
    collection("api_clients").insert_many(
        [{"_id": c, "name": str(c), "scopes": [], "keys": [], "is_active": True} for c in CLIENTS]
    )
    found = plans(console, f"/admin/notifications/notification/{query}", of="notifications")
    assert_quick(found, examined=int(examined))


SEARCHES = (
    *("_id", "user_id", "entity_id", "external_id", "idempotency_key"),
    *("email", "phone", "provider_message_id", "nothing"),
)


@pytest.mark.parametrize("what", SEARCHES)
@pytest.mark.parametrize("where", ["notification", "failednotification"])
def test_each_kind_of_search(many: Any, console: Client, what: str, where: str) -> None:
    text = {
        "email": many["recipient"]["email"],
        "phone": many["recipient"]["phone"].replace("+", "%2B"),
        "provider_message_id": "nothing-like-it",
        "nothing": "nothing@example.org",
    }.get(what) or str(many[what])
    found = plans(console, f"/admin/notifications/{where}/?q={text}", of="notifications")
    # The groups above the failures are read whatever is searched for.
    found = [plan for plan in found if "ntf_failed" not in str(plan.told)]
    assert_quick(found, examined=20)


FAILED = [
    ("", MANY / 4),
    ("?channel=email", MANY / 4),
    ("?channel=push&code=timeout", MANY / 4),
    ("?type=mfa_code", MANY / 4),
    (f"?client={CLIENTS[0]}", MANY / 4),
    ("?failed_within=24h", MANY / 20),
]


@pytest.mark.parametrize(("query", "examined"), FAILED, ids=[query or "all" for query, _ in FAILED])
def test_the_list_of_failures(many: Any, console: Client, query: str, examined: float) -> None:
    collection("api_clients").insert_many(
        [{"_id": c, "name": str(c), "scopes": [], "keys": [], "is_active": True} for c in CLIENTS]
    )
    url = f"/admin/notifications/failednotification/{query}"
    found = plans(console, url, of="notifications")
    assert all("ntf_failed" in str(plan.told) for plan in found)
    groups = [plan for plan in found if "$unwind" in str(plan.told)]
    assert len(groups) == 1
    assert "COLLSCAN" not in groups[0].stages
    assert_quick([plan for plan in found if plan not in groups], examined=int(examined))


OTHERS = [
    ("notifications/deliveryattempt/", "delivery_attempts", COUNTED),
    ("notifications/deliveryattempt/?status=failed", "delivery_attempts", MANY * 7 / 20 + 100),
    ("notifications/deliveryattempt/?attempted_within=24h", "delivery_attempts", MANY / 20 + 100),
    ("notifications/deliveryattempt/?q=64b000000000000000000000", "delivery_attempts", 10),
    ("notifications/webhooklog/", "webhook_log", COUNTED),
    ("recipients/recipient/", "recipients", COUNTED),
    ("recipients/recipient/?q=p77@example.com", "recipients", 10),
    ("recipients/recipient/?q=%2B351900000077", "recipients", 10),
    ("recipients/recipient/?q=user-00077", "recipients", 10),
    ("admin/logentry/", "django_admin_log", COUNTED),
    ("admin/logentry/?done_within=24h", "django_admin_log", COUNTED),
    ("admin/logentry/?action=1", "django_admin_log", MANY),
]


@pytest.mark.parametrize(("path", "name", "examined"), OTHERS, ids=[path for path, *_ in OTHERS])
def test_the_other_lists(many: Any, console: Client, path: str, name: str, examined: float) -> None:
    assert_quick(plans(console, f"/admin/{path}", of=name), examined=int(examined))


def test_the_page_about_one_notification(many: Any, console: Client) -> None:
    url = f"/admin/notifications/notification/{many['_id']}/change/"
    assert_quick(plans(console, url, of="notifications"), examined=1)
    assert_quick(plans(console, url, of="delivery_attempts"), examined=5)


def test_the_home_page(many: Any, console: Client) -> None:
    for plan in plans(console, "/admin/", of="notifications"):
        assert "COLLSCAN" not in plan.stages, plan.told
        assert plan.documents_examined <= MANY / 4, plan.told
        # Only the errors are sorted, once they are grouped.
        assert "SORT" not in plan.stages, plan.told


def test_the_figures_read_no_more_than_their_caps(
    many: Any, monkeypatch: pytest.MonkeyPatch, db: None, reading: Any
) -> None:
    monkeypatch.setattr(figures, "TRAFFIC_CAP", 200)
    monkeypatch.setattr(figures, "FAILURE_CAP", 100)
    now = utc_now()
    reads.commands.clear()
    reads.is_on = True
    traffic = figures.traffic(now=now)
    failures = figures.failures(since=now - timedelta(days=10))
    reads.is_on = False
    assert traffic.counted_since is not None
    assert failures.counted_since is not None
    assert failures.total == 100
    counted, grouped = (Plan(command).documents_examined for command in reads.commands)
    assert counted <= 200
    assert grouped <= 100
