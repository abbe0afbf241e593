"""The sign-in page with an OpenID provider: its button, and emergency access in an outage."""

from typing import Any

import pytest
from playwright.sync_api import expect

from access.staff.oidc import discovery
from tests.browser.accessibility import violations
from tests.browser.screen import Screen
from tests.support.fakes import oidc_provider

pytestmark = pytest.mark.usefixtures("db")


def test_page_offers_the_provider_and_a_password_in_an_outage(
    screen: Screen, settings: Any
) -> None:
    page = screen.page
    with oidc_provider.serving() as provider:
        provider.is_broken = True
        settings.OIDC_ISSUER, settings.OIDC_NAME = provider.issuer, "Example ID"
        discovery._provider.cache_clear()
        screen.open("/admin/login/")
        button = page.get_by_role("link", name="Continue with Example ID")
        screen.shows(button)
        expect(page.get_by_label("Username")).to_be_hidden()
        button.click()
        screen.shows(
            page.get_by_text("The sign-in provider is unavailable."),
            page.get_by_label("Username"),
        )
        assert screen.fits()
        assert violations(page) == []
    # The browser reports the status of the page itself.
    screen.problems.clear()
