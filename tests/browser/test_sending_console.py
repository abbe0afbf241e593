"""One message that a person sends from the console: from Home to the notification's page."""

from typing import Any

import pytest
from playwright.sync_api import expect

from domain.time import utc_now
from notifications.catalog import types
from notifyproject.db.collections import collection
from tests.browser.accessibility import check
from tests.browser.screen import Screen
from tests.support.clients.console import register_ada

pytestmark = pytest.mark.usefixtures("db")


@pytest.fixture(autouse=True)
def _type(db: None) -> None:
    types.store_type("order_shipped", {"console_send": True}, now=utc_now())
    types.invalidate_types()
    register_ada(name="Ada Lovelace", name_words=["ada", "lovelace"])


def sent() -> list[Any]:
    return list(collection("notifications").find())


def test_a_message_is_sent_in_six_actions_from_home(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Send a message")
    check(screen)
    screen.reach(page.get_by_role("link", name="Order shipped")).click()
    screen.wait_for_scripts()
    page.locator("#id_recipient").fill("Lovelace")
    expect(page.locator("#offered option")).to_have_attribute("value", "ada")
    page.get_by_role("textbox", name="Order").fill("1042")
    check(screen)
    screen.reach(page.get_by_role("button", name="Preview")).click()
    screen.shows(page.get_by_role("heading", name="To Ada Lovelace (ada)"))
    mail = page.frame_locator("iframe[name=mail]")
    expect(mail.locator("body")).to_contain_text("1042")
    check(screen)
    screen.reach(page.get_by_role("button", name="Send", exact=True)).click()
    screen.shows(page.get_by_text("Message accepted."), page.get_by_text("Sent by"))
    (document,) = sent()
    assert (document["user_id"], document["data"]) == ("ada", {"order": "1042"})


def test_a_message_is_sent_by_the_keyboard_alone(screen: Screen) -> None:
    page, press = screen.page, screen.page.keyboard.press
    screen.sign_in()
    screen.open("/admin/")
    press("Control+k")
    expect(page.locator("#search-input-command")).to_be_focused()
    page.keyboard.type("send a message")
    expect(page.get_by_role("option", name="Send a message")).to_be_visible()
    press("Enter")
    page.get_by_role("link", name="Order shipped").focus()
    press("Enter")
    screen.wait_for_scripts()
    page.locator("#id_recipient").focus()
    page.keyboard.type("ada")
    press("Tab")
    press("Enter")
    error = page.get_by_role("alert").get_by_text("Enter order.")
    expect(error).to_be_visible()
    expect(page.get_by_role("textbox", name="Order")).to_be_focused()
    assert page.locator("#id_recipient").input_value() == "ada", "nothing typed is lost"
    page.keyboard.type("7")
    press("Enter")
    page.get_by_role("button", name="Send", exact=True).focus()
    press("Enter")
    expect(page.get_by_text("Message accepted.")).to_be_visible()
    assert [document["data"] for document in sent()] == [{"order": "7"}]


def test_a_double_click_and_a_second_tab_send_one(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/send/order_shipped/?user_id=ada")
    page.get_by_role("textbox", name="Order").fill("9")
    form = page.url
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Send", exact=True).dblclick()
    expect(page.get_by_text("Message accepted.").first).to_be_visible()
    screen.page.goto(form)
    screen.wait_for_scripts()
    page.locator("#id_recipient").fill("ada")
    page.get_by_role("textbox", name="Order").fill("9")
    page.get_by_role("button", name="Preview").click()
    page.get_by_role("button", name="Send", exact=True).click()
    expect(page.get_by_text("Message accepted.").first).to_be_visible()
    assert len(sent()) == 1


def test_the_time_is_asked_for_a_later_message_only(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open("/admin/send/order_shipped/?user_id=ada")
    expect(page.get_by_label("Time", exact=True)).to_be_hidden()
    page.get_by_label("Send", exact=True).select_option("later")
    page.get_by_label("Time", exact=True).fill("2027-01-02T09:30")
    page.get_by_role("textbox", name="Order").fill("9")
    check(screen)
    page.get_by_role("button", name="Preview").click()
    screen.reach(page.get_by_role("button", name="Schedule")).click()
    screen.shows(page.get_by_text("Message scheduled."))
    assert f"{sent()[0]['scheduled_at']:%Y-%m-%d %H:%M}" == "2027-01-02 09:30"
