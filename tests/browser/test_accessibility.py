"""Every page of the console is accessible, works under its policy, and is usable on a phone.

A Content-Security-Policy refuses inline code, which is an error in the browser's console.
"""

from pathlib import Path
from typing import Literal

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client

from access.models import StaffUser
from domain.time import utc_now
from notifications.models import Notification
from tests.browser.accessibility import SCHEMES, violations
from tests.browser.screen import Screen
from tests.support import console_urls
from tests.support.clients.console import signed_in
from tests.support.factories.demo_day import store_day
from tests.support.factories.one_of_each import store_one_of_each
from tests.support.samples import IS_WHOLE, sampled

pytestmark = pytest.mark.usefixtures("db", "broker")

SAMPLE, MORE = 8, 4
"""``make test`` checks one of eight pages. ``make slow`` opens all, and axe checks one of four.

Both take others in each run. ``make accessibility`` checks all in both schemes.
"""
SMALL_CONTROLS = """
() => {
  const controls = "a[href], button, input:not([type=hidden]), select, summary, [role=button]";
  const misses = (one) => {
    one.scrollIntoView({ block: "center" });
    const box = one.getBoundingClientRect();
    const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
    return [[-11, 0], [11, 0], [0, -11], [0, 11]].some(([right, down]) => {
      const hit = document.elementFromPoint(x + right, y + down);
      return !one.contains(hit) && hit?.closest("label")?.control !== one;
    });
  };
  return [...document.querySelectorAll(controls)]
    .filter((one) => one.checkVisibility({ visibilityProperty: true, opacityProperty: true }))
    .filter((one) => !one.matches(".skip-link"))
    .filter((one) => getComputedStyle(one).display !== "inline")
    .filter(misses)
    .map((one) => one.outerHTML.slice(0, 200));
}
"""
"""The visible controls that a click 11 px beside the center misses, without links in a text."""
ICONS = frozenset(Path("static/console/icons.txt").read_text().split())
ICON_NAMES = """
() => [...document.querySelectorAll(".material-symbols-outlined")]
  .map((one) => one.innerText.trim())
  .filter((name) => name !== "")
"""
SIGN_IN_PAGES = ("/admin/login/", "/admin/second-factor/", "/admin/second-factor/set-up/")


@pytest.fixture
def client(screen: Screen) -> Client:
    """Return a client that is signed in as the window is, with a document for every page."""
    store_day(now=utc_now(), busy=2, waves=4)
    store_one_of_each(now=utc_now())
    Group.objects.create(name="Helpers")
    screen.sign_in()
    return signed_in(StaffUser.objects.get(username="maria"))


def paths() -> list[str]:
    return [*SIGN_IN_PAGES, *console_urls.page_paths()]


def is_page(client: Client, path: str) -> bool:
    response = client.get(path)
    return response.status_code == 200 and b"<main" in response.content


def test_page_obeys_its_policy_and_has_no_violation(
    screen: Screen, client: Client, subtests: pytest.Subtests
) -> None:
    for number, path in enumerate(sampled(paths(), each=SAMPLE)):
        if is_page(client, path):
            open_page(screen, subtests, page=path, scheme=SCHEMES[number % 2])
            check_rules(screen, subtests, page=path, scheme=SCHEMES[number % 2])


@pytest.mark.slow
def test_every_page_obeys_its_policy_and_has_no_violation(
    screen: Screen, client: Client, subtests: pytest.Subtests
) -> None:
    pages = [path for path in paths() if is_page(client, path)]
    assert len(pages) > len(admin.site._registry) * 2
    checked = sampled(pages, each=MORE)
    for number, path in enumerate(pages):
        for scheme in SCHEMES if IS_WHOLE else SCHEMES[number % 2 :][:1]:
            open_page(screen, subtests, page=path, scheme=scheme)
            if path in checked:
                check_rules(screen, subtests, page=path, scheme=scheme)


def open_page(
    screen: Screen, subtests: pytest.Subtests, *, page: str, scheme: Literal["light", "dark"]
) -> None:
    screen.page.emulate_media(color_scheme=scheme)
    screen.open(page)
    screen.page.wait_for_load_state("load")
    with subtests.test(page=page, scheme=scheme):
        assert screen.problems == []
        assert set(screen.page.evaluate(ICON_NAMES)) <= ICONS, "in static/console/icons.txt"
        assert screen.fits()


def check_rules(screen: Screen, subtests: pytest.Subtests, **page: str) -> None:
    for size in screen.sizes():
        with subtests.test(**page, size=size):
            assert violations(screen.page) == []


def test_controls_are_at_least_24_px_large(screen: Screen, subtests: pytest.Subtests) -> None:
    store_day(now=utc_now(), busy=2, waves=4)
    store_one_of_each(now=utc_now())
    failed = Notification.objects.filter(status="failed").first()
    assert failed is not None
    screen.sign_in()
    for path in (
        "/admin/",
        "/admin/notifications/failednotification/",
        f"/admin/notifications/notification/{failed.pk}/change/",
        "/admin/notifications/notificationtype/mfa_5Fcode/change/",
    ):
        screen.open(path)
        for size in screen.sizes():
            with subtests.test(page=path, size=size):
                assert screen.page.evaluate(SMALL_CONTROLS) == []


def test_several_rows_fit_on_a_phone(screen: Screen) -> None:
    store_day(now=utc_now(), busy=2, waves=4)
    screen.sign_in()
    screen.resize("phone")
    for path in ("/admin/notifications/notification/", "/admin/devices/device/"):
        screen.open(path)
        rows = screen.page.locator("#result_list tr.data-row")
        boxes = [rows.nth(number).bounding_box() for number in range(4)]
        assert all(box is not None and box["height"] < 160 for box in boxes), boxes
        cut = "cells => cells.filter(cell => cell.scrollWidth > cell.clientWidth + 1).length"
        assert rows.locator("td, th").evaluate_all(cut) == 0
        label = "cell => getComputedStyle(cell, '::before').content"
        dates = rows.first.locator(":is(td, th):has(time)")
        assert dates.first.evaluate(label) != "none", "dates have a label"
