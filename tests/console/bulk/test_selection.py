"""A bulk operation covers all rows of a list, on all of its pages."""

from datetime import timedelta

import pytest
from django.test import Client

from domain import content
from domain.channels import Channel
from domain.states import BulkStage
from domain.time import utc_now
from notifications.bulk import runner
from tests.support.clients.bulk_console import BULK, NEW, failed, open_form, start, stored, text
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")


def test_operation_covers_all_pages_of_its_list(operator: Client) -> None:
    ours = [failed() for _ in range(3)]
    failed(type="order_shipped")
    failed(channel=Channel.WHATSAPP)
    operation = open_form(operator, "type=payment_confirmed&channel=email")
    assert (operation.stage, operation.preview_counts) == (BulkStage.READY, {"safe": 3})
    assert operation.selection.channels == (Channel.EMAIL,)
    start(operator, operation)
    runner.run(operation.id)
    assert [factories.read(row["_id"])["status"] for row in ours] == ["retrying"] * 3


@each_case("name", ["nonsense", "staffuser", ""])
def test_unknown_list_is_reported(operator: Client, name: str) -> None:
    assert "List not found." in text(operator.get(NEW, {"list": name}, follow=True))


@each_case("query", [{"code": "x"}, {"q": "nobody"}, {"colour": "blue"}])
def test_filter_without_matches_is_reported(operator: Client, query: dict[str, str]) -> None:
    page = text(operator.get(NEW, {"list": "failednotification", **query}, follow=True))
    assert "Nothing selected." in page


def test_pending_notifications_are_cancelled_and_reschedule_needs_a_time(console: Client) -> None:
    document = factories.accepted(created_at=utc_now())
    form = {"list": "notification", "query": "status=queued"}
    page = console.post(NEW, {**form, "action": "reschedule", "channels": "email"})
    assert "A send time in the future" in text(page)
    operation = open_form(console, list="notification", query="status=queued", action="cancel")
    assert "Eligible" in text(console.get(f"{BULK}{operation.id}/change/"))
    start(console, operation)
    runner.run(operation.id)
    assert factories.read(document["_id"])["status"] == "cancelled"


def test_search_selects_without_recording_its_address(console: Client) -> None:
    failed()
    failed(recipient=content.Recipient(email="bob@example.com"), user_id="bob")
    operation = open_form(console, "q=bob@example.com")
    assert operation.found_count == 1
    assert "bob@" not in " ".join(operation.selection.description)


def test_relative_time_is_frozen_as_an_instant(operator: Client) -> None:
    failed()
    operation = open_form(operator, "failed_within=24h")
    (words,) = [line for line in operation.selection.description if line.startswith("Failed:")]
    assert f"from {operation.frozen_at - timedelta(hours=24):%Y-%m-%d %H}" in words
    assert stored(operation.id).selection == operation.selection


def test_provider_filter_applies(operator: Client) -> None:
    failed()
    assert open_form(operator, "channel=email&provider=sendgrid").preview_counts == {"safe": 1}
    assert open_form(operator, "channel=email&provider=-").found_count == 0


def test_delivery_status_limits_the_channels(console: Client) -> None:
    failed(channels=(Channel.EMAIL, Channel.IN_APP))
    for query, counts in (
        ("delivery_status=failed", {"safe": 1}),
        ("", {"safe": 1, "may_duplicate": 1}),
    ):
        form = open_form(console, query, list="notification", action="resend")
        assert form.preview_counts == counts


def test_pending_list_can_be_selected(console: Client) -> None:
    now = utc_now()
    later = now + timedelta(hours=1)
    document = factories.accepted(created_at=now, send_at=later, scheduled_at=later)
    operation = open_form(console, list="waitingnotification", action="run_now")
    assert operation.preview_counts == {"safe": 1}
    start(console, operation)
    runner.run(operation.id)
    assert factories.read(document["_id"])["due_at"] < later
