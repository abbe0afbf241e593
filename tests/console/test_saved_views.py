"""Saved views: the filters of a list under a name, in the menu, with a count."""

import json
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.contrib import admin
from django.contrib.admin.models import DELETION, LogEntry
from django.contrib.auth.models import Group
from django.core.management import call_command
from django.http import QueryDict
from django.test import Client
from django.urls import reverse

from access.models import StaffUser
from console.saved_views import menu
from console.widgets.filters import TimeFilter
from console.widgets.lists import ConsoleAdmin
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import saved_views
from monitoring.models import AlertKind
from notifications.models import NotificationType
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

VIEWS, RULES = "/admin/analytics/savedview/", "/admin/analytics/alertrule/"
FAILED = "notifications_failednotification"
FAILURES = "/admin/notifications/failednotification/"
NOTIFICATIONS = "/admin/notifications/notification/"
KEEP = tuple(f"analytics.{verb}_savedview" for verb in ("view", "add", "change", "delete"))
SEES = "notifications.view_notification"


@pytest.fixture(autouse=True)
def _new_process() -> None:
    menu.forget()


def ada(*others: str) -> Client:
    """Return a member of staff with views of her own."""
    return signed_in(make_staff("ada", *KEEP, SEES, *others))


def saved(
    client: Client, name: str, query: str, *, of: str = FAILED, is_shared: bool = False
) -> dict[str, Any]:
    """Save a view by its form. Return what is stored."""
    answer = client.post(
        f"{VIEWS}add/?{form_query(query, of=of)}",
        {"name": name} | ({"is_shared": "on"} if is_shared else {}),
    )
    assert answer.status_code == 302, (of, query, answer.context["adminform"].form.errors)
    stored = collection("saved_views").find_one({"name": name})
    assert stored is not None
    return stored


def form_query(query: str, *, of: str = FAILED) -> str:
    given = QueryDict(mutable=True)
    given.update({"list": of, "query": query})
    return str(given.urlencode())


def names_in_menu(client: Client) -> list[str]:
    groups = client.get(VIEWS).context["sidebar_navigation"]
    views = next(group for group in groups if group["title"] == "Views")
    return [str(item["title"]) for item in views["items"]][:-1]


def counts(client: Client) -> dict[str, Any]:
    """Return what the menu shows beside each view, by the view's name."""
    menu.forget()
    answer = client.get(f"{VIEWS}counts/")
    assert answer.status_code == 200
    found = collection("saved_views").find()
    names = {f"{VIEWS}{view['_id']}/open/": view["name"] for view in found}
    return {names[path]: shown for path, shown in answer.json().items()}


def fail(count: int = 1, **fields: Any) -> None:
    for _ in range(count):
        factories.settled(DeliveryStatus.FAILED, at=utc_now(), **fields)


def test_filtered_list_offers_to_save_its_filters_without_the_search() -> None:
    client = ada()
    assert "Save view…" not in client.get(FAILURES).content.decode()
    assert "Save view…" not in client.get(f"{FAILURES}?q=nobody@example.com").content.decode()
    text = client.get(f"{FAILURES}?channel=email&q=nobody@example.com").content.decode()
    address = f"{VIEWS}add/?list={FAILED}&amp;query=channel%3Demail&amp;searched=yes"
    assert f'href="{address}"' in text
    form = client.get(address.replace("&amp;", "&")).content.decode()
    assert "Channel: Email" in form
    assert "The search isn" in form
    assert "nobody@" not in form
    viewer = signed_in(make_staff("eve", SEES))
    assert "Save view…" not in viewer.get(f"{FAILURES}?channel=email").content.decode()


def test_saved_view_is_in_the_menu_and_leads_to_its_list() -> None:
    client = ada()
    view = saved(client, "Failed <mail>", "channel=email")
    assert names_in_menu(client) == ["Failed &lt;mail&gt;"], "the theme trusts titles"
    answer = client.get(f"{VIEWS}{view['_id']}/open/")
    assert answer["Location"] == f"{FAILURES}?channel=email"
    text = client.get(answer["Location"])
    group = next(g for g in text.context["sidebar_navigation"] if g["title"] == "Views")
    assert [item["active"] for item in group["items"]] == [True, False]
    assert LogEntry.objects.filter(object_repr="Failed <mail>").exists()


def test_view_has_known_filters_only() -> None:
    client = ada()
    for query in ("", "channel=", "colour=red", "channel=email&user_id=ada", "channel=nowhere"):
        answer = client.post(f"{VIEWS}add/?{form_query(query)}", {"name": "Mine"})
        assert answer.status_code == 200, query
    for list_name in ("", "nothing", "access_staffuser", "recipients_recipient"):
        answer = client.post(
            f"{VIEWS}add/?{form_query('channel=email', of=list_name)}", {"name": "Mine"}
        )
        assert answer.status_code == 200, list_name
    answer = client.post(f"{VIEWS}add/?{form_query('failed_from=yesterday')}", {"name": "Mine"})
    assert answer.status_code == 200, "the list would ignore this time"
    assert collection("saved_views").count_documents({}) == 0


def first_choices(page: ConsoleAdmin) -> list[str]:
    """Return a query of each filter of a list, with something that it offers."""
    request = type("Request", (), {"GET": QueryDict()})()
    found = []
    for spec in page.list_filter:
        one = spec(request, {}, page.model, page)
        if isinstance(one, TimeFilter):
            found.append(f"{one.parameter_name}_within=24h")
        elif one.lookup_choices:
            found.append(f"{one.parameter_name}={one.lookup_choices[0][0]}")
    return found


def test_no_view_of_any_list_holds_personal_data(console: Client) -> None:
    """So erasure and retention have nothing to do with views."""
    fail(user_id="ada")
    pages = [p for p in admin.site._registry.values() if isinstance(p, ConsoleAdmin)]
    lists = [page for page in pages if page.list_filter]
    assert len(lists) >= 13
    for page in lists:
        for number, query in enumerate(first_choices(page)):
            for searched in ("q=ada@example.com", "q=%2B351912345678"):
                name = f"{page.opts.model_name} {number}"
                saved(console, name, f"{query}&{searched}", of=page.url_name)
                collection("saved_views").update_many({}, {"$set": {"is_shared": True}})
                found = json.dumps(list(collection("saved_views").find()), default=str)
                collection("saved_views").delete_many({})
                assert "ada@" not in found, (page, query)
                assert "912345678" not in found, (page, query)
    for name in ("ada@example.com", "Calls of +351 912 345 678", "0171 / 12 34-567"):
        answer = console.post(f"{VIEWS}add/?{form_query('channel=email')}", {"name": name})
        assert "a view has no personal data" in answer.content.decode()


def test_count_is_capped_and_of_the_viewer_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    client, other = ada(), signed_in(make_staff("eve", *KEEP, SEES))
    fail(3)
    saved(client, "Failed", "channel=email")
    assert counts(client) == {"Failed": {"count": "3"}}
    assert (counts(other), names_in_menu(other)) == ({}, [])
    monkeypatch.setattr(menu, "COUNT_CAP", 2)
    assert counts(client) == {"Failed": {"count": "2+"}}


def test_relative_time_is_counted_from_each_count() -> None:
    client = ada()
    view = saved(client, "New failures", "failed_within=24h")
    fail()
    now = utc_now()
    assert saved_views.count(view, limit=9, seconds=5, now=utc_now()) == 1
    assert saved_views.count(view, limit=9, seconds=5, now=now + timedelta(hours=25)) == 0


def test_wait_reason_is_counted_as_the_list_shows_it() -> None:
    client = ada()
    view = saved(client, "Held", "reason=schedule", of="notifications_waitingnotification")
    now = utc_now()
    factories.accepted(user_id="bob", send_at=now + timedelta(hours=2))
    assert saved_views.count(view, limit=9, seconds=5, now=now) == 1
    later = now + timedelta(hours=3)
    assert saved_views.count(view, limit=9, seconds=5, now=later) == 0, "it is due by then"


def test_late_or_failed_count_shows_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    client = ada()
    saved(client, "Failed", "channel=email")
    monkeypatch.setattr(menu, "COUNT_SECONDS", 0.000_001)
    assert counts(client) == {}
    monkeypatch.undo()
    monkeypatch.setattr(ConsoleAdmin, "list_index", "no_such_index")
    assert counts(client) == {}
    monkeypatch.undo()
    assert counts(client) == {"Failed": {"count": "0"}}


def test_count_is_kept_for_seconds() -> None:
    client = ada()
    saved(client, "Failed", "channel=email")
    assert counts(client) == {"Failed": {"count": "0"}}
    fail()
    [shown] = client.get(f"{VIEWS}counts/").json().values()
    assert shown == {"count": "0"}
    assert counts(client) == {"Failed": {"count": "1"}}


def test_pages_read_the_menu_and_count_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    client = ada()
    saved(client, "Failed", "channel=email")

    def count(*_args: Any, **_options: Any) -> int:
        raise AssertionError("a page counted")

    monkeypatch.setattr(saved_views, "count", count)
    assert client.get(FAILURES).status_code == 200


def test_view_without_its_filter_is_not_shown_and_not_counted() -> None:
    client = ada()
    fail(2)
    NotificationType.objects.get_or_create(slug="retired", defaults={"name": "Retired"})
    choice = saved(client, "Retired type", "type=retired")
    gone = saved(client, "Gone filter", "channel=email")
    collection("saved_views").update_one({"_id": gone["_id"]}, {"$set": {"query": "colour=red"}})
    listed = saved(client, "Gone list", "channel=email")
    collection("saved_views").update_one({"_id": listed["_id"]}, {"$set": {"list": "x_bees"}})
    NotificationType.objects.filter(slug="retired").delete()
    shown = counts(client)
    assert shown.keys() == {"Retired type", "Gone filter"}
    assert all("no longer exists" in one["problem"] for one in shown.values())
    for view in (choice, gone, listed):
        answer = client.get(f"{VIEWS}{view['_id']}/open/", follow=True)
        assert answer.request["PATH_INFO"] == VIEWS
        assert f"“{view['name']}” isn&#x27;t shown" in answer.content.decode()
    text = client.get(VIEWS).content.decode()
    assert text.count("Not shown") == 3
    assert client.post(f"{VIEWS}{gone['_id']}/delete/", {"post": "yes"}).status_code == 302


def test_filter_without_any_choice_left_widens_no_list() -> None:
    """Django leaves such a filter out, and the list would show everything."""
    client = ada()
    fail()
    NotificationType.objects.all().delete()
    answer = client.get(f"{FAILURES}?type=mfa_code")
    assert answer.status_code == 302
    assert answer["Location"].endswith("?e=1")


def test_closed_list_hides_its_views() -> None:
    client = ada("analytics.share_savedview")
    view = saved(client, "Failed", "channel=email", is_shared=True)
    stranger = signed_in(make_staff("eve", *KEEP, "analytics.view_alertrule"))
    assert names_in_menu(stranger) == []
    assert counts(stranger) == {}
    assert "Failed" not in stranger.get(VIEWS).content.decode().replace("Failed deliveries", "")
    answer = stranger.get(f"{VIEWS}{view['_id']}/open/", follow=True)
    assert "View not found" in answer.content.decode()
    assert stranger.get(f"{VIEWS}{view['_id']}/change/").status_code == 302
    rule = {"name": "Many", "kind": "saved_view", "view_id": view["_id"], "threshold": 1}
    collection("alert_rules").insert_one(rule | {"window_minutes": 5, "is_enabled": True})
    assert "Another view" in stranger.get(RULES).content.decode()


def test_sharing_needs_the_permission() -> None:
    client = ada()
    assert not saved(client, "Mine", "channel=email", is_shared=True)["is_shared"]
    olga = signed_in(make_staff("olga", *KEEP, SEES, "analytics.share_savedview"))
    shared = saved(olga, "Ours", "channel=email", is_shared=True)
    assert names_in_menu(client) == ["Mine", "Ours"]
    assert names_in_menu(olga) == ["Ours"]
    for page in ("change", "delete"):
        answer = client.post(f"{VIEWS}{shared['_id']}/{page}/", {"name": "Yours", "post": "yes"})
        assert answer.status_code == 403
    assert client.post(f"{VIEWS}{shared['_id']}/up/").status_code == 403
    selected = {"action": "delete_selected", "_selected_action": shared["_id"], "post": "yes"}
    client.post(VIEWS, selected)
    assert names_in_menu(olga) == ["Ours"]


def test_view_is_renamed_moved_and_deleted() -> None:
    client = ada()
    first, second = (saved(client, name, "channel=email") for name in ("First", "Second"))
    client.post(f"{VIEWS}{first['_id']}/change/", {"name": "1st"})
    assert names_in_menu(client) == ["1st", "Second"]
    for way, expected in (
        ("up", ["1st", "Second"]),
        ("down", ["Second", "1st"]),
        ("down", ["Second", "1st"]),
        ("up", ["1st", "Second"]),
    ):
        assert client.post(f"{VIEWS}{first['_id']}/{way}/").status_code == 302
        assert names_in_menu(client) == expected
    client.post(f"{VIEWS}{first['_id']}/delete/", {"post": "yes"})
    assert names_in_menu(client) == ["Second"]
    other = signed_in(make_staff("eve", *KEEP, SEES))
    for page in ("change", "delete", "up"):
        assert other.post(f"{VIEWS}{second['_id']}/{page}/").status_code == 302, "not found"
    assert names_in_menu(client) == ["Second"]


def test_each_has_a_limited_number_of_views(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("console.saved_views.page.MAX_VIEWS", 2)
    client = ada()
    for name in ("One", "Two"):
        saved(client, name, "channel=email")
    answer = client.post(f"{VIEWS}add/?{form_query('channel=email')}", {"name": "Three"})
    assert "Delete one first" in answer.content.decode()


def test_deleted_account_leaves_its_shared_views(console: Client) -> None:
    client = ada("analytics.share_savedview")
    saved(client, "Mine", "channel=email")
    saved(client, "Ours", "channel=email", is_shared=True)
    key = StaffUser.objects.get(username="ada").pk
    # Once retention has removed what the account did, it can be deleted.
    LogEntry.objects.all().delete()
    answer = console.post(f"/admin/access/staffuser/{key}/delete/", {"post": "yes"})
    assert answer.status_code == 302
    assert [view["name"] for view in collection("saved_views").find()] == ["Ours"]
    assert "Deleted account" in console.get(VIEWS).content.decode()
    assert names_in_menu(console) == ["Ours"]


def test_everybody_keeps_views_and_operators_share_them() -> None:
    call_command("create_roles", verbosity=0)
    for role in ("viewer", "support", "operator", "approver", "admin"):
        user = make_staff(f"a-{role}")
        user.groups.add(Group.objects.get(name=role))
        client = signed_in(user)
        view = saved(client, role, "channel=email", of="notifications_notification", is_shared=True)
        assert view["is_shared"] is (role in ("operator", "admin"))


def rule_of(view: dict[str, Any], **fields: Any) -> dict[str, Any]:
    rule = {"name": "Many", "kind": AlertKind.SAVED_VIEW.value, "view_id": str(view["_id"])}
    return rule | {"threshold": "5", "window_minutes": "10", "is_enabled": "on"} | fields


def test_alert_rule_is_about_a_shared_view(console: Client) -> None:
    own = saved(console, "Mine", "channel=email")
    view = saved(console, "Ours", "channel=email", is_shared=True)
    text = console.get(f"{VIEWS}{view['_id']}/change/").content.decode()
    assert "Add an alert…" in text
    assert "Add an alert…" not in console.get(f"{VIEWS}{own['_id']}/change/").content.decode()
    assert console.post(f"{RULES}add/", rule_of(own)).status_code == 200
    assert console.post(f"{RULES}add/", rule_of(view, view_id="")).status_code == 200
    assert console.post(f"{RULES}add/", rule_of(view)).status_code == 302
    [rule] = collection("alert_rules").find({"kind": "saved_view"})
    assert (rule["view_id"], rule["threshold"], rule["window_minutes"]) == (view["_id"], 5, 10)
    listed = console.get(RULES).content.decode()
    assert "more than 5 for 10 min" in listed
    assert "Ours" in listed
    answer = console.post(f"{VIEWS}{view['_id']}/change/", {"name": "Ours"})
    assert "Delete the rule first" in answer.content.decode(), "it would be counted for everyone"
    console.post(f"{VIEWS}{view['_id']}/delete/", {"post": "yes"})
    assert collection("alert_rules").count_documents({"kind": "saved_view"}) == 0


def test_view_with_a_rule_is_deleted_by_those_who_may_delete_the_rule(console: Client) -> None:
    view = saved(console, "Ours", "channel=email", is_shared=True)
    console.post(f"{RULES}add/", rule_of(view))
    olga = signed_in(make_staff("olga", *KEEP, SEES, "analytics.share_savedview"))
    assert olga.post(f"{VIEWS}{view['_id']}/delete/", {"post": "yes"}).status_code == 403
    [rule] = collection("alert_rules").find({"kind": "saved_view"})
    assert console.post(f"{VIEWS}{view['_id']}/delete/", {"post": "yes"}).status_code == 302
    assert collection("saved_views").count_documents({}) == 0
    entry = LogEntry.objects.get(object_id=str(rule["_id"]), action_flag=DELETION)
    assert (entry.object_repr, entry.change_message) == ("Many", "Deleted with the view “Ours”.")


def test_another_condition_forgets_the_view(console: Client) -> None:
    view = saved(console, "Ours", "channel=email", is_shared=True)
    console.post(f"{RULES}add/", rule_of(view))
    [rule] = collection("alert_rules").find({"kind": "saved_view"})
    console.post(f"{RULES}{rule['_id']}/change/", rule_of(view, kind="failures"))
    assert collection("alert_rules").find_one({"_id": rule["_id"]})["view_id"] is None


def test_audit_log_has_views_without_a_count(console: Client) -> None:
    """What clients did is decided by the accounts of the moment, not by a stored condition."""
    view = saved(console, "By clients", "who=clients", of="admin_logentry", is_shared=True)
    assert view["match"] is None
    assert counts(console) == {}
    assert str(view["_id"]) not in console.get(f"{RULES}add/").content.decode().split("<main")[1]


def test_condition_of_another_version_is_replaced(console: Client) -> None:
    view = saved(console, "Ours", "channel=email", is_shared=True)
    old = {"$set": {"match": '{"old": 1}', "index": "ntf_old"}}
    collection("saved_views").update_one({"_id": view["_id"]}, old)
    fail()
    assert counts(console) == {"Ours": {"count": "1"}}
    assert collection("saved_views").find_one({"_id": view["_id"]}) == view


def test_unknown_view_is_not_found(console: Client) -> None:
    for path in (f"{ObjectId()}/open/", "x/open/"):
        answer = console.get(f"{VIEWS}{path}", follow=True)
        assert "View not found" in answer.content.decode()
    assert console.post(f"{VIEWS}{ObjectId()}/up/").status_code == 302
    assert reverse("admin:analytics_savedview_changelist") == VIEWS
