"""The outbox in a browser, also at the width of a phone and in dark mode."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect, sync_playwright

from notifyproject.stack import prerequisites
from tests.support.clients.sandbox import Box, Receiver, mail
from tests.support.providers.sandbox_fcm import FCMClient
from tests.support.providers.sandbox_whatsapp import WhatsAppClient, message, text
from tests.support.waiting import LIMIT

HOSTILE = "<script>document.title='taken over'</script><p>Still here</p>"
WIDTH = 390


@pytest.fixture(scope="module")
def page() -> Iterator[Page]:
    """Open a Chromium page once for all tests, each of which has its own sandbox."""
    prerequisites.check_playwright()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=prerequisites.browser(),
            args=["--no-sandbox", "--headless", "--disable-background-networking"],
        )
        page = browser.new_page(viewport={"width": WIDTH, "height": 844}, color_scheme="dark")
        page.set_default_timeout(LIMIT * 1000)
        yield page
        browser.close()


def test_new_message_appears_without_redrawing_the_others(
    page: Page, box: Box, receiver: Receiver
) -> None:
    box.send(mail("no-events@example.com", subject="The first"))
    page.goto(box.sandbox.url)
    page.focus(".row")
    page.evaluate("window.first = document.querySelector('.row')")
    box.send(mail(subject="The second"))
    expect(page.locator(".row").first).to_contain_text("The second")
    expect(page.locator(".row").first).to_contain_text("delivered")
    expect(page.locator(".row")).to_have_count(2)
    assert page.evaluate("window.first === document.querySelectorAll('.row')[1]")
    assert page.evaluate("window.first === document.activeElement")


def test_new_event_appears_and_opened_details_stay_open(page: Page, box: Box) -> None:
    box.send(mail("no-events@example.com"))
    box.control("POST", "/events", {"reference": "ref-1", "kind": "processed"})
    page.goto(f"{box.sandbox.url}/messages/1")
    page.evaluate("window.frame = document.querySelector('iframe')")
    page.click(".events summary")
    box.control("POST", "/events", {"reference": "ref-1", "kind": "click"})
    expect(page.locator(".events li")).to_have_count(2)
    expect(page.locator(".chips").first).to_contain_text("click")
    expect(page.locator(".events pre").first).to_be_visible()
    assert page.evaluate("window.frame === document.querySelector('iframe')")


def test_hostile_mail_runs_nothing(page: Page, box: Box) -> None:
    content = [{"type": "text/html", "value": HOSTILE}]
    box.send(mail("no-events@example.com", subject=HOSTILE, content=content))
    for path in ("/", "/messages/1", "/messages/1?view=request", "/messages/1/html"):
        page.goto(box.sandbox.url + path)
        if path == "/messages/1":
            expect(page.frame_locator("iframe").locator("p")).to_have_text("Still here")
        assert page.title() != "taken over"


def test_pages_fit_a_phone(page: Page, box: Box) -> None:
    box.send(mail("no-events@example.com", subject="A long subject " * 20))
    box.send(mail("x" * 60 + "@example.com", reference="y" * 200, text="z" * 500))
    box.send(mail("invalid@example.com"))
    for path in ("/", "/messages/1", "/messages/2?view=request", "/messages/3", "/recipients"):
        page.goto(box.sandbox.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") == WIDTH


def test_pages_of_pushes_and_chats_fit_a_phone(page: Page, box: Box) -> None:
    chats, pushes = WhatsAppClient(box=box), FCMClient(box=box)
    link = "https://example.com/" + "x" * 300
    chats.post(text(text={"body": "y" * 500}))
    chats.post(message("image", {"id": "1", "caption": "z" * 500}))
    pushes.send("device-" + "t" * 200, data={"reference": "r" * 200, "deep_link": link})
    pushes.send("unregistered-" + "t" * 200)
    for path in ("/", "/?channel=whatsapp", *(f"/messages/{value}" for value in (1, 2, 4, 6))):
        page.goto(box.sandbox.url + path)
        assert page.evaluate("document.documentElement.scrollWidth") == WIDTH
        heights = page.evaluate(
            "[...document.querySelectorAll('.filter')].map(e => e.offsetHeight)"
        )
        assert all(height < 60 for height in heights)


def test_list_of_a_channel_shows_only_its_new_messages(page: Page, box: Box) -> None:
    pushes = FCMClient(box=box)
    box.send(mail("no-events@example.com"))
    page.goto(box.sandbox.url)
    page.get_by_role("link", name="Push", exact=True).click()
    expect(page.locator(".row")).to_have_count(0)
    pushes.send()
    expect(page.locator(".row")).to_have_count(1)
    expect(page.locator(".row .icon")).to_have_attribute("aria-label", "push")


def test_button_fixes_a_failing_recipient(page: Page, box: Box) -> None:
    assert WhatsAppClient(box=box).send("+447700900500").status == 500
    page.goto(f"{box.sandbox.url}/messages/1")
    page.get_by_role("button", name="Fix it: accept from now on").click()
    expect(page.get_by_role("button", name="Break it again")).to_be_visible()
    assert WhatsAppClient(box=box).send("+447700900500").status == 200
