"""Unsubscribing in a browser: one button, no script, and back again."""

import pytest
from playwright.sync_api import expect

from tests.browser.screen import Screen
from tests.support.clients.unsubscribe import link

pytestmark = pytest.mark.usefixtures("db")


@pytest.mark.parametrize(
    ("locale", "scheme", "titles", "buttons"),
    [
        (
            "en",
            "light",
            ["Stop these emails?", "You are unsubscribed", "You are subscribed again"],
            ["Unsubscribe", "Subscribe again"],
        ),
        (
            "pt",
            "dark",
            [
                "Deixar de receber estes e-mails?",
                "A sua subscrição foi cancelada",
                "A sua subscrição está de novo ativa",
            ],
            ["Cancelar subscrição", "Voltar a subscrever"],
        ),
    ],
)
def test_recipient_unsubscribes_and_subscribes_again(
    screen: Screen, locale: str, scheme: str, titles: list[str], buttons: list[str]
) -> None:
    page = screen.page
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    path = link(f"{'a-long-name-' * 5}@{'a-long-domain-' * 4}.example", locale=locale)
    page.goto(f"{screen.url}{path}")
    for title, button in zip(titles, [*buttons, buttons[0]], strict=True):
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        expect(page.get_by_role("button")).to_have_count(1)
        assert screen.fits()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name=button, exact=True)).to_be_focused()
        page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name=titles[1], exact=True)).to_be_visible()
    # The page's own policy permits its style.
    assert page.evaluate("getComputedStyle(document.querySelector('main')).borderRadius") == "14px"
