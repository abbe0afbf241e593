"""A window of the browser, at the sizes of a desktop and a phone."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from django.conf import settings
from django.test import Client
from playwright.sync_api import ConsoleMessage, Error, Locator, Page, expect
from playwright.sync_api import TimeoutError as TookTooLong

from access.models import StaffUser
from tests.support.waiting import LIMIT

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PASSWORD = "a-long-Secret-9"
WAIT = LIMIT * 1000
"""Milliseconds until something that does not appear is missing."""
SETTLED = LIMIT * 1000
"""Milliseconds until what still sticks out does."""


@dataclass
class Screen:
    """A window that is looked at in every size, and what went wrong in it.

    A look ends in the other size than it began in, so that pages are opened in both.
    """

    page: Page
    url: str
    size: str = "desk"
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a page of the live server."""
        self.page.goto(f"{self.url}{path}")
        self.wait_for_scripts()

    def log_in(self, username: str = "maria") -> None:
        """Sign in by the form: as the superuser, or as somebody else with the same password."""
        self.open("/admin/login/")
        self.page.fill("#id_username", username)
        self.page.fill("#id_password", PASSWORD)
        self.reach(self.page.locator("button[type=submit]")).click()
        self.page.wait_for_url(f"{self.url}/admin/")
        self.wait_for_scripts()

    def sign_in(self, username: str = "maria") -> None:
        """Be signed in, as the superuser or as somebody else."""
        client = Client()
        client.force_login(StaffUser.objects.get(username=username))
        session = client.cookies[settings.SESSION_COOKIE_NAME]
        self.page.context.add_cookies(
            [{"name": session.key, "value": session.value, "url": self.url}]
        )

    def wait_for_scripts(self) -> None:
        """Wait until the theme's scripts have taken the page over."""
        self.page.wait_for_selector("html:not([x-cloak])", state="attached")

    def choose(self, entry: str) -> None:
        """Follow an entry of the menu, which a phone opens first."""
        words = self.page.get_by_text(entry, exact=True)
        link = self.page.locator("#nav-sidebar-apps a").filter(has=words)
        for size in self.sizes():
            if size == "phone":
                self.page.locator("text=dock_to_right >> visible=true").click()
            link.click(trial=True)
        link.click()

    def sizes(self) -> Iterator[str]:
        """Give the window each size in turn."""
        for size in (self.size, *(SIZES.keys() - {self.size})):
            self.size = size
            width, height = SIZES[size]
            self.page.set_viewport_size({"width": width, "height": height})
            yield size

    def shows(self, *what: Locator) -> None:
        """Look at what is to be seen in every size."""
        for _ in self.sizes():
            for one in what:
                expect(one).to_be_visible()

    def reach(self, control: Locator) -> Locator:
        """Return what can be clicked in every size: nothing is in front of it."""
        for _ in self.sizes():
            control.click(trial=True)
        return control

    def fits(self) -> bool:
        """Whether nothing sticks out to the right in any size."""
        self.page.wait_for_load_state("load")
        self.wait_for_scripts()
        return all(self._fits() for _ in self.sizes())

    def _fits(self) -> bool:
        # What scripts draw, such as a chart, takes a moment to follow the window.
        try:
            self.page.wait_for_function(
                "width => document.documentElement.scrollWidth <= width",
                arg=SIZES[self.size][0],
                timeout=SETTLED,
            )
        except TookTooLong:
            return False
        return True

    def fail(self, error: Error) -> None:
        """Remember an error of a script."""
        self.problems.append(str(error))

    def note(self, message: ConsoleMessage) -> None:
        """Remember an error in the browser's console."""
        if message.type == "error":
            self.problems.append(message.text)
