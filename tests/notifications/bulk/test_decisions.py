"""Decisions of staff on bulk operations: preview, start, and discard."""

from datetime import timedelta

import pytest
from bson import ObjectId

from domain import content
from domain.channels import Channel
from domain.states import BulkAction, BulkOutcome, BulkStage, DeliveryStatus
from notifications.actions.actions import InvalidStateError
from notifications.actions.risk import RiskKind
from notifications.bulk import decisions, repository, results, runner, selection
from notifications.bulk.operation import Selection
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import (
    EVERYTHING,
    MARIA,
    Time,
    failed,
    plan,
    previewed,
    rows,
    started,
    statuses,
    stored,
)
from tests.support.tables import each_case

S = DeliveryStatus


def test_preview_counts_by_risk_and_changes_nothing(clock: Time) -> None:
    safe = failed(3)
    held_back = failed(recipient=content.Recipient(email="bob@example.com"))
    factories.suppress("bob@example.com", reason=SuppressionReason.MANUAL, at=clock())
    operation = previewed(clock)
    assert operation.stage is BulkStage.READY
    assert operation.preview_counts == {"safe": 3, "suppressed": 1}
    assert (operation.found_count, operation.delivery_count, operation.is_capped) == (4, 4, False)
    assert statuses([*safe, *held_back]) == ["failed"] * 4
    assert {row["outcome"] for row in rows(operation).values()} == {"waiting"}


def test_preview_has_samples_of_each_risk(clock: Time) -> None:
    failed(5)
    samples = results.samples(previewed(clock).id, RiskKind.SAFE, limit=3)
    assert len(samples) == 3
    assert {row.risk.kind for row in samples.values()} == {RiskKind.SAFE}


def test_preview_reads_page_by_page(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PAGE_SIZE", 4)
    failed(9)
    assert previewed(clock).preview_counts == {"safe": 9}


def test_capped_preview_is_marked(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PAGE_SIZE", 2)
    monkeypatch.setattr(runner, "PREVIEW_CAP", 4)
    failed(7)
    operation = previewed(clock)
    assert (operation.found_count, operation.is_capped) == (4, True)


def test_failure_after_the_preview_started_is_not_included(clock: Time) -> None:
    failed()
    failed(at=clock.at + timedelta(minutes=1))
    assert previewed(clock).found_count == 1


def test_preview_includes_only_matching_deliveries(clock: Time) -> None:
    failed()
    selected = selection.select_failures(channel=Channel.EMAIL, code="timeout", since=None)
    assert previewed(clock, selected=selected).found_count == 0
    selected = selection.select_failures(channel=Channel.EMAIL, code="provider_error", since=None)
    assert previewed(clock, selected=selected).preview_counts == {"safe": 1}


def test_notifications_without_a_matching_delivery_are_counted_separately(clock: Time) -> None:
    failed(2)
    factories.accepted()
    operation = previewed(clock, action=BulkAction.CANCEL, selected=EVERYTHING)
    assert operation.preview_counts == {"safe": 1, runner.NO_DELIVERY: 2}
    assert (operation.found_count, operation.delivery_count) == (3, 1)


def test_two_workers_preview_once(clock: Time) -> None:
    failed(3)
    requested = decisions.preview(
        action=BulkAction.RETRY, selection=EVERYTHING, by=MARIA, now=clock()
    )
    assert runner.run(requested.id, clock=clock)
    assert not runner.run(requested.id, clock=clock)
    assert stored(requested).preview_counts == {"safe": 3}


def test_interrupted_preview_counts_each_once(clock: Time) -> None:
    ids = failed(3)
    requested = decisions.preview(
        action=BulkAction.RETRY, selection=EVERYTHING, by=MARIA, now=clock()
    )
    # A worker has written a row and was lost before it could say so.
    collection("operation_results").insert_one(
        {
            "_id": f"{requested.id}:{ids[0]}:email",
            "operation_id": requested.id,
            "outcome": "waiting",
        }
    )
    runner.run(requested.id, clock=clock)
    assert stored(requested).preview_counts == {"safe": 3}


@each_case(
    "fields, match",
    [
        ({"reason": "  "}, "A reason is required"),
        ({"reason": "x" * 501}, "at most 500"),
        ({"per_second": 0}, "must be 1 to 500"),
        ({"per_second": 501}, "must be 1 to 500"),
        ({"included_risks": frozenset()}, "Nothing selected"),
        ({"included_risks": frozenset({RiskKind.SUPPRESSED})}, "always skipped"),
        (
            {"included_risks": frozenset({RiskKind.SAFE, RiskKind.MAY_DUPLICATE})},
            "reason for duplicates",
        ),
    ],
)
def test_operation_needs_every_decision(clock: Time, fields: dict[str, object], match: str) -> None:
    failed()
    operation = previewed(clock)
    with pytest.raises(InvalidStateError, match=match):
        started(clock, operation, **fields)
    assert stored(operation).stage is BulkStage.READY


def test_expired_preview_is_not_started(clock: Time) -> None:
    operation = previewed(clock)
    clock.at += repository.PREVIEW_LIFETIME + timedelta(seconds=1)
    with pytest.raises(InvalidStateError, match="preview expired"):
        started(clock, operation)


def test_operation_starts_once(clock: Time) -> None:
    operation = started(clock)
    with pytest.raises(InvalidStateError, match="changed meanwhile"):
        decisions.start(operation.id, options=plan(), by=MARIA, now=clock())


def test_unknown_operation_is_not_started(clock: Time) -> None:
    with pytest.raises(InvalidStateError, match="Not found"):
        decisions.start(ObjectId(), options=plan(), by=MARIA, now=clock())


def test_preview_needs_a_channel_and_a_future_time(clock: Time) -> None:
    nothing = Selection(match={}, order="created_at", description=(), channels=())
    with pytest.raises(InvalidStateError, match="channel"):
        decisions.preview(action=BulkAction.RETRY, selection=nothing, by=MARIA, now=clock())
    for send_at in (None, clock.at - timedelta(seconds=1)):
        with pytest.raises(InvalidStateError, match="time"):
            previewed(clock, action=BulkAction.RESCHEDULE, selected=EVERYTHING, send_at=send_at)


def test_discarded_preview_is_deleted(clock: Time) -> None:
    failed()
    operation = previewed(clock)
    repository.discard(operation.id)
    assert repository.get(operation.id) is None
    assert rows(operation) == {}


def test_started_operation_is_not_discarded(clock: Time) -> None:
    failed()
    operation = started(clock)
    repository.discard(operation.id)
    assert stored(operation).stage is BulkStage.RUNNING
    assert BulkOutcome.DONE not in stored(operation).counts
