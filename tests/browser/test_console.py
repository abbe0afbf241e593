"""Lists and the command palette of the console in a browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import expect

from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
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


def test_command_palette_opens_the_selected_result(screen: Screen) -> None:
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
    ada = f"{screen.url}/admin/recipients/recipient/ada/change/"
    page.wait_for_url(ada)
    # Enter may come before the results of a text.
    screen.open("/admin/")
    page.locator(".open-search").click()
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("Lovelace")
    page.keyboard.press("Enter")
    page.wait_for_url(ada)


def test_command_palette_keeps_the_focus_and_reports_problems(screen: Screen) -> None:
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
    # It gets the focus also when it is drawn late.
    page.evaluate("() => { requestAnimationFrame = draw => setTimeout(draw, 200, 0) }")
    page.keyboard.press("Control+k")
    expect(field).to_be_focused()
    page.route("**/admin/search/**", lambda route: route.fulfill(status=503, body=""))
    page.keyboard.type("ada")
    results = page.locator("#command-results")
    expect(page.get_by_role("alert")).to_have_text("Search failed. Try again in a moment.")
    page.unroute("**/admin/search/**")
    page.keyboard.type("7")
    expect(results).to_contain_text("No results for ada7")
    # The browser reports the refused request.
    assert all("503" in problem for problem in screen.problems)
    screen.problems.clear()
    # https://github.com/Icinga/icinga-web/issues/117: the login form appeared in a panel.
    page.context.clear_cookies()
    page.keyboard.type("8")
    told = "You are signed out. Reload the page to sign in."
    expect(results.get_by_role("alert")).to_have_text(told)
    expect(page.locator("input[type=password]")).to_have_count(0)
