"""A broadcast in the console: viewed, paused, resumed, cancelled."""

import pytest
from bson import ObjectId
from playwright.sync_api import expect

from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.broadcasts import runner
from notifications.broadcasts.requests import AudienceRequest
from notifications.queueing import backlog
from notifications.store import leases
from notifyproject.db.collections import collection
from tests.browser.screen import Screen
from tests.support.factories import notifications as factories
from tests.support.factories.broadcasts import begun, read, recipients, run_page, run_to_completion

pytestmark = pytest.mark.usefixtures("db")


def half_processed(monkeypatch: pytest.MonkeyPatch) -> ObjectId:
    """Return a broadcast with half of its audience processed, and one email sent."""
    backlog.clear()
    monkeypatch.setattr(runner, "PAGE_SIZE", 8)
    now = utc_now()
    muted = recipients(2, preferences={"marketing": {"muted": True}})
    names = [*muted, *recipients(6, first=2), "nobody-we-know", "somebody-else", "yet-another"]
    broadcast_id = begun(AudienceRequest(user_ids=names), at=now)
    run_page(broadcast_id, at=now)
    first = collection("notifications").find_one({"broadcast_id": broadcast_id})
    assert first is not None
    started = factories.start(factories.claim(first["_id"], at=now), at=now)
    leases.settle([factories.settlement(started, DeliveryStatus.SENT, at=now)], now=now)
    return broadcast_id


def test_broadcast_is_paused_resumed_and_cancelled(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, page = half_processed(monkeypatch), screen.page
    screen.sign_in()
    screen.open("/admin/")
    screen.choose("Broadcasts")
    screen.shows(page.get_by_text("Listed recipients").first)
    assert screen.fits()
    screen.reach(page.get_by_role("link", name="Marketing").first).click()
    screen.shows(
        page.get_by_role("heading", name="4 created; reading the audience"),
        page.get_by_text("8 of ~11 processed"),
        page.get_by_text("Opted out", exact=True),
        page.get_by_text("It is spring."),
    )
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Pause")).click()
    screen.shows(page.get_by_text("Existing notifications are still sent."))
    assert read(first)["status"] == "paused"
    page.get_by_role("button", name="Resume").focus()
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Resumed", exact=True))
    assert read(first)["status"] == "running"
    screen.reach(page.get_by_role("button", name="Cancel")).click()
    screen.shows(page.get_by_text("Sends in progress complete."))
    assert screen.fits()
    screen.reach(page.get_by_role("button", name="Cancel notifications")).click()
    screen.shows(page.get_by_text("Cancelling pending notifications").first)
    run_to_completion(first, at=utc_now())
    page.reload()
    screen.shows(page.get_by_role("heading", name="3 of 4 cancelled"))
    expect(page.locator("table.figures").first).to_contain_text("Sent")
    assert screen.fits()
