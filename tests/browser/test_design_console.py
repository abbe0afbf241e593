"""The items of the design in a browser: edited with a live preview, by the keyboard alone."""

from typing import Any

import pytest
from playwright.sync_api import FrameLocator, expect

from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import Kind
from notifications.content import design_changes, templates
from notifications.content.design_changes import Change
from notifications.documents.catalog import DESIGNS
from tests.browser.accessibility import check
from tests.browser.screen import Screen
from tests.support.factories.templates import publish_version

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/design/"
ITEM = f"{LIST}item/"
LAYOUT = """<html>
<head>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body { margin: 0; font-family: sans-serif; background: {{ brand.colours.light.background }}; }
.card { margin: 24px auto; max-width: 520px; padding: 32px; background: #ffffff; }
</style>
</head>
<body><div class="card">{{ content }}
<p>{{ brand.footer }} <a href="{{ unsubscribe_url }}">{{ words.unsubscribe }}</a></p></div></body>
</html>"""


def store(kind: Kind, name: str, content: Any, *, by: str = "staff:tomas") -> None:
    present = designs.read_newest().items(kind).get(name)
    replaces = None if present is None else designs.revision_of(present)
    change = Change(kind=kind, name=name, content=content, replaces=replaces, pointer="")
    design_changes.store([change], created_by=by, now=utc_now())


def mail(screen: Screen) -> FrameLocator:
    return screen.page.frame_locator(".stage iframe")


def test_brand_is_made_with_a_live_preview(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Design")
    check(screen)
    screen.reach(page.get_by_role("link", name="New brand")).click()
    screen.wait_for_scripts()
    page.get_by_label("ID", exact=True).fill("acme")
    page.get_by_label("Name", exact=True).fill("Acme Travel")
    page.get_by_label("Type", exact=True).select_option("order_shipped")
    expect(mail(screen).locator(".footer")).to_contain_text("Acme Travel")
    page.get_by_label("Footer").fill("1 High Street, Lisbon")
    expect(mail(screen).locator(".footer")).to_contain_text("1 High Street, Lisbon")
    page.get_by_label("Text, light", exact=True).fill("#c0c0c0")
    expect(mail(screen).locator(".card")).to_have_css("color", "rgb(192, 192, 192)")
    expect(page.locator("#contrast li").first).to_contain_text("1.8")
    expect(page.locator("#contrast li").first).to_contain_text("Low")
    check(screen)
    page.get_by_label("Text, light", exact=True).fill("grey")
    expect(page.locator("#brand-colours-light-text-error")).to_have_text(
        "Enter # and six digits, such as #4f46e5."
    )
    expect(page.locator("#preview-problem")).to_contain_text("Colours light: text")
    page.get_by_label("Text, light", exact=True).fill("#1f2937")
    expect(page.locator("#brand-colours-light-text-error")).to_be_hidden()
    page.get_by_role("radio", name="Dark").check()
    expect(mail(screen).locator(".card")).to_have_css("background-color", "rgb(31, 41, 55)")
    page.get_by_role("radio", name="Phone").check()
    expect(page.locator(".stage iframe")).to_have_css("width", "375px")
    check(screen)
    screen.reach(page.get_by_role("button", name="Save")).click()
    screen.shows(page.get_by_text("Saved, in design 1."))
    assert designs.read_newest().brand("acme").colours.light.text == "#1f2937"
    screen.open(LIST)
    screen.shows(page.get_by_role("link", name="Acme Travel"))
    check(screen)


def test_unsaved_change_is_not_lost_by_leaving(screen: Screen) -> None:
    page = screen.page
    store(Kind.LAYOUT, "plain", LAYOUT)
    screen.sign_in()
    screen.open(f"{ITEM}layout/plain/")
    expect(mail(screen).locator(".card")).to_be_visible()
    page.get_by_role("textbox", name="HTML").fill(LAYOUT.replace("#ffffff", "#fffbeb"))
    expect(mail(screen).locator(".card")).to_have_css("background-color", "rgb(255, 251, 235)")
    asked: list[str] = []

    def stay(dialog: Any) -> None:
        asked.append(dialog.type)
        dialog.dismiss()

    page.on("dialog", stay)
    page.get_by_role("link", name="Cancel").click()
    page.wait_for_function("document.getElementById('html').value.includes('#fffbeb')")
    assert asked == ["beforeunload"]
    assert page.url.endswith("/item/layout/plain/")
    page.remove_listener("dialog", stay)
    page.on("dialog", lambda dialog: dialog.accept())


def test_layout_is_changed_by_the_keyboard_alone(screen: Screen) -> None:
    page, press = screen.page, screen.page.keyboard.press
    store(Kind.LAYOUT, "plain", LAYOUT)
    screen.sign_in()
    screen.open(LIST)
    page.get_by_role("link", name="plain").focus()
    press("Enter")
    expect(page.get_by_role("textbox", name="HTML")).to_be_visible()
    screen.wait_for_scripts()
    page.get_by_role("radio", name="Light").focus()
    press("ArrowRight")
    expect(page.get_by_role("radio", name="Dark")).to_be_checked()
    press("Tab")
    press("ArrowRight")
    expect(page.get_by_role("radio", name="Phone")).to_be_checked()
    page.get_by_role("textbox", name="HTML").focus()
    press("Control+Home")
    page.keyboard.type("<!doctype html>")
    press("Tab")
    while page.evaluate("document.activeElement.innerText") != "Save":
        press("Tab")
    press("Enter")
    expect(page.get_by_text("Saved, in design 2.")).to_be_visible()
    assert designs.read_newest().layouts["plain"].startswith("<!doctype html><html>")


def test_edit_of_two_people_shows_both_sides(screen: Screen) -> None:
    page = screen.page
    store(Kind.LAYOUT, "plain", LAYOUT)
    screen.sign_in()
    screen.open(f"{ITEM}layout/plain/")
    page.get_by_role("textbox", name="HTML").fill(LAYOUT.replace("520px", "600px"))
    store(Kind.LAYOUT, "plain", LAYOUT.replace("32px", "24px"))
    page.get_by_role("button", name="Save").click()
    screen.shows(page.get_by_text("tomas has changed it since you opened it."))
    screen.shows(page.get_by_role("heading", name="Changed by you"))
    assert "600px" in page.get_by_role("textbox", name="HTML").input_value()
    check(screen)
    screen.reach(page.get_by_role("button", name="Take theirs")).click()
    assert "600px" not in page.get_by_role("textbox", name="HTML").input_value()
    page.get_by_role("button", name="Save").click()
    screen.shows(page.get_by_text("No change: it was saved as it is."))


def test_partial_is_previewed_by_itself_and_in_a_language(screen: Screen) -> None:
    page = screen.page
    texts = {
        "default": {"html": "<p>Questions? {{ url }}</p>", "text": "Questions?"},
        "pt": {"html": "<p>Perguntas? {{ url }}</p>", "text": "Perguntas?"},
    }
    store(Kind.PARTIAL, "help", texts)
    screen.sign_in()
    screen.open(f"{ITEM}partial/help/")
    expect(mail(screen).locator(".card")).to_contain_text("Questions? url")
    page.get_by_label("Language", exact=True).select_option("pt")
    expect(mail(screen).locator(".card")).to_contain_text("Perguntas? url")
    check(screen)


def test_translations_are_previewed_in_their_language(screen: Screen) -> None:
    page = screen.page
    store(Kind.TRANSLATION, "default", {"bye": "Bye, {name}"})
    store(Kind.TRANSLATION, "pt", {"bye": "Tchau, {name}"})
    parts = {"default": {"subject": "S", "body": "{{ 'bye' | t: name: recipient.name }}"}}
    now = utc_now()
    templates.create_version(type_slug="alert", parts=parts, note="", created_by="", now=now)
    publish_version(type_slug="alert", number=1, now=now)
    screen.sign_in()
    screen.open(LIST)
    check(screen)
    screen.reach(page.get_by_role("link", name="pt", exact=True)).click()
    expect(mail(screen).locator("body")).to_contain_text("Tchau, Ada Lovelace")
    check(screen)
    field = page.get_by_role("textbox", name="Texts, as JSON")
    field.fill('{"bye": "Adeus, {name}"}')
    expect(mail(screen).locator("body")).to_contain_text("Adeus, Ada Lovelace")
    field.fill('{"bye": "Adeus, {nome}"}')
    expect(page.locator("#preview-problem")).to_contain_text("'bye' in pt needs 'nome'")
    check(screen)
    field.fill('{"bye": "Até já, {name}"}')
    page.get_by_role("button", name="Save").click()
    screen.shows(page.get_by_text("Saved, in design 3."))
    screen.open(f"{LIST}new/translation/")
    expect(page.get_by_label("Language", exact=True).first).to_be_visible()
    check(screen)


def test_earlier_version_is_restored(screen: Screen) -> None:
    page = screen.page
    store(Kind.LAYOUT, "plain", LAYOUT)
    store(Kind.LAYOUT, "plain", LAYOUT.replace("520px", "600px"))
    screen.sign_in()
    screen.open(LIST)
    screen.reach(page.get_by_role("link", name="Changes")).click()
    check(screen)
    screen.reach(page.get_by_role("link", name="Design 2")).click()
    screen.shows(page.get_by_text("max-width: 600px").first)
    check(screen)
    screen.open(f"{ITEM}layout/plain/?number=1")
    expect(mail(screen).locator(".card")).to_be_visible()
    check(screen)
    screen.reach(page.get_by_role("button", name="Restore")).click()
    screen.shows(page.get_by_text("Restored, in design 3."))
    assert designs.read_newest().layouts["plain"] == LAYOUT


def test_script_of_a_layout_does_not_run_in_the_preview(screen: Screen) -> None:
    """Of one that is stored, since it is refused of a change."""
    page = screen.page
    run = "parent.document.title = 'run'"
    script = f'<script>{run}</script><img src=x onerror="{run}"></body>'
    store(Kind.LAYOUT, "plain", LAYOUT)
    stored = DESIGNS().find_one({})
    assert stored is not None
    stored["layouts"]["plain"] = LAYOUT.replace("</body>", script)
    DESIGNS().insert_one(stored | {"_id": stored["_id"] + 1})
    screen.sign_in()
    screen.open(f"{ITEM}layout/plain/")
    expect(mail(screen).locator("img")).to_be_attached()
    assert page.title() != "run"
    screen.problems.clear()
