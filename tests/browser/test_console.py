"""The console in a browser: sign in, find a failed notification, and resend it."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from domain.states import Channel, DeliveryStatus
from domain.time import utc_now
from notifications.models import Notification
from tests.browser.accessibility import violations
from tests.browser.screen import Screen
from tests.support.clients.console import register_ada
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/notification/"
FAILED = "/admin/notifications/failednotification/"


def failed(**fields: Any) -> Any:
    fields["channels"] = (Channel.EMAIL, Channel.IN_APP)
    now = utc_now()
    return factories.settled(DeliveryStatus.FAILED, at=now, created_at=now, **fields)


def test_failure_is_found_and_resent_after_login(screen: Screen) -> None:
    document = failed(user_id="ada-7", entity_id="order-77")
    page = screen.page
    screen.log_in()
    heading = page.get_by_role("heading", name="Channels", exact=True)
    screen.shows(heading, page.locator("svg.spark").first)
    assert screen.fits()
    screen.choose("Failed deliveries")
    screen.shows(page.get_by_role("heading", name="Causes"))
    assert screen.fits()
    screen.reach(page.locator("#searchbar")).fill("order-77")
    page.press("#searchbar", "Enter")
    row = page.locator("#result_list tbody", has_text="ada-7")
    expect(row).to_have_count(1)
    screen.reach(row.locator("a").first).click()
    headline = page.locator(".headline h2")
    expect(headline).to_have_text("Email failed once: provider error (5xx). No more retries.")
    mail = page.frame_locator("iframe.mail-frame")
    screen.shows(mail.get_by_text("Your payment has arrived.", exact=True).last)
    screen.reach(page.get_by_text("Provider response")).click()
    screen.shows(page.locator("pre.json", has_text="503"))
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Resend")).click()
    heading = page.get_by_role("heading", name="Resend this notification?")
    screen.shows(heading, page.get_by_text("Resend: safe"))
    expect(page.get_by_label("Email")).to_be_checked()
    expect(page.get_by_label("In-app")).not_to_be_checked()
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Resend")).click()
    screen.shows(page.locator(".headline", has_text="Resent from"))
    new = Notification.objects.get(resent_from=document["_id"])
    assert page.url.endswith(f"{LIST}{new.pk}/change/")
    assert new.channels == ["email"]


def test_wrong_password_is_rejected(screen: Screen) -> None:
    screen.open("/admin/login/")
    screen.page.fill("#id_username", "maria")
    screen.page.fill("#id_password", "wrong")
    screen.page.click("button[type=submit]")
    screen.shows(screen.page.get_by_text("Wrong username or password."))
    assert screen.fits()


def test_selected_rows_are_retried(screen: Screen) -> None:
    documents = [failed() for _ in range(2)]
    page = screen.page
    screen.sign_in()
    screen.open(FAILED)
    boxes = page.locator("input.action-select")
    expect(boxes).to_have_count(2)
    for box in boxes.all():
        screen.reach(box).check()
    screen.reach(page.locator("select[name=action]")).select_option("retry_selected")
    screen.reach(page.get_by_role("button", name="Run")).click()
    screen.shows(page.get_by_role("heading", name="Retry 2 notifications?"))
    screen.reach(page.get_by_role("button", name="Retry failed channels")).click()
    screen.shows(page.get_by_text("2 notifications requeued."))
    assert {factories.read(d["_id"])["status"] for d in documents} == {"retrying"}


def test_list_is_filtered(screen: Screen) -> None:
    failed(user_id="ada-7")
    factories.accepted(created_at=utc_now(), user_id="bob-8")
    page = screen.page
    screen.sign_in()
    screen.open(LIST)
    rows = page.locator("#result_list tbody")
    expect(rows).to_have_count(2)
    screen.reach(page.locator("a", has_text=re.compile(r"^\s*Filters"))).click()
    page.select_option("#changelist-filter select[name=status]", "queued")
    page.select_option("#changelist-filter select[name=created_within]", "1h")
    screen.reach(page.get_by_role("button", name="Apply Filters")).click()
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("bob-8")
    assert screen.fits()


def test_command_palette_works_from_the_keyboard(screen: Screen) -> None:
    document = failed(user_id="ada-7")
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    for _ in screen.sizes():
        page.keyboard.press("Control+k")
        expect(page.locator("#search-input-command")).to_be_focused()
        page.keyboard.type("ada-7")
        results = page.locator("#command-results")
        expect(results).to_contain_text("ada-7", ignore_case=True)
        expect(results).to_be_in_viewport()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        page.wait_for_url(f"{screen.url}{LIST}{document['_id']}/change/")
        screen.wait_for_scripts()


def test_command_palette_opens_the_first_result_on_enter(screen: Screen) -> None:
    register_ada(name="Ada Lovelace")
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("nobody at all")
    expect(page.locator("#command-results")).to_contain_text("No results for nobody at all")
    page.keyboard.press("Enter")
    page.locator("#search-input-command").fill("lovelac")
    page.keyboard.type("e")
    expect(page.locator("#command-results [aria-selected=true]")).to_contain_text("Ada Lovelace")
    assert violations(page) == []
    page.keyboard.press("Enter")
    page.wait_for_url(f"{screen.url}/admin/recipients/recipient/ada/change/")
    assert screen.problems == []


def test_command_palette_opens_the_result_of_a_text_that_was_just_typed(screen: Screen) -> None:
    register_ada(name="Ada Lovelace")
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    page.locator(".open-search").click()
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("Lovelace")
    page.keyboard.press("Enter")
    page.wait_for_url(f"{screen.url}/admin/recipients/recipient/ada/change/")


def test_command_palette_keeps_and_returns_the_focus(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    button, field = page.locator(".open-search"), page.locator("#search-input-command")
    button.focus()
    page.keyboard.press("Enter")
    expect(field).to_be_focused()
    page.keyboard.press("Tab")
    expect(field).to_be_focused()
    page.keyboard.press("Escape")
    expect(field).to_be_hidden()
    expect(button).to_be_focused()


def test_command_palette_reports_a_failed_search(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    page.route("**/admin/search/**", lambda route: route.fulfill(status=503, body=""))
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("ada")
    expect(page.get_by_role("alert")).to_have_text("Search failed. Try again in a moment.")
    page.unroute("**/admin/search/**")
    page.keyboard.type("7")
    expect(page.locator("#command-results")).to_contain_text("No results for ada7")
    # The browser reports the refused request.
    assert all("503" in problem for problem in screen.problems)
    screen.problems.clear()


def test_command_palette_says_that_one_is_signed_out(screen: Screen) -> None:
    """https://github.com/Icinga/icinga-web/issues/117: the login form appeared in a panel."""
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    page.context.clear_cookies()
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("ada")
    told = "You are signed out. Reload the page to sign in."
    expect(page.locator("#command-results").get_by_role("alert")).to_have_text(told)
    expect(page.locator("input[type=password]")).to_have_count(0)


def test_command_palette_gets_the_focus_when_drawn_late(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    page.evaluate("() => { requestAnimationFrame = draw => setTimeout(draw, 200, 0) }")
    page.keyboard.press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()


def test_pages_fit_without_script_errors(screen: Screen) -> None:
    document = failed()
    screen.sign_in()
    for path in (
        *("access/apiclient/add/", "access/staffuser/add/", "auth/group/add/"),
        *("notifications/notificationtype/mfa_code/change/", "notifications/deliveryattempt/"),
        *("recipients/suppression/add/", "django_celery_beat/periodictask/add/"),
        *("admin/logentry/", "password_change/"),
        f"notifications/notification/{document['_id']}/change/",
    ):
        screen.open(f"/admin/{path}")
        screen.shows(screen.page.locator("h1"))
        assert screen.fits(), path
        assert screen.problems == [], path


def test_console_follows_the_dark_scheme(screen: Screen) -> None:
    shade = "element => getComputedStyle(element).backgroundColor"
    screen.sign_in()
    screen.open("/admin/")
    tile = screen.page.locator(".tile").first
    light = tile.evaluate(shade)
    screen.page.emulate_media(color_scheme="dark")
    screen.open("/admin/")
    expect(screen.page.locator("html")).to_have_class(re.compile(r"\bdark\b"))
    assert tile.evaluate(shade) != light
    assert screen.fits()
