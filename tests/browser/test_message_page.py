"""Why a recipient didn't get a message: find it, correct the address, resend, see it delivered."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts.processor import apply_receipts
from notifications.store import leases
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind
from recipients import registration
from tests.browser.accessibility import check
from tests.browser.screen import SIZES, Screen
from tests.browser.test_operating import make_member
from tests.support.factories import notifications as factories
from tests.support.samples import SEED

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/notification/"
ADA, HOME = "ada@example.com", "ada@home.example"
MAX_ACTIONS = 8
S, K = DeliveryStatus, ReceiptKind


@dataclass
class Keyboard:
    """Someone who uses only the keyboard. What they decide to do is counted."""

    page: Page
    actions: list[str] = field(default_factory=list)

    def do(self, action: str, *keys: str) -> None:
        self.actions.append(action)
        for key in keys:
            self.page.keyboard.press(key)

    def type(self, text: str) -> None:
        self.actions.append(f"type {text}")
        self.page.keyboard.type(text)

    def go_to(self, selector: str, *, limit: int = 80) -> None:
        """Press Tab until an element has the focus. Moving isn't counted as an action."""
        for _ in range(limit):
            self.page.keyboard.press("Tab")
            if self.page.evaluate("wanted => document.activeElement.matches(wanted)", selector):
                return
        raise AssertionError(f"not reached by the keyboard: {selector}")


def bounced() -> Any:
    """Store an email to Ada that bounced, as the provider's receipt reports it."""
    now = utc_now()
    profile = registration.RecipientProfile(user_id="ada.lovelace", email=ADA, name="Ada")
    registration.register(profile, now=now)
    document = factories.settled(S.SENT, at=now, created_at=now, user_id="ada.lovelace")
    report(document, K.BOUNCED, reason="550 5.1.1 The email account does not exist")
    return document


def report(document: Any, kind: ReceiptKind, *, reason: str | None = None) -> None:
    receipt = Receipt(
        reference=f"{document['_id']}.email.1",
        provider_id="sg-1",
        kind=kind,
        at=utc_now(),
        reason=reason,
        event_id=f"{document['_id']}-{kind}",
        address=None if kind is K.DELIVERED else ADA,
    )
    apply_receipts([receipt], provider="sendgrid", now=utc_now())


def send(document: Any) -> None:
    now = utc_now()
    begun = factories.start(factories.claim(document["_id"], at=now), at=now)
    leases.settle([factories.settlement(begun, S.SENT, at=now)], now=now)


def sign_in_support(screen: Screen) -> None:
    make_member("sam", "support")
    screen.sign_in("sam")


def test_support_corrects_a_bounced_address_by_keyboard_alone(screen: Screen) -> None:
    original = bounced()
    sign_in_support(screen)
    # Another run has the other size.
    screen.resize(sorted(SIZES)[SEED % 2])
    screen.open("/admin/")
    page, keyboard = screen.page, Keyboard(screen.page)

    keyboard.do("open the search", "Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    keyboard.type("ada.lovelace")
    expect(page.locator("#command-results-list a").first).to_be_visible()
    keyboard.do("open the notification", "ArrowDown", "Enter")

    headline = page.locator("#state h2")
    expect(headline).to_have_text("Email bounced: hard bounce. No more retries.")
    expect(page.locator(".next-step")).to_contain_text("Correct the address and resend.")
    expect(page.locator(".events")).to_contain_text("550 5.1.1 The email account does not exist")
    keyboard.go_to("input[name=address]")
    keyboard.type(HOME)
    keyboard.do("correct", "Enter")

    expect(page.get_by_text("Resend: safe")).to_be_visible()
    expect(page.get_by_label("Also correct it in the recipient's profile")).to_be_checked()
    keyboard.go_to("form.console button[type=submit]")
    keyboard.do("confirm", "Enter")

    expect(headline).to_contain_text("Email queued for")
    (resent,) = collection("notifications").find({"resent_from": original["_id"]})
    send(resent)
    expect(headline).to_contain_text("Email sent by SendGrid")
    report(resent, K.DELIVERED)
    expect(headline).to_have_text("Email delivered.")
    expect(page.locator(".events li").last).to_contain_text("Delivered")
    # Everything has ended: the page refreshes no more.
    expect(page.locator("#state[hx-trigger]")).to_have_count(0)
    assert len(keyboard.actions) <= MAX_ACTIONS, keyboard.actions
    assert resent["recipient"]["email"] == HOME
    profile = registration.get("ada.lovelace")
    assert profile is not None
    assert profile["email"] == HOME


def each_page(screen: Screen) -> list[Callable[[], None]]:
    """Return the pages of a bounced email, and how to open each."""
    document = bounced()
    url = f"{LIST}{document['_id']}/change/"
    page = screen.page

    def correct() -> None:
        screen.open(url)
        page.fill("input[name=address]", HOME)
        page.get_by_role("button", name="Correct and resend").click()
        expect(page.get_by_text("Resend: safe")).to_be_visible()

    def lift_and_resend() -> None:
        screen.open(url)
        page.get_by_role("button", name="Lift suppression and resend").click()
        expect(page.get_by_label("Reason")).to_be_visible()

    def lift() -> None:
        screen.open(url)
        page.get_by_role("link", name="Lift", exact=True).click()
        expect(page.get_by_label("Reason")).to_be_visible()

    return [lambda: screen.open(url), correct, lift_and_resend, lift]


def test_pages_are_accessible_and_fit(screen: Screen) -> None:
    screen.sign_in()
    for visit in each_page(screen):
        visit()
        check(screen)


def test_problem_of_the_refresh_is_reported(screen: Screen) -> None:
    now = utc_now()
    document = factories.settled(S.SENT, at=now, created_at=now)
    screen.sign_in()
    screen.open(f"{LIST}{document['_id']}/change/")
    page, problem = screen.page, screen.page.locator("#live-problem")
    expect(problem).to_be_hidden()

    def refuse(route: Route) -> None:
        route.fulfill(status=503, body="")

    page.route("**/refresh/**", refuse)
    expect(problem).to_contain_text("Couldn't refresh at")
    page.unroute("**/refresh/**")
    expect(problem).to_be_hidden()
    # The browser reports each refused request.
    assert all("503" in problem for problem in screen.problems)
    screen.problems.clear()
    signed_in = page.context.cookies()
    page.context.clear_cookies()
    expect(problem).to_contain_text("you are signed out")
    expect(page.locator("#state h2")).to_be_visible()
    page.context.add_cookies(signed_in)
    screen.open(f"{LIST}{document['_id']}/change/")
    report(document, K.DELIVERED)
    expect(page.locator("#state h2")).to_have_text("Email delivered.")
