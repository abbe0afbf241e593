"""The panel of filters by keyboard."""

import pytest
from playwright.sync_api import Page

from domain.time import utc_now
from tests.browser.screen import Screen
from tests.support.factories.demo_day import store_day

pytestmark = pytest.mark.usefixtures("db", "broker")
INSIDE = "() => document.getElementById('changelist-filter').contains(document.activeElement)"
LISTS = ("/admin/notifications/notification/", "/admin/recipients/suppression/")
"""One with many filters and one with few."""


def test_focus_goes_into_the_filters_stays_and_returns(screen: Screen) -> None:
    store_day(now=utc_now(), busy=1, waves=1)
    screen.sign_in()
    for path in LISTS:
        screen.open(path)
        _check_focus(screen.page)


def _check_focus(page: Page) -> None:
    button = page.get_by_role("button", name="Filters")
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(INSIDE)
    count = (
        page.locator("#changelist-filter").locator("input:visible, select:visible, button").count()
    )
    for _ in range(count + 3):
        page.keyboard.press("Tab")
        assert page.evaluate(INSIDE), "Tab stays in the panel"
    for _ in range(count + 3):
        page.keyboard.press("Shift+Tab")
        assert page.evaluate(INSIDE), "Shift Tab stays in the panel"
    page.keyboard.press("Escape")
    page.wait_for_function("() => !document.getElementById('changelist-filter').checkVisibility()")
    assert button.evaluate("one => one === document.activeElement")
