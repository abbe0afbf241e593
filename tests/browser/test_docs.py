"""The API's description in a browser: it renders under its own content policy."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db")


def test_api_description_lists_operations(screen: Screen) -> None:
    screen.page.goto(f"{screen.url}/api/docs")
    expect(screen.page.locator(".opblock").first).to_be_visible()
