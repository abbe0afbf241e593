"""The console's controls work under its Content-Security-Policy, which refuses inline code."""

import pytest
from playwright.sync_api import expect

from domain.time import utc_now
from tests.browser.screen import Screen
from tests.support.factories.one_of_each import store_one_of_each

pytestmark = pytest.mark.usefixtures("db", "broker")

HOME = "/admin/"
FAILED = "/admin/notifications/failednotification/"


def test_theme_menu_and_account_work(screen: Screen) -> None:
    page = screen.page
    html, menu = page.locator("html"), page.locator("#nav-sidebar")
    toggle = page.get_by_text("dock_to_right").locator("visible=true")
    screen.sign_in()
    screen.open(HOME)
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
    page.keyboard.press("Control+e")
    expect(html).not_to_have_class("dark")


def test_actions_on_rows_appear_with_a_selection(screen: Screen) -> None:
    store_one_of_each(now=utc_now())
    page = screen.page
    screen.sign_in()
    screen.open(FAILED)
    page.locator("#result_list tbody input[type=checkbox]").first.check()
    actions = page.locator("#changelist-actions")
    expect(actions).to_be_visible()
    page.select_option("#changelist-actions select[name=action]", index=1)
    page.get_by_role("button", name="Run").click()
    expect(page.get_by_role("heading", level=1)).to_be_visible()
