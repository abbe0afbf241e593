"""Templates of a type in a browser: previewed, edited, published."""

import pytest
from playwright.sync_api import expect

from domain.time import utc_now
from notifications.catalog import types
from notifications.content import templates
from tests.browser.screen import Screen

pytestmark = pytest.mark.usefixtures("db")

TYPE = "/admin/notifications/notificationtype/payment_confirmed/"


def test_template_is_previewed_edited_and_published(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Types")
    screen.reach(page.get_by_role("link", name="Payment confirmed").first).click()
    mail = page.frame_locator("iframe.mail-frame")
    screen.shows(mail.get_by_text("Your payment has arrived.", exact=False).last)
    expect(page.locator(".push-variants")).to_contain_text("Your payment of 49.90 has arrived.")
    expect(page.locator(".chat-bubble strong")).to_have_text("49.90")
    expect(page.locator(".inbox-card")).to_contain_text("Your order number is 1001.")
    assert screen.fits()
    screen.reach(page.get_by_role("link", name="Portuguese")).click()
    expect(page.locator(".push-variants")).to_contain_text("Recebemos o seu pagamento de 49.90.")
    screen.reach(page.get_by_role("link", name="New version")).click()
    assert screen.fits()
    page.get_by_label("Push", exact=True).first.fill("We have {{ tip }}.")
    screen.reach(page.get_by_role("button", name="Save version")).click()
    screen.shows(page.get_by_text("Line 1: The type's example data has no 'tip'."))
    assert screen.fits()
    page.get_by_label("Push", exact=True).first.fill("We have {{ amount }}.")
    page.get_by_label("Changes").fill("A shorter push")
    page.get_by_role("button", name="Save version").click()
    screen.shows(page.get_by_role("heading", name="Version 1: A shorter push"))
    expect(page.locator(".push-variants")).to_contain_text("We have 49.90.")
    assert types.get_template_version("payment_confirmed") == 0
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Publish")).click()
    screen.shows(page.get_by_text("Version 1 published. New notifications use it."))
    assert types.get_template_version("payment_confirmed") == 1
    version = templates.get_version(type_slug="payment_confirmed", number=1)
    assert version is not None
    assert version.created_by == "staff:maria"
    assert set(version.parts) == {"default", "pt"}


def test_language_is_added(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open(f"{TYPE}templates/new/")
    screen.reach(page.get_by_role("heading", name="New language")).click()
    screen.reach(page.get_by_label("Language code")).fill("pt-BR")
    section = page.locator("details.language").last
    screen.reach(section.get_by_label("Subject", exact=True)).fill("Pago")
    screen.reach(page.get_by_role("button", name="Save version")).click()
    screen.shows(page.get_by_role("link", name="Brazilian Portuguese"))
    version = templates.get_version(type_slug="payment_confirmed", number=1)
    assert version is not None
    assert version.parts["pt-BR"] == {"subject": "Pago"}


def test_template_scripts_do_not_run_in_the_console(screen: Screen) -> None:
    """The frame of the email runs no script, and the page escapes the template."""
    script = "<script>document.title = 'run'</script><img src=x onerror=\"document.title='run'\">"
    parts = {"default": {"subject": script, "body": script, "email_html": script, "push": script}}
    templates.create_version(
        type_slug="payment_confirmed", parts=parts, note=script, created_by="app:x", now=utc_now()
    )
    screen.sign_in()
    screen.open(f"{TYPE}templates/1/")
    expect(screen.page.locator(".push-variants")).to_contain_text("<script>")
    expect(screen.page.locator(".inbox-card")).to_contain_text("<script>")
    assert screen.page.title() != "run"
    # The browser reports that it refused.
    refused = [p for p in screen.problems if "sandboxed" in p or "Content Security Policy" in p]
    assert refused
    screen.problems.clear()
