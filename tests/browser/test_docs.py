"""The API documentation in a browser renders under its Content-Security-Policy."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db")


def test_api_description_lists_operations(screen: Screen) -> None:
    screen.page.goto(f"{screen.url}/api/docs")
    expect(screen.page.locator(".opblock").first).to_be_visible()
