"""The database engine: pipelines of the ORM, and the indexes that serve them."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.models import Session
from django.db.models import F, Q, QuerySet

from access.models import APIClient, StaffUser
from notifications.models import WebhookLog
from notifyproject.db.collections import collection
from notifyproject.db.match import Match
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import Plan, emptied, plans

THOUSANDS = 3_000
LOG = "webhook_log"
pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(scope="module")
def db(_database: None, django_db_blocker: Any) -> Iterator[None]:
    """Store thousands of documents, once for all tests of this module, which only read."""
    names = (LOG, "staff_users", "django_session", "api_clients", "django_admin_log")
    with django_db_blocker.unblock(), emptied(*names):
        _store()
        yield


def _store() -> None:
    collection(LOG).insert_many(
        {
            "provider": "sendgrid" if n % 10 else "smtp",
            "received_at": NOON + timedelta(seconds=n // 2),
            "body": "[]",
            "event_count": n % 3,
            "applied_count": 0,
            "unmatched_count": 0,
        }
        for n in range(THOUSANDS)
    )
    users = collection("staff_users").insert_many(
        {
            "username": f"user.{n}",
            "email": f"user{n}@example.com",
            "password": "!",
            "first_name": "",
            "last_name": "",
            "is_staff": True,
            "is_superuser": False,
            "is_active": True,
            "date_joined": NOON,
        }
        for n in range(THOUSANDS)
    )
    collection("django_admin_log").insert_many(
        {
            "user_id": user_id,
            "object_repr": "x",
            "action_flag": 1,
            "change_message": "",
            "action_time": NOON,
        }
        for user_id in users.inserted_ids
    )
    collection("django_session").insert_many(
        {"session_key": f"session-{n}", "session_data": "x", "expire_date": NOON}
        for n in range(THOUSANDS)
    )
    collection("api_clients").insert_many(
        {
            "name": f"client-{n}",
            "scopes": [],
            "is_active": True,
            "keys": [{"prefix": f"p{n:09d}", "secret_hash": "x", "created_at": NOON}],
            "created_at": NOON,
        }
        for n in range(THOUSANDS)
    )


def read_with_plan(name: str, read: Callable[[], Any]) -> tuple[Any, Plan]:
    with plans(name) as found:
        result = read()
    (plan,) = found
    return result, plan


def pipeline(queryset: QuerySet[Any], name: str = LOG) -> list[dict[str, Any]]:
    return list(read_with_plan(name, lambda: list(queryset))[1].command["pipeline"])


LOGS = WebhookLog.objects.all()
NEWEST = {"$sort": {"received_at": -1, "_id": -1}}


@pytest.mark.parametrize(
    ("queryset", "expected"),
    [
        (LOGS[:20], [NEWEST, {"$limit": 20}]),
        (LOGS[20:40], [NEWEST, {"$skip": 20}, {"$limit": 20}]),
        (LOGS.order_by("-id")[:20], [{"$sort": {"_id": -1}}, {"$limit": 20}]),
        (LOGS.order_by("pk")[:20], [{"$sort": {"_id": 1}}, {"$limit": 20}]),
        (LOGS.reverse()[:20], [{"$sort": {"received_at": 1, "_id": 1}}, {"$limit": 20}]),
        (
            LOGS.filter(provider="smtp")[:20],
            [{"$match": {"provider": "smtp"}}, NEWEST, {"$limit": 20}],
        ),
        (
            LOGS.values("received_at").order_by("-received_at")[:20],
            [{"$sort": {"received_at": -1}}, {"$project": {"received_at": 1}}, {"$limit": 20}],
        ),
        (
            LOGS.order_by("-received_at", "-id").values_list("id", flat=True)[:20],
            [NEWEST, {"$project": {"_id": 1, "received_at": 1}}, {"$limit": 20}],
        ),
        (LOGS.order_by(F("received_at").desc(), "-id")[:20], [NEWEST, {"$limit": 20}]),
    ],
    ids=[
        "default",
        "second page",
        "-id",
        "pk",
        "reversed",
        "filtered",
        "values",
        "values_list",
        "an expression",
    ],
)
def test_sort_by_columns_uses_an_index(
    queryset: QuerySet[WebhookLog], expected: list[dict[str, Any]]
) -> None:
    rows, plan = read_with_plan(LOG, lambda: list(queryset))
    assert plan.command["pipeline"] == expected
    assert len(rows) == 20
    if "$match" not in expected[0]:
        assert plan.is_indexed
        assert not plan.sorts
        assert plan.keys <= 2 * len(rows)


def test_rows_are_in_the_requested_order() -> None:
    rows = list(LOGS.values_list("received_at", "id"))
    assert rows == sorted(rows, reverse=True)
    assert len(rows) == THOUSANDS
    times = list(LOGS.order_by("received_at").values_list("received_at", flat=True))
    assert times == sorted(times)


def test_sort_by_an_annotation_comes_after_it() -> None:
    computed = LOGS.annotate(twice=F("event_count") * 2).order_by("twice", "id")[:50]
    stages = [next(iter(stage)) for stage in pipeline(computed)]
    assert stages.index("$sort") > min(stages.index(s) for s in stages if s != "$sort")
    assert [row.twice for row in computed] == sorted(row.twice for row in computed)


def test_first_and_last_read_one_document() -> None:
    for read in (LOGS.first, LOGS.last):
        row, plan = read_with_plan(LOG, read)
        assert row is not None
        assert plan.is_indexed
        assert plan.examined == 1


@pytest.mark.parametrize(
    ("name", "read"),
    [
        ("staff_users", lambda: StaffUser.objects.get(username="user.77")),
        ("staff_users", lambda: StaffUser.objects.get_by_natural_key("user.77")),
        ("django_session", lambda: Session.objects.filter(session_key="session-77").first()),
        ("api_clients", lambda: APIClient.objects.get(name="client-77")),
        ("api_clients", lambda: APIClient.objects.get(keys__prefix="p000000077")),
    ],
    ids=["username", "natural key", "session key", "client's name", "key's prefix"],
)
def test_unique_field_is_found_by_its_index(name: str, read: Callable[[], Any]) -> None:
    row, plan = read_with_plan(name, read)
    assert row is not None
    assert plan.is_indexed
    assert (plan.examined, plan.keys) == (1, 1)


def test_id_is_found_by_its_index() -> None:
    user = StaffUser.objects.get(username="user.77")
    _, plan = read_with_plan("staff_users", lambda: StaffUser.objects.get(pk=user.pk))
    assert plan.is_by_id or plan.summary == "EXPRESS"
    _, plan = read_with_plan("staff_users", lambda: StaffUser.objects.in_bulk([user.pk]))
    assert plan.is_by_id or plan.summary == "EXPRESS"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("USER.7", {"user.7"}),
        ("user.7", {"user.7"}),
        *((text, set()) for text in ("user.", "user..", ".*", "user?7", "^user", "user.7$")),
        *((text, set()) for text in ("(user.7)", "user.7|user.8", "[a-z]+.7", "\\w+.7")),
    ],
)
def test_iexact_is_no_pattern(text: str, names: set[str]) -> None:
    found = StaffUser.objects.filter(username__iexact=text).values_list("username", flat=True)
    assert set(found) == names


@pytest.mark.parametrize(
    ("lookup", "text", "count"),
    [
        ("startswith", "user.299", 11),
        ("startswith", "user2", 0),
        ("startswith", "u.*", 0),
        ("contains", ".299", 11),
        ("contains", "r.2.", 0),
        ("endswith", ".7", 1),
        ("in", ["user.7", "user.*"], 1),
    ],
)
def test_text_lookups_are_no_patterns(lookup: str, text: Any, count: int) -> None:
    assert StaffUser.objects.filter(**{f"username__{lookup}": text}).count() == count


USERS = StaffUser.objects.filter(username__in=["user.7", "user.8"])


@pytest.mark.parametrize(
    ("read", "count"),
    [
        (lambda: list(USERS.prefetch_related("logentry_set")), 2),
        (lambda: list(LogEntry.objects.filter(user=USERS.first())), 1),
    ],
    ids=["prefetch", "foreign key"],
)
def test_related_rows_are_found_by_an_index(read: Callable[[], Any], count: int) -> None:
    rows, plan = read_with_plan("django_admin_log", read)
    assert len(rows) == count
    assert "$expr" not in str(plan.command)
    assert plan.is_indexed
    assert plan.examined == count


def test_prefetched_rows_belong_to_their_parent() -> None:
    kinds = list(ContentType.objects.prefetch_related("permission_set"))
    assert kinds
    for kind in kinds:
        for permission in kind.permission_set.all():
            assert permission.content_type_id == kind.pk


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Match({"provider": "smtp"}), THOUSANDS // 10),
        (~Q(Match({"provider": "smtp"})), THOUSANDS - THOUSANDS // 10),
        (Q(Match({"provider": "smtp"})) & Q(event_count=0), THOUSANDS // 30),
        (Q(Match({"provider": "none"})) | Q(provider="smtp"), THOUSANDS // 10),
    ],
    ids=["alone", "negated", "and", "or"],
)
def test_raw_match_combines_like_any_condition(condition: Any, expected: int) -> None:
    assert LOGS.filter(condition).count() == expected


def test_raw_match_uses_an_index() -> None:
    match = Match({"received_at": NOON + timedelta(seconds=5)})
    rows, plan = read_with_plan(LOG, lambda: list(LOGS.filter(match)[:5]))
    assert len(rows) == 2
    assert plan.is_indexed
    assert not plan.sorts
    assert plan.examined == 2
