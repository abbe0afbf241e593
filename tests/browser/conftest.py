"""A real browser at a desk's and a phone's size, before a live server."""

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from django.conf import settings
from django.test import Client
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Error,
    Locator,
    Page,
    expect,
    sync_playwright,
)
from playwright.sync_api import TimeoutError as TookTooLong

from access.models import StaffUser
from notifyproject.stack import libraries, prerequisites
from tests.waiting import LIMIT

SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PASSWORD = "a-long-Secret-9"
WAIT = LIMIT * 1000
"""Milliseconds until something that does not appear is missing."""
SETTLED = LIMIT * 1000
"""Milliseconds until what still sticks out does."""

expect.set_options(timeout=WAIT)


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Give a Chromium without a window, started once for all tests of this folder."""
    program = prerequisites.browser()
    if program is None:
        pytest.fail(
            "These tests need Chromium: install it with apt-get install chromium-headless-shell."
        )
    libraries.check_playwright()
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    # The browser's driver runs an event loop in this thread; tests use the database beside it.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=program,
                args=[
                    *("--no-sandbox", "--headless"),
                    *("--disable-background-networking", "--disable-component-update"),
                ],
            )
            yield browser
            browser.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


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
        link = self.page.locator("#nav-sidebar-apps").get_by_role("link", name=entry)
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


@pytest.fixture(scope="package")
def window(chromium: Browser) -> Iterator[Page]:
    """Give a window: to open one takes a second's work, to clear one nothing."""
    context = chromium.new_context()
    context.set_default_timeout(WAIT)
    yield context.new_page()
    context.close()


@pytest.fixture
def screen(window: Page, live_server: Any, broker: Any) -> Iterator[Screen]:
    """Give a window nobody has used; whatever its scripts complain about fails the test."""
    StaffUser.objects.create_superuser("maria", "maria@example.com", PASSWORD)
    screen = Screen(page=window, url=live_server.url)
    window.set_viewport_size({"width": SIZES["desk"][0], "height": SIZES["desk"][1]})
    window.on("pageerror", screen.fail)
    window.on("console", screen.note)
    yield screen
    window.remove_listener("pageerror", screen.fail)
    window.remove_listener("console", screen.note)
    _forget(window)
    assert screen.problems == []


def _forget(window: Page) -> None:
    """Leave a window at no page, signed out, and with nothing remembered."""
    window.evaluate("localStorage.clear(); sessionStorage.clear()")
    window.goto("about:blank")
    window.context.clear_cookies()
    window.emulate_media(color_scheme="light")
