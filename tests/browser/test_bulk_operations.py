"""A bulk retry of failures with one cause in a browser, from the list to the result."""

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
from bson import ObjectId
from playwright.sync_api import Locator, expect

from domain.channels import Channel
from domain.states import DeliveryStatus
from domain.time import utc_now
from monitoring import incidents
from monitoring.alert_rules import add_missing_rules, detect, enabled_rules
from notifications.bulk import runner, trial
from notifications.store import acceptance, leases
from notifyproject.db.collections import collection
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db")

FAILED = "/admin/notifications/failednotification/"
COUNT, BATCH = 60, 20


@pytest.fixture(autouse=True)
def _no_trial(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is sent here, so the first deliveries would never tell whether to go on."""
    monkeypatch.setattr(trial, "TRIAL", 2 * COUNT)


def failures() -> None:
    now = utc_now()
    for _ in range(COUNT // BATCH):
        new = [factories.new(user_id=None, created_at=now) for _ in range(BATCH)]
        acceptance.accept(new, now=now)
        ids = [notification.id for notification in new]
        claims = leases.claim(ids=ids, channel=Channel.EMAIL, worker="w", now=now)
        begun = leases.start(claims, provider="sendgrid", worker="w", now=now)
        ended = [
            factories.settlement(delivery, DeliveryStatus.FAILED, at=now) for delivery in begun
        ]
        leases.settle(ended, now=now)


@contextmanager
def worker() -> Iterator[None]:
    """Run due operations in a thread, as a worker does after a wake-up."""
    over = threading.Event()

    def work() -> None:
        while not over.wait(0.05):
            for operation in collection("operations").find(
                {"next_at": {"$lte": utc_now()}}, {"_id": 1}
            ):
                runner.run(ObjectId(operation["_id"]))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def operation_id() -> ObjectId:
    (operation,) = collection("operations").find({}, {"_id": 1})
    return ObjectId(operation["_id"])


def test_bulk_retry_shows_progress_and_results(screen: Screen) -> None:
    failures()
    page = screen.page
    screen.sign_in()
    screen.open(FAILED)
    screen.reach(page.get_by_role("link", name="Provider error").first).click()
    screen.reach(page.get_by_role("link", name="Bulk action on all matches…")).click()
    screen.shows(page.get_by_text("Cause: Provider error"))
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Preview")).click()
    screen.shows(page.locator("progress"), page.get_by_text("Previewing", exact=True))
    runner.run(operation_id())
    # The page reloads by itself.
    screen.shows(page.get_by_text("60 notifications, 60 deliveries."))
    expect(page.get_by_role("checkbox", name=re.compile("^Safe"))).to_be_checked()
    assert screen.fits()

    # From the keyboard: a reason, a rate, and Enter.
    page.get_by_label("Reason", exact=True).fill("SendGrid outage")
    page.keyboard.press("Tab")
    page.keyboard.type("25")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Running", exact=True))
    # By a clock that stands still, one second's worth is done.
    now = utc_now()
    runner.run(operation_id(), clock=lambda: now)
    screen.shows(page.locator("progress"), page.get_by_text("25 of 60 deliveries"))
    screen.reach(page.get_by_role("button", name="Pause")).click()
    screen.shows(page.locator(".chip", has_text="Paused"))
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Resume")).click()
    with worker():
        screen.shows(page.get_by_text("60 of 60 deliveries."))
    screen.shows(page.get_by_text("Completed", exact=True))
    assert screen.fits()
    assert collection("notifications").count_documents({"status": "retrying"}) == COUNT
    with page.expect_download() as download:
        screen.reach(page.get_by_role("link", name="Download results (CSV)")).click()
    assert len(download.value.path().read_text().splitlines()) == 1 + COUNT


def test_outage_is_retried_in_five_clicks_from_the_alert(screen: Screen) -> None:
    failures()
    add_missing_rules()
    for rule in enabled_rules():
        for finding in detect(rule, now=utc_now()):
            incidents.record(finding, now=utc_now())
    page, clicks = screen.page, 0
    screen.sign_in()
    screen.open("/admin/")

    def click(target: Locator) -> None:
        nonlocal clicks
        clicks += 1
        screen.reach(target).click()

    with worker():
        click(page.get_by_role("link", name="Show the failures"))
        click(page.get_by_role("link", name="Bulk action on all matches…"))
        click(page.get_by_role("button", name="Preview"))
        page.get_by_label("Reason", exact=True).fill("SendGrid outage")
        click(page.get_by_role("button", name="Start retry"))
        screen.shows(page.locator(".chip", has_text="Completed"))
    assert clicks <= 5
    tiles = page.locator("#result")
    expect(tiles).to_contain_text("Still open60")
    deliver_all()
    expect(tiles).to_contain_text("Delivered60")
    expect(tiles).to_contain_text("Still open0")
    assert screen.fits()


def deliver_all() -> None:
    now = utc_now() + timedelta(hours=1)
    ids = [notification["_id"] for notification in collection("notifications").find({}, {"_id": 1})]
    claims = leases.claim(ids=ids, channel=Channel.EMAIL, worker="w", now=now)
    begun = leases.start(claims, provider="sendgrid", worker="w", now=now)
    ended = [factories.settlement(delivery, DeliveryStatus.DELIVERED, at=now) for delivery in begun]
    leases.settle(ended, now=now)
