"""Every page of the console is accessible: by axe in light and dark, and by keyboard alone."""

import os

import pytest
from django.contrib import admin
from django.urls import reverse
from playwright.sync_api import expect

from domain.time import utc_now
from tests.browser.accessibility import violations
from tests.browser.screen import Screen
from tests.support.factories.demo_day import store_day

pytestmark = pytest.mark.usefixtures("db")

SAMPLE = 4
"""Without AXE_ALL, one page of this many is tested in each scheme."""
FAILED = "/admin/notifications/failednotification/"


def pages() -> list[str]:
    """Return the URLs of all lists, add forms, and the first object of each list."""
    found = ["/admin/", "/admin/password_change/", "/admin/second-factor/"]
    found.append(reverse("admin:notifications_notificationtype_new_version", args=["mfa_code"]))
    for model, page in sorted(admin.site._registry.items(), key=lambda one: one[0]._meta.label):
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        found.append(reverse(f"{name}_changelist"))
        if type(page).has_add_permission.__name__ != "never":
            found.append(reverse(f"{name}_add"))
        first = model._default_manager.values_list("pk", flat=True).first()
        if first is not None and page.list_display_links is not None:
            found.append(reverse(f"{name}_change", args=[admin.utils.quote(first)]))
    return found


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_have_no_violation(screen: Screen, subtests: pytest.Subtests, scheme: str) -> None:
    store_day(now=utc_now(), busy=2, waves=4)
    screen.sign_in()
    screen.page.emulate_media(color_scheme=scheme)
    every = pages()
    sample = every[(scheme == "dark") * 2 :: SAMPLE]
    for path in every if os.environ.get("AXE_ALL") else sample:
        with subtests.test(page=path):
            screen.open(path)
            screen.page.wait_for_load_state("load")
            assert violations(screen.page) == []
            assert screen.problems == []


def test_controls_are_reached_by_keyboard(screen: Screen) -> None:
    page = screen.page
    screen.sign_in()
    screen.open(FAILED)
    page.keyboard.press("Tab")
    expect(page.locator(".skip-link")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()
    page.get_by_role("button", name="Filters").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#changelist-filter")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#changelist-filter")).to_be_hidden()
    account = page.locator("#nav-sidebar-inner nav[aria-label=Account] + [role=button]")
    account.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("link", name="Change password")).to_be_visible()
    expect(account).to_have_attribute("aria-expanded", "true")
    group = page.get_by_role("button", name="Task schedules")
    group.focus()
    page.keyboard.press(" ")
    expect(page.locator("#nav-sidebar-apps").get_by_text("Crontabs")).to_be_visible()
    screen.resize("phone")
    screen.open(FAILED)
    page.get_by_role("button", name="Show or hide menu").locator("visible=true").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#nav-sidebar")).to_be_visible()


def test_several_rows_fit_on_a_phone(screen: Screen) -> None:
    store_day(now=utc_now(), busy=2, waves=4)
    screen.sign_in()
    screen.resize("phone")
    for path in ("/admin/notifications/notification/", "/admin/devices/device/"):
        screen.open(path)
        rows = screen.page.locator("#result_list tr.data-row")
        heights = [rows.nth(number).bounding_box()["height"] for number in range(4)]
        assert max(heights) < 160, heights
        cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
        assert rows.locator("td, th").evaluate_all(cut) == 0
        label = "cell => getComputedStyle(cell, '::before').content"
    assert rows.first.locator(":is(td, th):has(time)").first.evaluate(label) != "none", (
        "dates have a label"
    )
