"""The console's controls are reached by keyboard alone."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db")

FAILED = "/admin/notifications/failednotification/"


def test_controls_are_reached_by_keyboard(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open(FAILED)
    page.keyboard.press("Tab")
    expect(page.locator(".skip-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    account = page.locator("#nav-sidebar-inner nav[aria-label=Account] + [role=button]")
    account.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Change password")).to_be_visible()
    expect(account).to_have_attribute("aria-expanded", "true")
    screen.resize("phone")
    screen.open(FAILED)
    page.get_by_role("button", name="Show or hide menu").locator("visible=true").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#nav-sidebar")).to_be_visible()
