"""Query plans of the lists and the home page: indexed, not sorted in memory, few documents read.

There are enough documents to reveal a scan. MongoDB may sort the results of the index on
deliveries if they are less than a page, because that costs less than reading in the list's order.
"""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib import admin
from django.test import Client, RequestFactory

from access.models import StaffUser
from console.saved_views.filters import read_filters
from console.widgets import window_list
from console.widgets.filters import TimeFilter
from console.widgets.lists import ConsoleAdmin
from domain.time import utc_now
from monitoring import failure_groups, saved_views
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, encode_cursor
from tests.support.factories import console_data
from tests.support.factories.console_data import BEYOND_COUNTS, CLIENTS, MANY
from tests.support.mongo.explained_reads import Plan, plans, reads
from tests.support.mongo.written_collections import written
from tests.support.tables import each_case

PAGE = 50
COUNTED = 10_001
"""The documents that a count may read: one more than the cap on counts."""


@pytest.fixture(scope="module")
def many(_database: None, django_db_blocker: Any) -> Iterator[dict[str, Any]]:
    """Store many documents in all collections of the console; return a notification."""
    with django_db_blocker.unblock():
        middle = console_data.insert_console_data(now=utc_now())
        written.forget()
        yield middle
        console_data.remove_console_data()


@pytest.fixture
def api_clients(db: None) -> None:
    collection("api_clients").insert_many(
        [{"_id": c, "name": str(c), "scopes": [], "keys": [], "is_active": True} for c in CLIENTS]
    )


def assert_quick(found: list[Plan], *, examined: int) -> None:
    """Fail if any of the plans scans a collection, sorts in memory, or reads more than allowed."""
    assert found
    for plan in found:
        assert "COLLSCAN" not in plan.stages, plan.explained
        assert "SORT" not in plan.stages or plan.documents_examined < PAGE, plan.explained
        assert plan.documents_examined <= examined, plan.explained


def with_cursors(query: str, model: str, *values: Any) -> str:
    """Fill in ``{place}`` and ``{before}`` with a forward and a backward cursor of a list."""
    name = f"console-{model}"
    return query.format(
        place=encode_cursor(Cursor(values), list_name=name),
        before=encode_cursor(Cursor(values, backwards=True), list_name=name),
    )


WEEK = MANY * 7 / 20 + 100
"""The documents that a list of the last week may read."""
FIRST = PAGE + 1
"""The documents that an indexed page reads: its rows, and one more to detect a next page."""
LISTS = [
    ("", FIRST),
    ("?cursor={place}", FIRST + 1),
    ("?cursor={before}", FIRST + 1),
    ("?status=sent", FIRST),
    ("?status=sent&cursor={place}", FIRST + 1),
    ("?status=processing", FIRST),
    ("?type=order_shipped", FIRST),
    (f"?client={CLIENTS[0]}", FIRST),
    ("?category=transactional", FIRST),
    ("?channel=email", WEEK),
    ("?channel=push", WEEK),
    ("?priority=critical&category=alert", WEEK),
    ("?code=provider_error&channel=email", WEEK),
    ("?attempts=1&type=mfa_code", WEEK),
    ("?delivery_status=unknown", MANY / 3),
    ("?delivery_status=failed", MANY),
    ("?delivery_status=suppressed", WEEK),
    ("?delivery_status=delivered&channel=in_app&type=mfa_code", WEEK),
    ("?status=sent&type=mfa_code&created_within=24h", MANY / 20 + 100),
    ("?created_within=24h", MANY / 20 + 100),
]


@pytest.mark.usefixtures("api_clients")
@each_case("query, examined", LISTS)
def test_notification_list_uses_an_index(
    many: Any, console: Client, query: str, examined: float
) -> None:
    query = with_cursors(query, "notification", many["created_at"], many["_id"])
    url = f"/admin/notifications/notification/{query}"
    assert_quick(plans(console, url, of="notifications"), examined=int(examined))


SEARCHES = (
    "_id",
    "user_id",
    "entity_id",
    "external_id",
    "idempotency_key",
    "email",
    "phone",
    "provider_message_id",
    "nothing",
)


@each_case("field", SEARCHES)
@each_case("model", ["notification", "failednotification"])
def test_search_uses_an_index(many: Any, console: Client, field: str, model: str) -> None:
    text = {
        "email": many["recipient"]["email"],
        "phone": many["recipient"]["phone"].replace("+", "%2B"),
        "provider_message_id": "nothing-like-it",
        "nothing": "nothing@example.org",
    }.get(field) or str(many[field])
    found = plans(console, f"/admin/notifications/{model}/?q={text}", of="notifications")
    # The groups above the failures are read whatever is searched for.
    found = [plan for plan in found if "ntf_failed" not in str(plan.explained)]
    assert_quick(found, examined=20)


FAILED = [
    ("", MANY / 4),
    ("?channel=email", MANY / 4),
    ("?channel=push&code=timeout", MANY / 4),
    ("?type=mfa_code", MANY / 4),
    (f"?client={CLIENTS[0]}", MANY / 4),
    ("?failed_within=24h", MANY / 20),
    ("?category=transactional&priority=normal&attempts=1", MANY / 4),
    ("?channel=email&code=provider_error&provider=sendgrid", MANY / 4),
]


@pytest.mark.usefixtures("api_clients")
@each_case("query, examined", FAILED)
def test_failed_list_uses_an_index(many: Any, console: Client, query: str, examined: float) -> None:
    url = f"/admin/notifications/failednotification/{query}"
    found = plans(console, url, of="notifications")
    # Notifications whose resend risk is shown are read by their ID.
    found = [plan for plan in found if "'ntf_" in str(plan.explained)]
    assert all("ntf_failed" in str(plan.explained) for plan in found)
    groups = [plan for plan in found if "$unwind" in str(plan.explained)]
    assert len(groups) == 1
    assert "COLLSCAN" not in groups[0].stages
    assert_quick([plan for plan in found if plan not in groups], examined=int(examined))


PENDING = [
    ("", FIRST),
    ("?cursor={place}", FIRST),
    ("?cursor={before}&priority=normal", FIRST),
    ("?priority=normal", FIRST),
    ("?reason=retry", MANY / 2),
    ("?reason=receipt&channel=email", MANY / 2),
    ("?due_within=24h&type=mfa_code", MANY / 2),
    (f"?client={CLIENTS[0]}", MANY / 2),
]


@pytest.mark.usefixtures("api_clients")
@each_case("query, examined", PENDING)
def test_pending_list_uses_an_index(
    many: Any, console: Client, query: str, examined: float
) -> None:
    query = with_cursors(query, "waitingnotification", utc_now() - timedelta(days=9), many["_id"])
    url = f"/admin/notifications/waitingnotification/{query}"
    assert_quick(plans(console, url, of="notifications"), examined=int(examined))


@each_case("query", ["", "&priority=normal&due_within=24h", "&cursor={place}"])
def test_rare_wait_reason_is_searched_within_a_window(
    many: Any, console: Client, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    monkeypatch.setattr(window_list, "WINDOW", 500)
    query = with_cursors(query, "waitingnotification", utc_now() - timedelta(days=1), many["_id"])
    url = f"/admin/notifications/waitingnotification/?reason=rate_limited{query}"
    found = plans(console, url, of="notifications")
    assert sum(plan.documents_examined for plan in found) <= 500
    assert not any({"COLLSCAN", "SORT"} & plan.stages for plan in found)
    ends = [plan for plan in found if "SKIP" in plan.stages]
    assert ends
    assert not any("FETCH" in plan.stages for plan in ends), "the index alone says where it ends"


def test_bulk_form_reads_no_notification(many: Any, console: Client) -> None:
    url = "/admin/notifications/bulkoperation/new/?list=failednotification&channel=email"
    assert plans(console, url, of="notifications") == []


OTHERS = [
    ("notifications/deliveryattempt/", "delivery_attempts", FIRST),
    ("notifications/deliveryattempt/?status=failed", "delivery_attempts", WEEK),
    ("notifications/deliveryattempt/?attempted_within=24h", "delivery_attempts", MANY / 20 + 100),
    ("notifications/deliveryattempt/?q=64b000000000000000000000", "delivery_attempts", 10),
    ("notifications/webhooklog/", "webhook_log", FIRST),
    ("notifications/webhooklog/?provider=sendgrid", "webhook_log", FIRST),
    ("notifications/webhooklog/?outcome=applied&received_within=24h", "webhook_log", BEYOND_COUNTS),
    ("notifications/webhooklog/?q=call-77", "webhook_log", 10),
    ("notifications/loggedrequest/", "request_log", FIRST),
    ("notifications/loggedrequest/?q=request-77", "request_log", 10),
    (
        "notifications/loggedrequest/?outcome=failed&answered_within=24h",
        "request_log",
        BEYOND_COUNTS,
    ),
    ("recipients/recipient/", "recipients", COUNTED),
    ("recipients/suppression/", "suppressions", COUNTED),
    ("recipients/suppression/?channel=email", "suppressions", COUNTED),
    ("recipients/suppression/?reason=manual", "suppressions", COUNTED),
    ("recipients/suppression/?channel=email&reason=manual", "suppressions", COUNTED),
    ("recipients/suppression/?q=p77@example.com", "suppressions", 10),
    ("recipients/recipient/?q=p77@example.com", "recipients", 10),
    ("recipients/recipient/?q=%2B351900000077", "recipients", 10),
    ("recipients/recipient/?q=user-00077", "recipients", 10),
    ("recipients/recipient/?q=person77", "recipients", 120),
    ("recipients/recipient/?q=perso", "recipients", 10_000),
    ("recipients/recipient/?q=p77@ex", "recipients", 10),
    ("recipients/recipient/?q=%2B35190000007", "recipients", 20),
    ("search/?s=person77", "recipients", 10),
    ("search/?s=p77@example.com", "notifications", 20),
    ("admin/logentry/", "django_admin_log", FIRST),
    ("admin/logentry/?who=all", "django_admin_log", FIRST),
    ("admin/logentry/?who=clients", "django_admin_log", FIRST),
    ("admin/logentry/?q=order_shipped", "django_admin_log", 510),
    ("admin/logentry/?done_within=24h", "django_admin_log", FIRST),
    ("admin/logentry/?action=1", "django_admin_log", BEYOND_COUNTS),
]


@each_case("path, name, examined", OTHERS)
def test_other_list_uses_an_index(
    many: Any, console: Client, path: str, name: str, examined: float
) -> None:
    assert_quick(plans(console, f"/admin/{path}", of=name), examined=int(examined))


def test_recipient_page_uses_an_index(many: Any, console: Client) -> None:
    url = f"/admin/recipients/recipient/{many['user_id']}/change/"
    assert_quick(plans(console, url, of="notifications"), examined=25)


def test_notification_page_uses_an_index(many: Any, console: Client) -> None:
    url = f"/admin/notifications/notification/{many['_id']}/change/"
    assert_quick(plans(console, url, of="notifications"), examined=1)
    assert_quick(plans(console, url, of="delivery_attempts"), examined=5)


def test_home_page_uses_indexes(many: Any, console: Client) -> None:
    for plan in plans(console, "/admin/", of="notifications"):
        assert "COLLSCAN" not in plan.stages, plan.explained
        assert plan.documents_examined <= MANY / 4, plan.explained
        # Only the errors are sorted, once they are grouped.
        assert "SORT" not in plan.stages, plan.explained


def test_failure_count_reads_no_more_than_its_cap(
    many: Any, monkeypatch: pytest.MonkeyPatch, db: None, reading: Any
) -> None:
    monkeypatch.setattr(failure_groups, "FAILURE_CAP", 100)
    now = utc_now()
    reads.commands.clear()
    reads.is_on = True
    failures = failure_groups.count_failures(since=now - timedelta(days=10))
    reads.is_on = False
    assert failures.counted_since is not None
    assert failures.total == 100
    assert max(Plan(command).documents_examined for command in reads.commands) <= 100


def views() -> list[tuple[str, str]]:
    """Return the name of each list and a query of each of its filters, with its first choice."""
    found = []
    for page in admin.site._registry.values():
        request = RequestFactory().get("/")
        for spec in page.list_filter if isinstance(page, ConsoleAdmin) else ():
            chosen = spec(request, {}, page.model, page)
            if isinstance(chosen, TimeFilter):
                found.append((page.url_name, f"{chosen.parameter_name}_within=24h"))
            elif chosen.lookup_choices:
                [(value, _), *_] = chosen.lookup_choices
                found.append((page.url_name, f"{chosen.parameter_name}={value}"))
    return found


@pytest.mark.usefixtures("api_clients")
def test_count_of_a_saved_view_scans_no_collection(
    many: Any, admin_user: StaffUser, reading: Any
) -> None:
    request = RequestFactory().get("/")
    request.user = admin_user
    scanning = {}
    for list_name, query in views():
        filters = read_filters(request, list_name=list_name, query=query)
        if filters.match is None:
            continue
        view: Any = {"source": filters.source, "match": filters.match, "index": filters.index}
        reads.commands.clear()
        reads.is_on = True
        saved_views.count(view, limit=1_001, seconds=5, now=utc_now())
        reads.is_on = False
        (command,) = reads.commands
        plan = Plan(command)
        if "COLLSCAN" in plan.stages or "SORT" in plan.stages:
            scanning[list_name, query] = plan.stages
    assert scanning == {}
