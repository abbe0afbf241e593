"""Types that are managed by code: the console shows them, and changes them only in an emergency."""

from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from notifications.catalog import emergencies, types
from notifications.content import type_writes
from notifications.models.catalog import REASON_LENGTH
from notifyproject.db.collections import collection
from tests.fuzz.console_forms import forms_of
from tests.support import console_urls
from tests.support.clients.api import App
from tests.support.clients.console import make_staff, signed_in
from tests.support.samples import sampled
from tests.support.tables import each_case
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

SLUG = "parcel"
LIST = "/admin/notifications/notificationtype/"
PAGE = f"{LIST}{SLUG}/change/"
BEGUN = f"{PAGE}?emergency=1"
NEW = f"{LIST}{SLUG}/templates/new/"
PUBLISH = f"{LIST}{SLUG}/templates/1/publish/"
CHANGING = frozenset({PAGE, NEW, PUBLISH})
REPOSITORY = "https://git.example.com/acme/notify"
DEFINITION = {
    "name": "Parcel lost",
    "category": "transactional",
    "channels": ["email"],
    "example_data": {"parcel": "77"},
}
BY_CODE = DEFINITION | {"managed_by": "code", "repository": REPOSITORY}
REASON = {"emergency_reason": "  The price\tis wrong. "}
SETTINGS = {
    "name": "Parcel found",
    "description": "",
    "is_active": "on",
    "category": "transactional",
    "priority": "normal",
    "channels": ["email"],
    "max_retries": "7",
    "on_unknown": "retry",
    "plan_until": "delivered",
    "example_data": '{"parcel": "77"}',
    "schema_mode": "reject",
    "sensitive_variables": "",
}
TEXTS = {
    "language": ["default"],
    "subject:default": "Found: {{ parcel }}",
    "body:default": "We found it.",
    "note": "",
    "new_language": "",
}
MAY_EDIT = (
    "notifications.view_notificationtype",
    "notifications.add_notificationtype",
    "notifications.change_notificationtype",
    "notifications.weaken_notificationtype",
    "notifications.test_provider",
)


@pytest.fixture
def editor() -> Client:
    return signed_in(make_staff("rui", *MAY_EDIT))


@pytest.fixture
def rescuer() -> Client:
    return signed_in(make_staff("ana", *MAY_EDIT, "notifications.override_notificationtype"))


@pytest.fixture
def by_code(app: App) -> dict[str, Any]:
    return define(app, BY_CODE)


def define(app: App, definition: dict[str, Any]) -> dict[str, Any]:
    """Store a type with an unpublished version."""
    assert app.put(f"/types/{SLUG}", definition).status_code == 201
    parts = {"default": {"subject": "Lost: {{ parcel }}", "body": "We are sorry."}}
    assert app.post(f"/types/{SLUG}/templates", {"parts": parts}).status_code == 201
    return definition


def stored() -> list[Any]:
    found = list(collection("notification_types").find({"_id": SLUG}))
    return [*found, *collection("template_versions").find({"type": SLUG})]


def changed_by(client: Client, fields: dict[str, Any]) -> set[str]:
    """Return which URLs of the console change the type, of a sample of those that can be about it.

    Each sample has the URLs of CHANGING.
    """
    changed = set()
    addresses = console_urls.addresses_with(SLUG, number=1)
    for address in sorted(CHANGING.union(sampled(addresses, each=4))):
        for query in ("", "?emergency=1") if address.startswith(LIST) else ("",):
            before = stored()
            client.post(f"{address}{query}", SETTINGS | TEXTS | fields)
            if stored() != before:
                changed.add(f"{address}{query}")
    return changed


def test_each_url_of_the_console_changes_no_type_of_code_without_a_reason(
    by_code: dict[str, Any], editor: Client, rescuer: Client, console: Client
) -> None:
    assert changed_by(editor, REASON) == set()
    assert changed_by(rescuer, {"emergency_reason": " "}) == set()
    assert changed_by(console, {}) == set()


def test_with_a_reason_three_urls_change_it(by_code: dict[str, Any], rescuer: Client) -> None:
    assert changed_by(rescuer, REASON) == {
        BEGUN,
        *(f"{url}{query}" for url in (NEW, PUBLISH) for query in ("", "?emergency=1")),
    }


def test_the_same_urls_change_a_type_of_the_console(app: App, editor: Client) -> None:
    define(app, DEFINITION)
    changed = {url.partition("?")[0] for url in changed_by(editor, {})}
    assert changed == CHANGING
    assert emergencies.unpushed(types.read_type(SLUG)) == []


@each_case(
    "url, fields",
    [(PAGE, SETTINGS | REASON), (NEW, TEXTS | REASON), (PUBLISH, REASON)],
)
def test_emergency_needs_a_permission_of_its_own(
    by_code: dict[str, Any], editor: Client, url: str, fields: dict[str, Any]
) -> None:
    assert editor.post(f"{url}?emergency=1", fields).status_code == 403


def test_page_shows_the_repository_and_no_form(by_code: dict[str, Any], editor: Client) -> None:
    text = editor.get(BEGUN).content.decode()
    assert f'href="{REPOSITORY}"' in text
    for absent in ("Emergency change", 'name="name"', "New version", 'name="_save"', "Publish<"):
        assert absent not in text, absent


def test_rescuer_begins_an_emergency_change_by_a_button(
    by_code: dict[str, Any], rescuer: Client
) -> None:
    text = rescuer.get(PAGE).content.decode()
    assert 'href="?emergency=1"' in text
    assert 'name="name"' not in text
    begun = rescuer.get(BEGUN).content.decode()
    for shown in ('name="emergency_reason"', 'name="name"', 'name="_save"', NEW):
        assert shown in begun, shown


def test_type_of_the_console_asks_for_no_reason(app: App, rescuer: Client) -> None:
    define(app, DEFINITION)
    for url in (BEGUN, NEW, f"{LIST}{SLUG}/templates/1/"):
        assert "emergency" not in rescuer.get(url).content.decode().lower()


def test_form_without_a_reason_says_so(by_code: dict[str, Any], rescuer: Client) -> None:
    page = rescuer.post(BEGUN, SETTINGS)
    assert page.context["errors"] == [["This field is required."]]
    page = rescuer.post(NEW, TEXTS)
    assert "Enter why it can't wait for a push." in unescape(page.content.decode())
    page = rescuer.post(PUBLISH, follow=True)
    assert "Not published. Enter why it can't wait" in unescape(page.content.decode())


def test_change_is_stored_with_its_reason(by_code: dict[str, Any], rescuer: Client) -> None:
    assert rescuer.post(BEGUN, SETTINGS | REASON).status_code == 302
    assert rescuer.post(PUBLISH, {"emergency_reason": "x" * 400}).status_code == 302
    kind = types.read_type(SLUG)
    assert (kind["max_retries"], kind["template_version"]) == (7, 1)
    assert (kind["managed_by"], kind["repository"]) == ("code", REPOSITORY)
    first, second = emergencies.unpushed(kind)
    assert (first["reason"], first["by"]) == ("The price is wrong.", "staff:ana")
    assert second["reason"] == "x" * REASON_LENGTH
    assert second["at"] - first["at"] < timedelta(minutes=5)
    said = [entry.get_change_message() for entry in LogEntry.objects.order_by("id")]
    assert "Changed. In an emergency: The price is wrong." in said
    assert "Changed Name (Parcel lost → Parcel found) and Max retries (3 → 7)." in said, (
        "the reason is no field"
    )
    assert f"Published version 1 of the template. In an emergency: {'x' * 300}" in said
    text = rescuer.get(PAGE).content.decode()
    assert "Emergency change by ana" in text
    assert "The price is wrong." in text


def test_draft_is_audited_with_its_reason_and_changes_nothing_that_is_sent(
    by_code: dict[str, Any], rescuer: Client
) -> None:
    before = types.read_type(SLUG)
    assert rescuer.post(NEW, TEXTS | REASON)["Location"].endswith("/templates/2/")
    assert types.read_type(SLUG) == before
    said = LogEntry.objects.order_by("-id")[0].get_change_message()
    assert said == "Saved version 2 of the template. In an emergency: The price is wrong."


def test_reason_alone_changes_nothing(by_code: dict[str, Any], rescuer: Client) -> None:
    (form,) = (form for form in forms_of(rescuer.get(BEGUN), BEGUN) if form.action == BEGUN)
    before = stored()
    answer = rescuer.post(BEGUN, form.values | REASON, follow=True)
    assert "No change: the form was saved as it was." in answer.content.decode()
    assert stored() == before


def test_type_is_released_by_the_api_alone(by_code: dict[str, Any], app: App) -> None:
    released = app.put(f"/types/{SLUG}", DEFINITION).json()
    assert (released["managed_by"], released["repository"]) == ("console", None)


@each_case(
    "fields, problems",
    [
        ({"managed_by": "code"}, {"/repository": "conflict"}),
        ({"repository": REPOSITORY}, {"/repository": "conflict"}),
        ({"managed_by": "git"}, {"/managed_by": "unknown_value"}),
        *(
            ({"managed_by": "code", "repository": link}, {"/repository": "invalid_link"})
            for link in (
                "javascript:alert(1)",
                "http://git.example.com/acme",
                "git@git.example.com:acme",
                "https://ana:secret@git.example.com/acme",
                "https://",
                "https://git.example.com/a b",
            )
        ),
    ],
)
def test_management_is_validated(
    app: App, fields: dict[str, Any], problems: dict[str, str]
) -> None:
    answer = app.put(f"/types/{SLUG}", DEFINITION | fields)
    assert answer.status_code == 422
    assert {each["pointer"]: each["code"] for each in answer.json()["errors"]} == problems


def test_repository_may_be_on_a_host_of_ones_own(app: App) -> None:
    link = "https://gitlab.internal:8443/acme"
    assert app.put(f"/types/{SLUG}", BY_CODE | {"repository": link}).json()["repository"] == link


def test_of_emergency_changes_at_once_each_is_kept_with_its_reason(
    by_code: dict[str, Any], rescuer: Client
) -> None:
    other = signed_in(make_staff("eva", *MAY_EDIT, "notifications.override_notificationtype"))

    def rename() -> int:
        fields = SETTINGS | {"emergency_reason": "The name."}
        return rescuer.post(BEGUN, fields).status_code

    def publish() -> int:
        return other.post(PUBLISH, {"emergency_reason": "The text."}).status_code

    def describe() -> int:
        fields = SETTINGS | {"description": "Lost.", "emergency_reason": "The description."}
        return other.post(BEGUN, fields | {"name": "Parcel lost"}).status_code

    assert set(at_once(rename, publish, describe)) == {302}
    (document, *_) = stored()
    reasons = {change["reason"] for change in document["emergency_changes"]}
    assert reasons == {"The name.", "The text.", "The description."}
    assert document["template_version"] == 1


def test_change_that_was_stored_during_the_check_is_shown_and_not_replaced(
    app: App, console: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    define(app, DEFINITION)
    store, others = type_writes.store, [DEFINITION | {"description": "By code.", "max_retries": 4}]

    def store_later(*args: Any, **options: Any) -> None:
        if others:
            assert app.put(f"/types/{SLUG}", others.pop()).status_code == 200
        store(*args, **options)

    shown = forms_of(console.get(PAGE), PAGE)
    digests = next(form.values["_shown"] for form in shown if "_shown" in form.values)
    monkeypatch.setattr("console.types.page.type_writes.store", store_later)
    fields = SETTINGS | {"_shown": digests, "max_retries": "5", "description": ""}
    answer = console.post(PAGE, fields)
    assert "Someone changed this after you opened the page. It is now: 4." in unescape(
        answer.content.decode()
    )
    (document, *_) = stored()
    assert (document["description"], document["max_retries"]) == ("By code.", 4)
