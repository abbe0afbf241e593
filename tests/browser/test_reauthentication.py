"""Re-authentication and the form of a new account in a browser, used with the keyboard."""

import pytest
from django.contrib.auth.models import Group
from django.contrib.sessions.models import Session
from playwright.sync_api import expect

from access.models import StaffUser
from access.staff.reauthentication import SESSION_KEY, WINDOW
from tests.browser.accessibility import violations
from tests.browser.screen import PASSWORD, Screen
from tests.support.clients.console import register_ada

pytestmark = pytest.mark.usefixtures("db")

ADA = "/admin/recipients/recipient/ada/change/"


def let_window_pass() -> None:
    """Make the session's last password older, as if the time had passed."""
    session = Session.objects.get()
    data = session.get_decoded()
    data[SESSION_KEY] -= WINDOW.total_seconds()
    session.session_data = Session.get_session_store_class()().encode(data)
    session.save()


def test_password_is_asked_again_and_the_action_runs(screen: Screen) -> None:
    register_ada()
    page = screen.page
    screen.sign_in()
    let_window_pass()
    screen.open(ADA)
    confirmation = page.get_by_label("User ID")
    confirmation.last.fill("ada")
    page.get_by_role("button", name="Erase").last.click()
    screen.shows(page.get_by_role("heading", name="Confirm your identity"))
    assert screen.fits()
    assert violations(page) == []
    expect(page.get_by_label("Password")).to_be_focused()
    page.keyboard.type("wrong")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Wrong password, or wrong or used code."))
    assert screen.fits()
    expect(page.get_by_role("link", name="Cancel")).to_have_attribute("href", f"{screen.url}{ADA}")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    page.wait_for_url(f"{screen.url}/admin/recipients/recipient/")
    screen.shows(page.get_by_text("ada erased"))


def test_new_account_gets_a_role_and_signs_in(screen: Screen) -> None:
    Group.objects.create(name="helpers")
    page = screen.page
    screen.sign_in()
    screen.open("/admin/access/staffuser/add/")
    assert screen.fits()
    page.get_by_label("Username").fill("ines")
    page.fill("#id_password1", PASSWORD)
    page.fill("#id_password2", PASSWORD)
    page.get_by_label("helpers").check()
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was added successfully")).to_be_visible()
    screen.open("/admin/access/staffuser/")
    screen.shows(page.locator("#result_list").get_by_text("helpers").first)
    assert screen.fits()
    assert StaffUser.objects.get(username="ines").is_staff
    page.context.clear_cookies()
    screen.log_in("ines")
