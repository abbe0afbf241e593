"""API clients and their keys in the console."""

import re
from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from access.clients import registry
from access.models import APIClient, Scope
from domain.time import utc_now
from tests.support.clients.console import make_staff, signed_in
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/access/apiclient/"
WRITE, READ = Scope.NOTIFICATIONS_WRITE, Scope.NOTIFICATIONS_READ


@pytest.fixture
def shop() -> ObjectId:
    return registry.create_client(name="Shop", scopes=[WRITE], now=utc_now())


def page(client: Client, client_id: ObjectId) -> str:
    return client.get(f"{LIST}{client_id}/change/").content.decode()


def issue(client: Client, client_id: ObjectId) -> Any:
    return client.post(f"{LIST}{client_id}/issue-key/")


def key_in(response: Any) -> str:
    found = registry.KEY.search(response.content.decode())
    assert found is not None
    return found[0]


def audit() -> list[str]:
    return [entry.change_message for entry in LogEntry.objects.order_by("id")]


def test_client_is_created_with_its_scopes(console: Client) -> None:
    response = console.post(f"{LIST}add/", {"name": "Shop", "scopes": [READ, WRITE]})
    assert response.status_code == 302
    client = APIClient.objects.get(name="Shop")
    assert (client.scopes, client.is_active, client.keys) == ([READ, WRITE], True, [])
    assert LogEntry.objects.get().object_id == str(client.pk)


def test_client_name_is_unique(console: Client, shop: ObjectId) -> None:
    response = console.post(f"{LIST}add/", {"name": "Shop", "scopes": [READ]})
    assert response.status_code == 200
    assert "API client with this Name already exists." in response.content.decode()


@each_case("scopes", [[], ["everything"]])
def test_client_requires_known_scopes(console: Client, scopes: list[str]) -> None:
    assert console.post(f"{LIST}add/", {"name": "Shop", "scopes": scopes}).status_code == 200
    assert not APIClient.objects.exists()


def test_changing_a_client_keeps_its_keys(console: Client, shop: ObjectId) -> None:
    issued = registry.issue_key(client_id=shop, now=utc_now())
    # The key is used while the form is open.
    assert registry.authenticate(issued.text, now=utc_now()) is not None
    console.post(f"{LIST}{shop}/change/", {"name": "Shops", "scopes": [READ], "is_active": "on"})
    client = registry.authenticate(issued.text, now=utc_now())
    assert client is not None
    assert (client.name, client.scopes) == ("Shops", frozenset({READ}))
    assert APIClient.objects.get(pk=shop).keys[0].last_used_at is not None


def test_disabled_clients_key_is_rejected(console: Client, shop: ObjectId) -> None:
    issued = registry.issue_key(client_id=shop, now=utc_now())
    console.post(f"{LIST}{shop}/change/", {"name": "Shop", "scopes": [READ]})
    assert registry.authenticate(issued.text, now=utc_now()) is None


def test_key_is_shown_once_and_not_cached(console: Client, shop: ObjectId) -> None:
    response = issue(console, shop)
    assert "no-store" in response["Cache-Control"]
    text = key_in(response)
    found = registry.authenticate(text, now=utc_now())
    assert found is not None
    assert found.id == shop
    later = page(console, shop)
    assert text not in later
    assert text[:14] in later
    secret = text.rpartition("_")[2]
    assert all(secret not in message for message in audit())
    assert audit() == [f"Issued the key {text[:14]}…."]


def test_key_can_expire(console: Client, shop: ObjectId) -> None:
    before = utc_now()
    response = console.post(f"{LIST}{shop}/issue-key/", {"life": "90"})
    (key,) = APIClient.objects.get(pk=shop).keys
    assert timedelta(days=90) <= key.expires_at - before < timedelta(days=91)
    text = key_in(response)
    assert registry.authenticate(text, now=key.expires_at - timedelta(minutes=1)) is not None
    assert registry.authenticate(text, now=key.expires_at) is None
    assert f"{key.expires_at:%Y-%m-%d %H:%M}" in page(console, shop)


def test_key_expires_in_a_year_by_default_and_never_only_if_chosen(
    console: Client, shop: ObjectId
) -> None:
    assert '<option value="365" selected>in 365 days</option>' in page(console, shop)
    issue(console, shop)
    console.post(f"{LIST}{shop}/issue-key/", {"life": "never"})
    first, second = APIClient.objects.get(pk=shop).keys
    assert first.expires_at - first.created_at == timedelta(days=365)
    assert second.expires_at is None


@pytest.mark.parametrize(
    ("days", "shown"), [(29, "Expires soon"), (31, None), (None, "Never"), (-1, "No key")]
)
def test_list_shows_which_clients_lose_access_soon(
    console: Client, shop: ObjectId, days: int | None, shown: str | None
) -> None:
    lifetime = None if days is None else timedelta(days=days)
    registry.issue_key(client_id=shop, now=utc_now(), lifetime=lifetime)
    text = console.get(LIST).content.decode()
    assert ("Expires soon" in text) is (shown == "Expires soon")
    assert shown is None or shown in text


def test_unknown_expiry_issues_no_key(console: Client, shop: ObjectId) -> None:
    response = console.post(f"{LIST}{shop}/issue-key/", {"life": "for ever"}, follow=True)
    assert "No change: select an expiry." in response.content.decode()
    assert APIClient.objects.get(pk=shop).keys == []


def test_client_has_at_most_two_active_keys(console: Client, shop: ObjectId) -> None:
    issue(console, shop)
    assert "Issue key" in page(console, shop)
    issue(console, shop)
    assert "Issue key" not in page(console, shop)
    response = console.post(f"{LIST}{shop}/issue-key/", follow=True)
    assert "The client has 2 active keys: revoke one first." in response.content.decode()
    assert len(APIClient.objects.get(pk=shop).keys) == 2


def test_revoking_a_key_requires_confirmation(console: Client, shop: ObjectId) -> None:
    text = key_in(issue(console, shop))
    response = console.post(f"{LIST}{shop}/revoke-key/", {"prefix": text.split("_")[1]})
    shown = response.content.decode()
    assert f"Revoke key {text[:14]}… of Shop?" in shown
    assert "Last used: never" in shown
    assert registry.authenticate(text, now=utc_now()) is not None
    assert audit()[-1].startswith("Issued")
    assert "onclick" not in page(console, shop)


def test_revoked_key_is_rejected(console: Client, shop: ObjectId) -> None:
    text = key_in(issue(console, shop))
    prefix = text.split("_")[1]
    form = {"prefix": prefix, "confirmed": "yes"}
    response = console.post(f"{LIST}{shop}/revoke-key/", form, follow=True)
    assert "revoked." in response.content.decode()
    assert registry.authenticate(text, now=utc_now()) is None
    assert re.search(rf"ntf_{prefix}….*Revoked", page(console, shop), re.DOTALL)
    assert audit()[-1] == f"Revoked the key ntf_{prefix}…."
    again = console.post(f"{LIST}{shop}/revoke-key/", form, follow=True)
    assert "Active key not found." in again.content.decode()


def test_key_of_another_client_is_not_revoked(console: Client, shop: ObjectId) -> None:
    other = registry.create_client(name="Other", scopes=[READ], now=utc_now())
    text = key_in(issue(console, other))
    form = {"prefix": text.split("_")[1], "confirmed": "yes"}
    console.post(f"{LIST}{shop}/revoke-key/", form)
    assert registry.authenticate(text, now=utc_now()) is not None


def test_viewer_neither_issues_nor_revokes_a_key(shop: ObjectId) -> None:
    client = signed_in(make_staff("rui", "access.view_apiclient"))
    for operation in ("issue-key", "revoke-key"):
        assert client.post(f"{LIST}{shop}/{operation}/").status_code == 403
    assert "Issue key" not in page(client, shop)
    assert APIClient.objects.get(pk=shop).keys == []


@each_case("operation", ["issue-key", "revoke-key"])
def test_unknown_client_redirects_to_the_list(console: Client, operation: str) -> None:
    response = console.post(f"{LIST}{ObjectId()}/{operation}/", follow=True)
    assert response.redirect_chain == [(LIST, 302)]


def test_list_shows_prefixes_and_last_use(console: Client, shop: ObjectId) -> None:
    text = key_in(issue(console, shop))
    assert "Never" in console.get(LIST).content.decode()
    now = utc_now()
    registry.authenticate(text, now=now)
    shown = console.get(LIST).content.decode()
    assert text[:14] in shown
    assert text not in shown
    assert f"{now:%Y-%m-%d %H:%M}" in shown


def test_test_client_has_a_badge_and_test_keys(console: Client) -> None:
    form = {"name": "Try-out", "scopes": [WRITE], "is_test": "on"}
    assert console.post(f"{LIST}add/", form).status_code == 302
    client = APIClient.objects.get(name="Try-out")
    assert client.is_test
    text = key_in(issue(console, client.pk))
    assert text.startswith("ntf_test_")
    for shown in (console.get(LIST).content.decode(), page(console, client.pk)):
        assert text[:19] in shown
        assert ">Test</span>" in shown
    assert audit()[-1] == f"Issued the key {text[:19]}…."


def test_client_mode_cannot_change(console: Client, shop: ObjectId) -> None:
    assert 'name="is_test"' not in page(console, shop)
    form = {"name": "Shop", "scopes": [READ], "is_active": "on", "is_test": "on"}
    console.post(f"{LIST}{shop}/change/", form)
    assert not APIClient.objects.get(pk=shop).is_test
    assert ">Test</span>" not in page(console, shop)
