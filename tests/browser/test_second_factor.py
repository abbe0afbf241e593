"""Two-factor authentication in a browser: set up and used with the keyboard."""

import re
from typing import Any

import pyotp
import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db")


def test_second_factor_is_set_up_and_used(screen: Screen, settings: Any) -> None:
    settings.ADMIN_REQUIRE_OTP = True
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.shows(
        page.get_by_role("heading", name="Set up two-factor authentication"),
        page.get_by_role("img"),
    )
    page.get_by_text("No camera?").click()
    app = pyotp.TOTP((page.locator("details code").text_content() or "").replace(" ", ""))
    assert screen.fits()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type("12")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Invalid or used code"))
    assert screen.fits()
    page.get_by_label("Code").fill(app.now())
    page.keyboard.press("Enter")
    screen.shows(page.get_by_role("heading", name="Your recovery codes"))
    codes = page.locator(".recovery-codes code").all_text_contents()
    assert len(codes) == 10
    assert all(re.fullmatch(r"([a-z2-7]{4}-){3}[a-z2-7]{4}", code) for code in codes)
    assert screen.fits()
    screen.reach(page.get_by_role("link", name="I saved these codes")).click()
    page.wait_for_url(f"{screen.url}/admin/")

    page.context.clear_cookies()
    screen.sign_in()
    screen.open("/admin/notifications/notification/")
    screen.shows(page.get_by_role("heading", name="Two-factor authentication"))
    assert screen.fits()
    expect(page.get_by_label("Code")).to_be_focused()
    page.keyboard.type(codes[0])
    page.keyboard.press("Enter")
    page.wait_for_url(f"{screen.url}/admin/notifications/notification/")
    screen.shows(page.get_by_text("Recovery code used; 9 left."))
    screen.open("/admin/second-factor/set-up/")
    screen.shows(page.get_by_text("9 recovery codes left"))
    assert screen.fits()
