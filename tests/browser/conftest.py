"""A real browser with a live server, at the window sizes of a desktop and a phone."""

import os
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from access.models import StaffUser
from notifyproject.stack import prerequisites
from tests.browser.screen import PASSWORD, WAIT, Screen

expect.set_options(timeout=WAIT)
REPORT_VIOLATIONS = """
addEventListener("securitypolicyviolation", (event) => {
  console.error(`${event.effectiveDirective} refused: ${event.blockedURI} ${event.sample}`);
});
"""
"""Makes what a page's Content-Security-Policy refuses an error in the console."""


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Start a headless Chromium once for all tests of this folder."""
    program = prerequisites.browser()
    if program is None:
        pytest.fail("Chromium is missing: apt-get install chromium-headless-shell.")
    prerequisites.check_playwright()
    before = os.environ.get("DJANGO_ALLOW_ASYNC_UNSAFE")
    # The browser's driver runs an event loop in this thread, where tests also use the database.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"
    try:
        with sync_playwright() as playwright:
            args = ["--no-sandbox", "--headless"]
            args += ["--disable-background-networking", "--disable-component-update"]
            browser = playwright.chromium.launch(executable_path=program, args=args)
            yield browser
            browser.close()
    finally:
        if before is None:
            del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]
        else:
            os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = before


@pytest.fixture(scope="package")
def window(chromium: Browser) -> Iterator[Page]:
    """Open one window for all tests, because opening takes a second and clearing little."""
    context = chromium.new_context()
    context.set_default_timeout(WAIT)
    context.add_init_script(REPORT_VIOLATIONS)
    yield context.new_page()
    context.close()


@pytest.fixture
def screen(window: Page, live_server: Any, broker: Any) -> Iterator[Screen]:
    """Return a cleared window. A script error in the window fails the test."""
    StaffUser.objects.create_superuser("maria", "maria@example.com", PASSWORD)
    screen = Screen(page=window, url=live_server.url)
    screen.resize("desk")
    window.on("pageerror", screen.fail)
    window.on("console", screen.note)
    yield screen
    window.remove_listener("pageerror", screen.fail)
    window.remove_listener("console", screen.note)
    _reset(window)
    assert screen.problems == []


def _reset(window: Page) -> None:
    window.evaluate("localStorage.clear(); sessionStorage.clear()")
    window.goto("about:blank")
    window.context.clear_cookies()
    window.emulate_media(color_scheme="light")
