"""Brands, layouts, and partials in a browser: previewed, guarded, and restored."""

from typing import Any

import pytest
from playwright.sync_api import FrameLocator, expect

from domain.time import utc_now
from notifications.catalog import designs
from notifications.catalog.designs import Kind
from notifications.content import design_changes
from notifications.content.design_changes import Change
from tests.browser.accessibility import violations
from tests.browser.screen import Screen

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


def check(screen: Screen) -> None:
    """Check that the page fits, and has no violation, in both sizes and schemes."""
    assert screen.fits()
    for scheme in ("light", "dark"):
        screen.page.emulate_media(color_scheme=scheme)
        for _ in screen.sizes():
            assert violations(screen.page) == []


def mail(screen: Screen) -> FrameLocator:
    return screen.page.frame_locator(".stage iframe")


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
    page = screen.page
    run = "parent.document.title = 'run'"
    script = f'<script>{run}</script><img src=x onerror="{run}"></body>'
    store(Kind.LAYOUT, "plain", LAYOUT.replace("</body>", script))
    screen.sign_in()
    screen.open(f"{ITEM}layout/plain/")
    expect(mail(screen).locator("img")).to_be_attached()
    assert page.title() != "run"
    screen.problems.clear()
