"""Every page of the console opens, but only for staff with the permission."""

import pytest
from django.contrib import admin
from django.db.models import Model
from django.test import Client
from django.urls import reverse

from access.models import StaffUser
from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.console import make_staff, register_ada, signed_in
from tests.support.factories import notifications as factories
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

READ_ONLY = {
    "notification",
    "failednotification",
    "waitingnotification",
    "deliveryattempt",
    "webhooklog",
    "loggedrequest",
    "recipient",
    "device",
    "callback",
    "callbackmessage",
    "logentry",
    "broadcast",
    "bulkoperation",
    "design",
    "digest",
    "heartbeat",
    "incident",
    "providerstate",
    "retentionpolicy",
}
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
EVERY_MODEL = each_case("model", MODELS)


@pytest.fixture
def one_of_each() -> None:
    store_one_of_each(now=utc_now())


def url_of(model: type[Model], page: str, *args: object) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_{page}", args=args)


@EVERY_MODEL
def test_list_opens_and_can_be_searched(
    console: Client, one_of_each: None, model: type[Model]
) -> None:
    url = url_of(model, "changelist")
    assert console.get(url).status_code == 200
    assert console.get(f"{url}?q=nothing-like-it").status_code == 200


@EVERY_MODEL
def test_add_page_opens_unless_the_model_is_read_only(console: Client, model: type[Model]) -> None:
    expected = 403 if model._meta.model_name in READ_ONLY else 200
    assert console.get(url_of(model, "add")).status_code == expected


@EVERY_MODEL
def test_document_has_a_page(console: Client, one_of_each: None, model: type[Model]) -> None:
    name = model._meta.model_name
    first = model.objects.first()
    if first is None:
        assert name in {"group", "logentry"}
        return
    expected = {"failednotification": 302, "waitingnotification": 302} | dict.fromkeys(
        ("deliveryattempt", "logentry", "heartbeat", "providerstate"), 403
    )
    status = console.get(url_of(model, "change", first.pk)).status_code
    assert status == expected.get(name, 200)


def test_list_requires_a_permission() -> None:
    nobody = signed_in(make_staff("nobody"))
    answers = {model: nobody.get(url_of(model, "changelist")).status_code for model in MODELS}
    assert answers == dict.fromkeys(MODELS, 403)


def test_login_leads_to_the_home_page(client: Client, admin_user: StaffUser) -> None:
    page = client.get("/admin/login/").content.decode()
    assert "Notifications" in page
    assert 'name="password"' in page
    response = client.post("/admin/login/", {"username": "maria", "password": "s3cret-enough"})
    assert (response.status_code, response["Location"]) == (302, "/admin/")


def test_menu_shows_permitted_pages_only(support: Client, console: Client) -> None:
    everything = console.get("/admin/").content.decode()
    for words in ("Failed deliveries", "Notifications", "Audit log", "API clients"):
        assert words in everything
    some = support.get("/admin/").content.decode()
    assert "Failed deliveries" in some
    assert "API clients" not in some
    assert "Periodic tasks" not in some


def test_badge_shows_the_environment(console: Client) -> None:
    assert ">\n\nTest\n" in console.get("/admin/").content.decode()


def test_command_palette_finds_a_notification(console: Client, support: Client) -> None:
    document = factories.accepted(user_id="Ada-7", created_at=utc_now())
    for client, address in ((console, "ada@example.com"), (support, "a***@example.com")):
        found = client.get("/admin/search/", {"s": "Ada-7", "extended": "1"}).content.decode()
        assert f"/admin/notifications/notification/{document['_id']}/change/" in found
        assert address in found


def palette(client: Client, text: str) -> str:
    return client.get("/admin/search/", {"s": text, "extended": "1"}).content.decode()


def test_command_palette_finds_a_recipient_by_name_and_address(
    console: Client, support: Client
) -> None:
    register_ada(name="Ada Lovelace")
    for text in ("lovelace", "ada", "ada@example.com", "+351 912 345 678"):
        assert "/admin/recipients/recipient/ada/change/" in palette(console, text), text
    found = palette(support, "Lovelace")
    assert "a***@example.com" in found
    assert "ada@example.com" not in found


def test_command_palette_shows_the_present_state(console: Client) -> None:
    document = factories.accepted(user_id="ada-7", created_at=utc_now())
    assert "Scheduled" in palette(console, "ada-7") or "Queued" in palette(console, "ada-7")
    collection("notifications").update_one(
        {"_id": document["_id"]},
        {"$set": {"status": "cancelled", "delivery.0.status": "cancelled"}},
    )
    assert "Cancelled" in palette(console, "ada-7")


def test_command_palette_finds_permitted_pages_and_actions(
    console: Client, support: Client
) -> None:
    for text, url in (
        ("failed", "/admin/notifications/failednotification/"),
        ("scheduled and", "/admin/notifications/waitingnotification/"),
        ("api cl", "/admin/access/apiclient/add/"),
        ("password", "/admin/password_change/"),
    ):
        assert url in palette(console, text), text
    assert "/admin/access/apiclient/" not in palette(support, "api cl")


def test_command_palette_says_when_nothing_is_found(console: Client) -> None:
    shown = palette(console, "<nothing>")
    assert "No results for <strong>&lt;nothing&gt;</strong>" in shown
    assert 'id="command-results-list"' in shown, "the part that the theme's script shows"
    assert "No results" not in palette(console, "")


def test_command_palette_requires_the_view_permission(db: None) -> None:
    factories.accepted(user_id="ada-8", created_at=utc_now())
    nobody = signed_in(make_staff("nobody"))
    found = nobody.get("/admin/search/", {"s": "ada-8", "extended": "1"}).content.decode()
    assert "/admin/notifications/notification/" not in found
