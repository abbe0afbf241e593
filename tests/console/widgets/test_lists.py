"""Lists stay fast: counting, paging, time limits, and permitted conditions."""

from datetime import datetime, timedelta
from typing import Any

import pymongo
import pytest
from bson import ObjectId
from django.db import DatabaseError
from django.test import Client

from access.clients import registry
from console.widgets import lists
from domain.time import utc_now
from notifications.models import Notification
from notifyproject.db.collections import collection
from notifyproject.db.match import Match
from tests.support.clients.console import listed
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

URL = "/admin/notifications/notification/"


def paginator(queryset: Any) -> lists.CappedPaginator:
    return lists.CappedPaginator(queryset, 50)


def accepted(count: int, **fields: Any) -> None:
    now = utc_now()
    for n in range(count):
        factories.accepted(created_at=now - timedelta(seconds=n), **fields)


def test_few_rows_are_counted_exactly() -> None:
    accepted(3)
    pages = paginator(Notification.objects.filter(type="payment_confirmed").order_by("-id"))
    assert (pages.count, pages.num_pages, pages.count_label) == (3, 1, "3")
    assert paginator(Notification.objects.order_by("-id")).count_label == "3"


def test_counting_stops_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "COUNT_CAP", 4)
    accepted(6)
    filtered = paginator(Notification.objects.filter(type="payment_confirmed").order_by("-id"))
    assert (filtered.count, filtered.count_label) == (5, "more than 4")
    everything = paginator(Notification.objects.order_by("-id"))
    assert (everything.count, everything.count_label) == (6, "about 6")


def test_pages_stop_at_the_cap(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists, "COUNT_CAP", 4)
    accepted(6)
    assert lists.CappedPaginator(Notification.objects.order_by("-id"), 2).num_pages == 2


def test_slow_count_is_capped(monkeypatch: pytest.MonkeyPatch) -> None:
    accepted(1)
    monkeypatch.setattr(lists, "COUNT_SECONDS", 1e-9)
    pages = paginator(Notification.objects.filter(Match({"data.nothing": 1})).order_by("-id"))
    assert pages.count_label == "more than 10,000"


def test_other_database_errors_are_raised() -> None:
    pages = paginator(Notification.objects.filter(Match({"$nonsense": 1})).order_by("-id"))
    with pytest.raises(DatabaseError):
        _ = pages.count


def test_slow_page_says_so(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    accepted(1)
    monkeypatch.setattr(lists, "PAGE_SECONDS", 1e-9)
    page = console.get(f"{URL}?status=queued").content.decode()
    assert lists.TOO_SLOW in page
    assert "/change/" not in page


def test_timeout_differs_from_other_errors() -> None:
    with pytest.raises(pymongo.errors.PyMongoError) as caught, pymongo.timeout(1e-9):
        collection("notifications").find_one({})
    assert lists.is_timeout(caught.value)
    assert not lists.is_timeout(ValueError())


@each_case(
    "query",
    ["user_id__icontains=a", "data__x=1", "recipient__email__iexact=A", "id__in=1", "nothing=1"],
)
def test_undeclared_condition_is_refused(console: Client, query: str) -> None:
    accepted(1)
    response = console.get(f"{URL}?{query}")
    assert response.status_code == 302
    assert response["Location"].endswith("?e=1")


@pytest.fixture
def shop(db: None) -> ObjectId:
    return registry.create_client(name="Shop", scopes=[], now=utc_now())


@each_case("query", ["status=nonsense", "client=nonsense", "channel=%00", "after=nonsense"])
def test_unknown_choice_or_cursor_is_refused(console: Client, shop: ObjectId, query: str) -> None:
    accepted(1)
    assert console.get(f"{URL}?{query}").status_code == 302


def test_forged_order_is_ignored(console: Client) -> None:
    now = utc_now()
    newer = factories.accepted(created_at=now, user_id="aaa")
    older = factories.accepted(created_at=now - timedelta(hours=1), user_id="zzz")
    page = console.get(f"{URL}?o=3").content.decode()
    assert page.index(str(newer["_id"])) < page.index(str(older["_id"]))


def test_costly_filter_is_limited_to_recent_rows(console: Client) -> None:
    now = utc_now()
    recent = factories.accepted(created_at=now - timedelta(days=6))
    old = factories.accepted(created_at=now - timedelta(days=8))
    assert listed(console, URL) == [recent["_id"], old["_id"]]
    assert listed(console, f"{URL}?channel=email") == [recent["_id"]]
    assert "Showing the last 7 days" in console.get(f"{URL}?channel=email").content.decode()
    assert listed(console, f"{URL}?channel=email&created_within=30d") == [recent["_id"], old["_id"]]
    assert (
        listed(console, f"{URL}?channel=email&q=ada") == sorted([recent["_id"], old["_id"]])[::-1]
    )
    assert listed(console, f"{URL}?status=queued") == [recent["_id"], old["_id"]]


def test_time_range_includes_its_start_and_excludes_its_end(console: Client) -> None:
    noon = utc_now().replace(hour=12, minute=0, second=0, microsecond=0) - timedelta(days=3)
    at_noon = factories.accepted(created_at=noon)
    after = factories.accepted(created_at=noon + timedelta(minutes=1))

    def text(at: datetime) -> str:
        return f"{at:%Y-%m-%dT%H:%M}"

    assert listed(console, f"{URL}?created_from={text(noon)}") == [after["_id"], at_noon["_id"]]
    # Until is exclusive.
    assert listed(console, f"{URL}?created_until={text(noon + timedelta(minutes=1))}") == [
        at_noon["_id"]
    ]
    nothing = f"created_from={text(noon)}&created_until={text(noon)}"
    assert listed(console, f"{URL}?{nothing}") == []
    assert listed(console, f"{URL}?created_within=1h") == []


def test_invalid_time_is_reported(console: Client) -> None:
    accepted(1)
    page = console.get(f"{URL}?created_from=yesterday").content.decode()
    assert "created: enter times as 2026-12-01T09:00." in page


def test_empty_filters_are_inactive(console: Client) -> None:
    untouched = "status=&channel=&created_within=&created_from=&created_until="
    assert not console.get(f"{URL}?{untouched}").context["cl"].has_active_filters
    assert console.get(f"{URL}?status=queued").context["cl"].has_active_filters


def test_action_runs_on_selected_rows_only(console: Client) -> None:
    now = utc_now()
    selected, other = factories.accepted(created_at=now), factories.accepted(created_at=now)
    action = {"action": "cancel_selected", "_selected_action": str(selected["_id"])}
    console.post(URL, action | {"confirmed": "yes", "select_across": "1"})
    assert factories.read(selected["_id"])["status"] == "cancelled"
    assert factories.read(other["_id"])["status"] == "queued"


def test_action_ignores_malformed_keys(console: Client) -> None:
    selected = factories.accepted(created_at=utc_now())
    keys = ["../../etc/passwd", str(selected["_id"])]
    action = {"action": "cancel_selected", "_selected_action": keys, "confirmed": "yes"}
    assert console.post(URL, action).status_code == 302
    assert factories.read(selected["_id"])["status"] == "cancelled"
    answer = console.post(URL, action | {"_selected_action": keys[:1]}, follow=True)
    assert "Items must be selected" in answer.content.decode()


def test_pages_follow_the_cursor(console: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lists.ConsoleAdmin, "list_per_page", 2)
    accepted(5)
    ids = [row.pk for row in Notification.objects.order_by("-created_at", "-id")]
    first = console.get(f"{URL}?status=queued").context["cl"]
    assert [row.pk for row in first.result_list] == ids[:2]
    assert first.previous_url == ""
    second = console.get(URL + first.next_url).context["cl"]
    assert [row.pk for row in second.result_list] == ids[2:4]
    assert "status=queued" in second.next_url
    last = console.get(URL + second.next_url).context["cl"]
    assert [row.pk for row in last.result_list] == ids[4:]
    assert last.next_url == ""
    back = console.get(URL + last.previous_url).context["cl"]
    assert [row.pk for row in back.result_list] == ids[2:4]
    start = console.get(URL + back.previous_url).context["cl"]
    assert [row.pk for row in start.result_list] == ids[:2]
    assert (start.previous_url, start.next_url != "") == ("", True)
    assert "2 on this page" in console.get(URL + first.next_url).content.decode()


def test_new_filter_starts_at_the_first_page(console: Client) -> None:
    accepted(1)
    changelist = console.get(URL).context["cl"]
    assert "cursor" in changelist.get_query_string({"cursor": "x"})
    changelist.filter_params["cursor"] = ["x"]
    assert "cursor" not in changelist.get_query_string({"status": "sent"})
