"""The console's controls work under its Content-Security-Policy, which refuses inline code."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db", "broker")

HOME = "/admin/"
FAILED = "/admin/notifications/failednotification/"


def test_theme_menu_and_account_work(screen: Screen) -> None:
    page = screen.page
    html, menu = page.locator("html"), page.locator("#nav-sidebar")
    toggle = page.get_by_text("dock_to_right").locator("visible=true")
    shade = "element => getComputedStyle(element).backgroundColor"
    screen.sign_in()
    screen.open(HOME)
    tile = page.locator(".tile").first
    light = tile.evaluate(shade)
    toggle.click()
    expect(menu).to_be_hidden()
    screen.open(FAILED)
    expect(menu).to_be_hidden()
    toggle.click()
    expect(menu).to_be_visible()
    page.get_by_text("unfold_more").locator("visible=true").click()
    page.get_by_text("Dark", exact=True).locator("visible=true").click()
    expect(html).to_have_class("dark")
    screen.open(HOME)
    expect(html).to_have_class("dark")
    assert tile.evaluate(shade) != light
    assert screen.fits()
    page.keyboard.press("Control+e")
    expect(html).not_to_have_class("dark")
