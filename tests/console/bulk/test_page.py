"""Bulk operations in the console: selection, preview, start, stop, and download."""

import csv
from decimal import Decimal
from typing import Any

import pytest
from bson import ObjectId
from django.contrib.admin.models import LogEntry
from django.test import Client

from domain.channels import Channel
from domain.content import Recipient
from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from domain.time import utc_now
from notifications.bulk import decisions, runner, selection
from notifications.bulk import operation as bulk_operation
from notifications.bulk.operation import Operation
from notifications.store import actions, leases
from notifyproject.db.collections import collection
from tests.support.clients.bulk_console import (
    BULK,
    FAILED,
    NEW,
    failed,
    open_form,
    start,
    stored,
    text,
)
from tests.support.clients.console import make_staff, signed_in
from tests.support.factories import notifications as factories
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus


def url(operation: Operation, step: str) -> str:
    return f"{BULK}{operation.id}/{step}/"


def test_list_links_the_bulk_form_with_its_filter(operator: Client, support: Client) -> None:
    failed()
    path = f"{FAILED}?channel=email&code=provider_error"
    link = f"{NEW}?list=failednotification&amp;channel=email&amp;code=provider_error"
    assert f'href="{link}"' in text(operator.get(path))
    assert "Bulk action on all matches" not in text(support.get(path))


def test_form_describes_the_filter_and_offers_permitted_actions(operator: Client) -> None:
    failed()
    page = text(operator.get(f"{NEW}?list=failednotification&channel=email&code=provider_error"))
    assert "<li>Channel: Email</li>" in page
    assert "<li>Cause: Provider error</li>" in page
    assert 'value="retry"' in page
    # Resending is not permitted, and a failure can't be cancelled.
    assert 'value="resend"' not in page
    assert 'value="cancel"' not in page


def test_preview_shows_counts_samples_and_risks(operator: Client) -> None:
    document = failed()
    operation = open_form(operator)
    page = text(operator.get(f"{BULK}{operation.id}/change/"))
    assert "1 notification, 1 delivery." in page
    assert str(document["_id"]) in page
    assert 'name="include" value="safe" checked' in page
    assert "Start retry" in page


def test_preview_shows_what_texts_cost(operator: Client, settings: Any) -> None:
    settings.SMS_PRICES, settings.SMS_CURRENCY = {"PT": Decimal("0.036")}, "EUR"
    documents = [
        failed(channel=Channel.SMS, recipient=Recipient(phone=phone))
        for phone in ("+351912345678", "+351912345679", "+447700900123")
    ]
    sent_in_parts = {"notification_id": documents[0]["_id"]}
    collection("delivery_attempts").update_one(sent_in_parts, {"$set": {"units": 3}})
    failed()
    operation = open_form(operator, channels=["sms", "email"])
    assert operation.delivery_count == 4
    page = text(operator.get(f"{BULK}{operation.id}/change/"))
    unknown = "price unknown: SMS_PRICES has none for United Kingdom"
    assert f"SMS: 5 parts, about 0.144 EUR without 1 part, {unknown}." in page
    operation = open_form(operator, channels=["email"])
    assert "SMS:" not in text(operator.get(f"{BULK}{operation.id}/change/"))


@each_case(
    "fields, problem",
    [
        ({"reason": " "}, "A reason is required."),
        ({"per_second": "fast"}, "The rate limit must be a whole number per second."),
        ({"include": "nonsense"}, "Unknown resend risk"),
        ({"include": ["safe", "may_duplicate"]}, "A reason for duplicates is required."),
    ],
)
def test_invalid_start_is_explained_and_keeps_the_form(
    operator: Client, fields: dict[str, Any], problem: str
) -> None:
    failed()
    operation = open_form(operator)
    page = text(start(operator, operation, **fields))
    assert problem in page
    assert "Not started." in page
    if "reason" not in fields:
        assert 'value="SendGrid is back"' in page
    assert stored(operation.id).stage is BulkStage.READY


def test_started_operation_completes_with_results(operator: Client) -> None:
    document = failed()
    operation = open_form(operator)
    page = text(start(operator, operation))
    assert "Running" in page
    assert 'hx-trigger="every 1s"' in page
    runner.run(operation.id)
    page = text(operator.get(f"{BULK}{operation.id}/change/"))
    assert "Completed" in page
    assert "1 of 1 delivery." in page
    assert "every 1s" not in page
    response = operator.get(f"{BULK}{operation.id}/results.csv")
    header, line = b"".join(response.streaming_content).decode("utf-8-sig").splitlines()
    assert header.startswith("notification_id,user_id,recipient,channel,resend_risk,risk_reason,")
    row = next(csv.DictReader([header, line]))
    assert row["notification_id"] == str(document["_id"])
    assert (row["recipient"], row["channel"]) == ("a***@example.com", "email")
    assert (row["resend_risk"], row["outcome"], row["result"]) == ("safe", "requeued", "pending")
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert "ada@example.com" not in line


def test_progress_requests_a_page_reload_at_the_end(operator: Client) -> None:
    failed()
    operation = open_form(operator)
    start(operator, operation)
    progress = f"{BULK}{operation.id}/progress/?was="
    assert "<progress" in text(operator.get(f"{progress}running"))
    runner.run(operation.id)
    assert operator.get(f"{progress}running")["HX-Refresh"] == "true"
    assert operator.get(f"{BULK}{ObjectId()}/progress/").status_code == 404


def test_operation_is_paused_resumed_and_cancelled(operator: Client) -> None:
    failed()
    operation = open_form(operator)
    start(operator, operation)
    stages = {"pause": "PAUSED", "resume": "RUNNING", "cancel": "CANCELLED"}
    asked = text(operator.post(url(operation, "cancel")))
    assert "Cancel this bulk operation?" in asked
    assert "Ends it for good: 1 delivery of 1 stay as they are." in asked
    for step, stage in stages.items():
        given = {"confirmed": "yes"} if step == "cancel" else {}
        assert operator.post(url(operation, step), given, follow=True).status_code == 200
        assert stored(operation.id).stage is BulkStage[stage]
    assert "The operation has ended." in text(operator.post(url(operation, "cancel"), follow=True))
    lines = LogEntry.objects.filter(object_id=str(operation.id)).order_by("id")
    assert {line.user.username for line in lines} == {"olga"}
    assert [line.change_message for line in lines] == [
        "Started: SendGrid is back",
        "Paused.",
        "Resumed.",
        "Cancelled.",
    ]


def test_support_cannot_open_bulk_operations(operator: Client, support: Client) -> None:
    operation = open_form(operator)
    for page in ("new", *(f"{operation.id}/{name}" for name in ("change", "progress"))):
        assert support.get(f"{BULK}{page}/").status_code == 403
    assert support.get(f"{BULK}{operation.id}/results.csv").status_code == 403


def test_viewer_cannot_start_an_operation(operator: Client, db: None) -> None:
    failed()
    operation = open_form(operator)
    viewer = signed_in(make_staff("vera", "notifications.view_bulkoperation"))
    page = text(viewer.get(f"{BULK}{operation.id}/change/"))
    assert "Ready" in page
    assert "Start retry" not in page
    assert viewer.post(url(operation, "start")).status_code == 403


def test_bulk_action_requires_the_permission_of_its_single_action(operator: Client) -> None:
    failed()
    now = utc_now()
    by = bulk_operation.UNKNOWN_STAFF
    failures = selection.select_failures(channel=None, code=None, since=None)
    resend = decisions.preview(action=BulkAction.RESEND, selection=failures, by=by, now=now)
    assert operator.post(url(resend, "cancel")).status_code == 403
    form = {"list": "failednotification", "action": "resend", "channels": "email"}
    assert "Select an action." in text(operator.post(NEW, form))


def test_unknown_operation_is_reported(operator: Client) -> None:
    for row in (ObjectId(), "nonsense"):
        assert "Bulk operation not found" in text(operator.get(f"{BULK}{row}/change/", follow=True))
        assert "Bulk operation not found" in text(operator.post(f"{BULK}{row}/pause/", follow=True))


def test_list_shows_action_outcome_user_and_reason(operator: Client) -> None:
    failed()
    operation = open_form(operator)
    start(operator, operation)
    runner.run(operation.id)
    page = text(operator.get(BULK))
    for words in ("Retry", "Completed", "1 done", "olga", "SendGrid is back"):
        assert words in page
    assert stored(operation.id).counts == {BulkOutcome.DONE: 1}


@pytest.mark.parametrize("action", ["retry", "resend"])
def test_results_name_the_outcome_and_the_present_result(console: Client, action: str) -> None:
    risky = '=HYPERLINK("http://evil.example")'
    documents = [failed(user_id=user) for user in ("ada", risky, "bob")]
    operation = open_form(console, action=action)
    url = f"{BULK}{operation.id}/results.csv"

    def table() -> dict[str, dict[str, str]]:
        lines = b"".join(console.get(url).streaming_content).decode("utf-8-sig").splitlines()
        return {row["notification_id"]: row for row in csv.DictReader(lines)}

    assert {row["outcome"] for row in table().values()} == {"not run"}
    start(console, operation)
    runner.run(operation.id)
    by_document = table()
    key = "notification_id" if action == "retry" else "new_notification_id"
    sent, bounced, cancelled = (
        ObjectId(by_document[str(document["_id"])][key]) for document in documents
    )
    for row, status in ((sent, S.SENT), (bounced, S.FAILED)):
        now = utc_now()
        claimed = factories.start(factories.claim(row, at=now), at=now)
        leases.settle([factories.settlement(claimed, status, at=now)], now=now)
    actions.cancel(notification_id=cancelled, channels=[Channel.EMAIL], reason="-", now=utc_now())
    found = [table()[str(document["_id"])] for document in documents]
    done = "requeued" if action == "retry" else "resent"
    assert [row["outcome"] for row in found] == [done] * 3
    assert [row["result"] for row in found] == ["sent", "failed", "cancelled"]
    assert [row["failure_code"] for row in found] == ["", "provider_error", ""]
    assert found[1]["user_id"] == f"'{risky}"
