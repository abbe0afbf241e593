"""The sixteen pages of the console, each with its contents, in every size."""

from collections.abc import Iterator
from dataclasses import dataclass
from http import HTTPStatus

import pytest
from playwright.sync_api import Page, Response, expect

from domain.time import utc_now
from tests.browser.screen import Screen
from tests.support.factories.demo_day import FAILED_ORDER, store_day
from tests.support.factories.demo_shop import CUSTOMERS

pytestmark = pytest.mark.usefixtures("db")

BUSY, WAVES = 2, 9
"""Enough data for every page to show some."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A page of the console: the way there, its heading, and its required contents."""

    menu: str
    then: tuple[str, ...] = ()
    """The row to open in the list, if the page shows one document."""
    heading: str = ""
    """The heading, if it differs from the menu's entry."""
    shows: tuple[str, ...] = ()
    offers: tuple[str, ...] = ()
    """Buttons and links."""


BEATRIZ = CUSTOMERS[0]
STOPS = (
    Stop(
        menu="Home",
        shows=("Channels", "Success", "Retrying", "Unknown", "Last sweep"),
        offers=("Queued", "Provider error"),
    ),
    Stop(
        menu="Failed deliveries",
        shows=("Causes", "last 24 h", "Resend risk"),
        offers=("Provider error", "Bulk action on all matches…", "Filters"),
    ),
    Stop(
        menu="Notifications",
        shows=("Sending", "Delivered", "Partially delivered"),
        offers=("Bulk action on all matches…", "Filters"),
    ),
    Stop(
        menu="Notifications",
        then=(f"order-{FAILED_ORDER}",),
        heading="Payment confirmed",
        shows=("Timeline", "Message preview", "Resend: safe"),
        offers=("Retry failed channels", "Resend"),
    ),
    Stop(
        menu="Recipients",
        then=(BEATRIZ.user_id,),
        heading=BEATRIZ.user_id,
        shows=(
            "Recent notifications",
            "Devices",
            "Suppressions",
            "22:00 to 07:30",
            "Last accepted or confirmed",
        ),
        offers=("Export", "Erase", "Revoke inbox tokens"),
    ),
    Stop(
        menu="Scheduled and held",
        shows=("Scheduled", "Status"),
        offers=("Bulk action on all matches…", "Filters"),
    ),
    Stop(menu="Bulk operations", shows=("No bulk operations",), offers=("Failed deliveries",)),
    Stop(
        menu="Providers",
        shows=("SendGrid", "Circuit", "Rate", "p95 response time"),
        offers=("Pause SendGrid", "Send test"),
    ),
    Stop(
        menu="Workers and queues",
        shows=("Last sweep", "Oldest", "Critical", "This page is read-only."),
        offers=("Ping workers",),
    ),
    Stop(
        menu="Types",
        then=("Payment confirmed",),
        heading="Payment confirmed",
        shows=("Template", "Version 2", "Published", "WhatsApp"),
        offers=("New version", "Changes"),
    ),
    Stop(menu="Suppressions", shows=("Hard bounce", "Unsubscribed"), offers=("Filters",)),
    Stop(menu="Devices", shows=("Pixel 9", "Active"), offers=("Filters",)),
    Stop(menu="Provider webhooks", shows=("WhatsApp", "SendGrid"), offers=("Filters",)),
    Stop(
        menu="API clients",
        then=("shop",),
        heading="shop",
        shows=("at most 2 active, for key rotation", "Expires"),
        offers=("Revoke",),
    ),
    Stop(menu="Audit log", shows=("Published version 1", "maria"), offers=("Filters",)),
    Stop(
        menu="Retention",
        shows=("Content retention", "Record retention", "Data retention", "Metrics per minute"),
        offers=("Recipients",),
    ),
)


@pytest.fixture
def refused(screen: Screen) -> Iterator[list[str]]:
    """Return a list that collects the responses with an error status."""
    found: list[str] = []

    def note(response: Response) -> None:
        if response.status >= HTTPStatus.BAD_REQUEST:
            found.append(f"{response.status} {response.url}")

    screen.page.on("response", note)
    yield found
    screen.page.remove_listener("response", note)


def test_pages_are_in_the_menu_and_show_their_content(
    screen: Screen, refused: list[str], subtests: pytest.Subtests
) -> None:
    assert len(STOPS) == 16
    store_day(now=utc_now(), busy=BUSY, waves=WAVES)
    screen.sign_in()
    screen.open("/admin/")
    for number, stop in enumerate(STOPS, start=1):
        with subtests.test(page=f"{number}: {' > '.join((stop.menu, *stop.then))}"):
            go_to(screen, stop)
            expect(screen.page.locator("h1")).to_contain_text(stop.heading or stop.menu)
            for _ in screen.sizes():
                assert missing(screen.page, stop) == [], screen.size
            assert screen.fits()
            assert screen.problems == []
            assert refused == []


def go_to(screen: Screen, stop: Stop) -> None:
    screen.choose(stop.menu)
    screen.wait_for_scripts()
    for words in stop.then:
        row = screen.page.locator("#result_list tbody").filter(has_text=words).first
        row.locator("a").first.click()
        screen.wait_for_scripts()


def missing(page: Page, stop: Stop) -> list[str]:
    body = page.locator("#main")
    text = " ".join((body.text_content() or "").split())
    shown = [words for words in stop.shows if words not in text]
    controls = body.locator("a:visible, button:visible, summary:visible").all_text_contents()
    offered = " | ".join(" ".join(control.split()) for control in controls)
    return shown + [words for words in stop.offers if words not in offered]
