"""A person saves the filters of a list, and finds them in the menu with a count."""

import pytest
from playwright.sync_api import expect

from console.saved_views import menu
from domain.states import DeliveryStatus
from domain.time import utc_now
from tests.browser.accessibility import check
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")

FAILURES = "/admin/notifications/failednotification/"
VIEWS = "/admin/analytics/savedview/"


@pytest.fixture(autouse=True)
def _failures() -> None:
    menu.forget()
    for _ in range(3):
        factories.settled(DeliveryStatus.FAILED, at=utc_now())


def test_view_is_saved_by_the_keyboard_alone(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open(f"{FAILURES}?channel=email&q=nobody@example.com")
    page.get_by_role("link", name="Save view…").focus()
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Channel: Email"), page.get_by_text("The search isn't saved"))
    check(screen)
    page.get_by_label("Name").focus()
    page.keyboard.type("Failed mail")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{FAILURES}?channel=email")
    screen.resize("desk")
    link = page.locator("#nav-sidebar-apps a").filter(has=page.get_by_text("Failed mail"))
    expect(link.locator(".view-count")).to_have_text("3")
    check(screen)
    screen.open("/admin/")
    screen.resize("desk")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**{FAILURES}?channel=email")


def test_views_are_moved_by_the_keyboard_alone(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    for name in ("First", "Second"):
        screen.open(f"{VIEWS}add/?list=notifications_failednotification&query=channel%3Demail")
        page.get_by_label("Name").fill(name)
        page.get_by_role("button", name="Save", exact=True).click()
        page.wait_for_url(f"**{FAILURES}?channel=email")
    screen.open(VIEWS)
    check(screen)
    screen.resize("desk")
    page.get_by_role("button", name="Move Second up").focus()
    page.keyboard.press("Enter")
    entries = page.locator("#nav-sidebar-apps a[href$='/open/'] > span:nth-child(2)")
    expect(entries).to_have_text(["Second", "First"])
    page.get_by_role("link", name="First", exact=True).last.click()
    screen.shows(page.get_by_role("link", name="Open the list"))
    check(screen)
