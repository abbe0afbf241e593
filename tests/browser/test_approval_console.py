"""A person approves in the console what a client has submitted."""

import pytest
from bson import ObjectId

from domain.time import utc_now
from notifications.catalog import types
from tests.browser.accessibility import check
from tests.browser.screen import Screen
from tests.support.factories.broadcasts import begun, read, recipients

pytestmark = pytest.mark.usefixtures("db", "broker")
WHY = "The date is wrong."


def awaiting() -> ObjectId:
    recipients(3)
    types.define_type("marketing", {"approval": {"above": 0, "by": "approvers"}}, now=utc_now())
    return begun(at=utc_now())


def open_page(screen: Screen, broadcast_id: ObjectId) -> None:
    screen.sign_in()
    screen.open(f"/admin/notifications/broadcast/{broadcast_id}/change/")


def test_page_fits_and_has_no_violation(screen: Screen) -> None:
    page = screen.page
    open_page(screen, awaiting())
    screen.shows(page.get_by_role("heading", name="What would be sent"))
    page.get_by_text("Emergency: send").click()
    check(screen)


def test_approval_by_the_keyboard_alone(screen: Screen) -> None:
    page, broadcast_id = screen.page, awaiting()
    open_page(screen, broadcast_id)
    page.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Enter")
    screen.shows(page.get_by_text("Approved.", exact=True), page.get_by_text("Decided by"))
    assert read(broadcast_id)["status"] == "scheduled"


def test_rejection_by_the_keyboard_alone(screen: Screen) -> None:
    page, broadcast_id = screen.page, awaiting()
    open_page(screen, broadcast_id)
    page.get_by_role("button", name="Approve").focus()
    page.keyboard.press("Tab")
    page.keyboard.type(WHY)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    screen.shows(page.get_by_role("heading", name=f"Rejected: {WHY}"))
    assert read(broadcast_id)["approval"]["reason"] == WHY
