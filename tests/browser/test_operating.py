"""An operator resends a failed notification; support staff see and do less."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import call_command
from playwright.sync_api import expect

from access.models import StaffUser
from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.models import Notification
from notifications.store import leases
from tests.browser.accessibility import violations
from tests.browser.screen import PASSWORD, Screen
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

LIST = "/admin/notifications/notification/"
ADA = "ada@example.com"
S = DeliveryStatus


def make_member(username: str, role: str) -> None:
    call_command("create_roles", verbosity=0)
    user = StaffUser.objects.create_user(username, password=PASSWORD, is_staff=True)
    user.groups.add(Group.objects.get(name=role))


def failed(user_id: str) -> Any:
    now = utc_now()
    fields = {"user_id": user_id, "channels": (Channel.EMAIL, Channel.IN_APP)}
    return factories.settled(S.FAILED, at=now, created_at=now, entity_id="order-77", **fields)


def deliver(notification_id: Any) -> None:
    """Send an email as a worker does, and record its delivery receipt."""
    now = utc_now()
    begun = factories.start(factories.claim(notification_id, at=now), at=now)
    leases.settle([factories.settlement(begun, S.SENT, at=now)], now=now)
    assert factories.arrive(notification_id, at=now)


def test_operator_finds_and_resends_a_failure(screen: Screen) -> None:
    make_member("olga", "operator")
    failed("bob-8")
    document = failed("ada-7")
    page = screen.page
    screen.log_in("olga")
    screen.choose("Failed deliveries")
    screen.shows(page.get_by_role("heading", name="Causes"))
    assert screen.fits()
    assert violations(page) == []
    page.fill("#searchbar", "ada-7")
    page.press("#searchbar", "Enter")
    row = page.locator("#result_list tbody", has_text="ada-7")
    expect(row).to_have_count(1)
    screen.reach(row.locator("a").first).click()
    assert f"{LIST}{document['_id']}/change/" in page.url
    expect(page.locator(".headline h2")).to_contain_text("Email failed once: provider error (5xx).")
    mail = page.frame_locator("iframe.mail-frame")
    screen.shows(mail.get_by_text("Your payment has arrived.", exact=True).last)
    screen.reach(page.get_by_text("Provider response")).click()
    screen.shows(page.get_by_text("Resend: safe"), page.locator("pre.json", has_text="503"))
    assert ADA not in page.content()
    assert screen.fits()
    assert violations(page) == []
    screen.reach(page.get_by_role("button", name="Resend")).click()
    screen.shows(page.get_by_role("heading", name="Resend this notification?"))
    expect(page.get_by_label("Email")).to_be_checked()
    expect(page.get_by_label("In-app")).not_to_be_checked()
    assert violations(page) == []
    screen.reach(page.get_by_role("button", name="Resend")).click()
    headline = page.locator(".headline h2")
    expect(headline).to_contain_text("Email queued for")
    new = Notification.objects.get(resent_from=document["_id"])
    deliver(new.pk)
    expect(headline).to_have_text("Email delivered.")
    screen.shows(page.locator(".headline", has_text="Resent from"))


def test_operator_reveals_an_address(screen: Screen) -> None:
    make_member("olga", "operator")
    document = failed("ada-7")
    screen.sign_in("olga")
    screen.open(f"{LIST}{document['_id']}/change/")
    page = screen.page
    screen.reach(page.get_by_role("button", name="Reveal addresses")).click()
    screen.shows(page.get_by_text(ADA))
    page.goto(page.url.replace("reveal", "change"))
    expect(page.get_by_text("Revealed addresses.")).to_be_visible()
    assert ADA not in page.content()


def test_support_sees_neither_addresses_nor_operator_actions(screen: Screen) -> None:
    make_member("sam", "support")
    now = utc_now()
    later = now + timedelta(hours=2)
    waiting = factories.accepted(created_at=now, send_at=later, scheduled_at=later, user_id="ada-7")
    document = failed("ada-7")
    page = screen.page
    screen.sign_in("sam")
    paths = (
        "/admin/notifications/failednotification/",
        "/admin/notifications/waitingnotification/",
        f"{LIST}?q={ADA}",
        "/admin/recipients/recipient/ada-7/change/",
        f"{LIST}{waiting['_id']}/change/",
        f"{LIST}{document['_id']}/change/",
    )
    for path in paths:
        screen.open(path)
        assert screen.fits(), path
        assert ADA not in page.content().replace(f'value="{ADA}"', ""), path
        assert page.locator("input.action-select").count() == 0, path
        assert violations(page) == [], path
    buttons = page.locator(".headline .buttons button")
    expect(buttons).to_have_count(1)
    expect(buttons).to_have_text("Resend")
    menu = page.locator("#nav-sidebar-apps")
    expect(menu.get_by_role("link", name="Failed deliveries")).to_have_count(1)
    for entry in ("Staff", "Roles", "API clients", "Types", "Audit log"):
        expect(menu.get_by_role("link", name=re.compile(f"^{entry}$"))).to_have_count(0)
