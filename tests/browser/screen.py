"""A window of the browser, at the sizes of a desktop and a phone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.test import Client
from playwright.sync_api import ConsoleMessage, Error, Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeoutError

from access.models import StaffUser
from tests.support.waiting import LIMIT

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PASSWORD = "a-long-Secret-9"
WAIT = LIMIT * 1000
"""Milliseconds."""


@dataclass
class Screen:
    """A window that is checked in both sizes, and the errors in it.

    A check leaves the window in the other size, so that pages are opened in both.
    """

    page: Page
    url: str
    size: str = "desk"
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        self.page.goto(f"{self.url}{path}")
        self.wait_for_scripts()

    def log_in(self, username: str = "maria") -> None:
        self.open("/admin/login/")
        self.page.fill("#id_username", username)
        self.page.fill("#id_password", PASSWORD)
        self.reach(self.page.locator("button[type=submit]")).click()
        self.page.wait_for_url(f"{self.url}/admin/")
        self.wait_for_scripts()

    def sign_in(self, username: str = "maria") -> None:
        client = Client()
        client.force_login(StaffUser.objects.get(username=username))
        session = client.cookies[settings.SESSION_COOKIE_NAME]
        self.page.context.add_cookies(
            [{"name": session.key, "value": session.value, "url": self.url}]
        )

    def wait_for_scripts(self) -> None:
        self.page.wait_for_selector("html:not([x-cloak])", state="attached")

    def choose(self, entry: str) -> None:
        """Click an entry of the menu, which is collapsed on a phone."""
        words = self.page.get_by_text(entry, exact=True)
        link = self.page.locator("#nav-sidebar-apps a").filter(has=words)
        for size in self.sizes():
            if size == "phone":
                self.page.locator("text=dock_to_right >> visible=true").click()
            link.click(trial=True)
        link.click()

    def sizes(self) -> Iterator[str]:
        """Resize the window to each size in turn, starting with the present size."""
        for size in (self.size, *(SIZES.keys() - {self.size})):
            self.resize(size)
            yield size

    def resize(self, size: str) -> None:
        self.size, (width, height) = size, SIZES[size]
        self.page.set_viewport_size({"width": width, "height": height})

    def shows(self, *locators: Locator) -> None:
        """Check that these elements are visible in every size."""
        for _ in self.sizes():
            for item in locators:
                expect(item).to_be_visible()

    def reach(self, control: Locator) -> Locator:
        """Check that a control can be clicked in every size; return the control."""
        for _ in self.sizes():
            control.click(trial=True)
        return control

    def fits(self) -> bool:
        """Return whether the page is no wider than the window in any size."""
        return all(self.fits_now() for _ in self.sizes())

    def fits_now(self) -> bool:
        """Return whether the page is no wider than the window in the present size."""
        self.page.wait_for_load_state("load")
        self.wait_for_scripts()
        # Elements that scripts draw, such as charts, follow the window's size after a moment.
        try:
            self.page.wait_for_function(
                "width => document.documentElement.scrollWidth <= width",
                arg=SIZES[self.size][0],
                timeout=WAIT,
            )
        except PlaywrightTimeoutError:
            return False
        return True

    def fail(self, error: Error) -> None:
        self.problems.append(str(error))

    def note(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.problems.append(message.text)
