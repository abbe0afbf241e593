"""Every page of the console is accessible, works under its policy, and is usable on a phone.

A Content-Security-Policy refuses inline code, which is an error in the browser's console.
"""

import os
from pathlib import Path
from typing import Literal

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group
from django.test import Client

from access.models import StaffUser
from domain.time import utc_now
from notifications.models import Notification
from tests.browser.accessibility import violations
from tests.browser.screen import Screen
from tests.support import console_urls
from tests.support.clients.console import signed_in
from tests.support.factories.demo_day import store_day
from tests.support.factories.one_of_each import store_one_of_each

pytestmark = pytest.mark.usefixtures("db", "broker")

IS_WHOLE = "ACCESSIBILITY_WHOLE" in os.environ
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
SAMPLE_OF, SAMPLE = 8, (0, 3)
"""Of eight pages, axe checks the first in light and the fourth in dark.

``make accessibility`` checks all in both.
"""
ALWAYS = frozenset(
    {
        *("/admin/alerts/", "/admin/analytics/incident/"),
        *(
            "/admin/django_celery_beat/intervalschedule/",
            "/admin/django_celery_beat/periodictask/add/",
        ),
    }
)
"""Pages of the console's own making that axe checks in each run."""
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


def store_pages(client: Client) -> list[str]:
    """Store a document for every page, and return the paths of the pages."""
    store_day(now=utc_now(), busy=2, waves=4)
    store_one_of_each(now=utc_now())
    Group.objects.create(name="Helpers")
    return [path for path in (*SIGN_IN_PAGES, *console_urls.page_paths()) if _is_page(client, path)]


def _is_page(client: Client, path: str) -> bool:
    response = client.get(path)
    return response.status_code == 200 and b"<main" in response.content


def test_every_page_obeys_its_policy_and_has_no_violation(
    screen: Screen, subtests: pytest.Subtests
) -> None:
    paths = store_pages(signed_in(StaffUser.objects.get(username="maria")))
    assert len(paths) > len(admin.site._registry) * 2
    screen.sign_in()
    for number, path in enumerate(paths):
        for scheme in SCHEMES if IS_WHOLE else SCHEMES[number % 2 :][:1]:
            screen.page.emulate_media(color_scheme=scheme)
            screen.open(path)
            screen.page.wait_for_load_state("load")
            with subtests.test(page=path, scheme=scheme):
                assert screen.problems == []
                assert set(screen.page.evaluate(ICON_NAMES)) <= ICONS, "in static/console/icons.txt"
            if IS_WHOLE or number % SAMPLE_OF in SAMPLE or path in ALWAYS:
                check_rules(screen, subtests, page=path, scheme=scheme)


def check_rules(screen: Screen, subtests: pytest.Subtests, **page: str) -> None:
    for size in screen.sizes():
        with subtests.test(**page, size=size):
            assert violations(screen.page) == []
    with subtests.test(**page):
        assert screen.fits()


def test_controls_are_at_least_24_px_large(screen: Screen, subtests: pytest.Subtests) -> None:
    store_day(now=utc_now(), busy=2, waves=4)
    store_one_of_each(now=utc_now())
    failed = Notification.objects.filter(status="failed").first()
    assert failed is not None
    screen.sign_in()
    for path in (
        *("/admin/", "/admin/notifications/failednotification/"),
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
