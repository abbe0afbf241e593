"""The cohort of a bulk operation is what a list shows, on all of its pages."""

from datetime import timedelta

import pytest
from django.test import Client

from domain import content
from domain.states import BulkStage, Channel
from domain.time import utc_now
from notifications.bulk import runner
from tests.support.clients.bulk_console import BULK, NEW, failed, open_form, start, stored, text
from tests.support.factories import notifications as factories

pytestmark = pytest.mark.usefixtures("db", "broker")


def test_the_cohort_is_what_the_list_shows_on_all_of_its_pages(operator: Client) -> None:
    ours = [failed() for _ in range(3)]
    failed(type="order_shipped")
    failed(channel=Channel.WHATSAPP)
    operation = open_form(operator, "type=payment_confirmed&channel=email")
    assert (operation.stage, operation.preview_counts) == (BulkStage.READY, {"safe": 3})
    assert operation.selection.channels == (Channel.EMAIL,)
    start(operator, operation)
    runner.run(operation.id)
    assert [factories.read(one["_id"])["status"] for one in ours] == ["retrying"] * 3


@pytest.mark.parametrize("name", ["nonsense", "staffuser", ""])
def test_a_list_that_there_is_not(operator: Client, name: str) -> None:
    page = text(operator.get(NEW, {"list": name}, follow=True))
    assert "List not found." in page


@pytest.mark.parametrize("asked", [{"code": "x"}, {"q": "nobody"}, {"colour": "blue"}])
def test_a_filter_that_nothing_matches(operator: Client, asked: dict[str, str]) -> None:
    page = text(operator.get(NEW, {"list": "failednotification", **asked}, follow=True))
    assert "Nothing selected." in page


def test_what_waits_is_withdrawn_or_sent_at_another_time(console: Client) -> None:
    document = factories.accepted(created_at=utc_now())
    form = {"list": "notification", "query": "status=queued"}
    assert "A send time in the future" in text(
        console.post(NEW, {**form, "action": "reschedule", "channels": "email"})
    )
    operation = open_form(console, list="notification", query="status=queued", action="cancel")
    page = text(console.get(f"{BULK}{operation.id}/change/"))
    assert "Eligible" in page
    start(console, operation)
    runner.run(operation.id)
    assert factories.read(document["_id"])["status"] == "cancelled"


def test_a_search_is_a_cohort_and_its_address_is_not_written_down(console: Client) -> None:
    failed()
    failed(recipient=content.Recipient(email="bob@example.com"), user_id="bob")
    operation = open_form(console, "q=bob@example.com")
    assert operation.found_count == 1
    assert "bob@" not in " ".join(operation.selection.description)


def test_a_span_back_from_now_is_frozen_as_the_instant_it_means(operator: Client) -> None:
    failed()
    operation = open_form(operator, "failed_within=24h")
    (words,) = [line for line in operation.selection.description if line.startswith("Failed:")]
    assert f"from {operation.frozen_at - timedelta(hours=24):%Y-%m-%d %H}" in words
    assert stored(operation.id).selection == operation.selection


def test_a_provider_is_part_of_a_group_of_failures(operator: Client) -> None:
    failed()
    assert open_form(operator, "channel=email&provider=sendgrid").preview_counts == {"safe": 1}
    assert open_form(operator, "channel=email&provider=none").found_count == 0


def test_a_channels_status_says_which_channels_are_meant(console: Client) -> None:
    failed(channels=(Channel.EMAIL, Channel.IN_APP))
    query = "delivery_status=failed"
    assert open_form(console, query, list="notification", action="resend").preview_counts == {
        "safe": 1
    }
    both = open_form(console, list="notification", action="resend").preview_counts
    assert both == {"safe": 1, "may_duplicate": 1}


def test_the_list_of_what_waits_is_a_cohort_too(console: Client) -> None:
    now = utc_now()
    later = now + timedelta(hours=1)
    document = factories.accepted(created_at=now, send_at=later, scheduled_at=later)
    operation = open_form(console, list="waitingnotification", action="run_now")
    assert operation.preview_counts == {"safe": 1}
    start(console, operation)
    runner.run(operation.id)
    assert factories.read(document["_id"])["due_at"] < later
