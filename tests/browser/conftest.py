"""A real browser at a desk's and a phone's size, signed in to a live server."""

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

from access.models import StaffUser

PROGRAMS = ("chromium", "chromium-browser", "google-chrome")
SIZES = {"desk": (1280, 900), "phone": (390, 844)}
PASSWORD = "a-long-Secret-9"
WAIT = 15_000
"""Milliseconds until something that does not appear is missing."""


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    """Give a Chromium without a window."""
    program = next((found for name in PROGRAMS if (found := shutil.which(name))), None)
    if program is None:
        pytest.fail("These tests need Chromium: install it with apt-get install chromium.")
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
    """A page in a browser of one size, and what went wrong on it."""

    page: Page
    url: str
    size: str
    problems: list[str] = field(default_factory=list)

    def open(self, path: str) -> None:
        """Go to a page of the live server."""
        self.page.goto(f"{self.url}{path}")
        self.wait_for_scripts()

    def log_in(self) -> None:
        """Sign in as the superuser."""
        self.open("/admin/login/")
        self.page.fill("#id_username", "maria")
        self.page.fill("#id_password", PASSWORD)
        self.page.click("button[type=submit]")
        self.page.wait_for_url(f"{self.url}/admin/")
        self.wait_for_scripts()

    def wait_for_scripts(self) -> None:
        """Wait until the theme's scripts have taken the page over."""
        self.page.wait_for_selector("html:not([x-cloak])", state="attached")

    def choose(self, entry: str) -> None:
        """Follow an entry of the menu, which a phone opens first."""
        if self.size == "phone":
            self.page.locator("text=dock_to_right >> visible=true").click()
        self.page.locator("#nav-sidebar-apps").get_by_role("link", name=entry).click()

    def fits(self) -> bool:
        """Whether nothing sticks out to the right."""
        self.page.wait_for_load_state("load")
        self.wait_for_scripts()
        width = self.page.evaluate("document.documentElement.scrollWidth")
        return int(width) <= SIZES[self.size][0]

    def note(self, message: ConsoleMessage) -> None:
        """Remember an error in the browser's console."""
        if message.type == "error":
            self.problems.append(message.text)


@pytest.fixture(params=sorted(SIZES))
def screen(
    request: pytest.FixtureRequest, chromium: Browser, live_server: Any, broker: Any
) -> Iterator[Screen]:
    """Give a fresh browser of each size; whatever its scripts complain about fails the test."""
    StaffUser.objects.create_superuser("maria", "maria@example.com", PASSWORD)
    width, height = SIZES[request.param]
    context = chromium.new_context(viewport={"width": width, "height": height})
    context.set_default_timeout(WAIT)
    screen = Screen(page=context.new_page(), url=live_server.url, size=request.param)
    screen.page.on("pageerror", lambda error: screen.problems.append(str(error)))
    screen.page.on("console", screen.note)
    yield screen
    context.close()
    assert screen.problems == []
