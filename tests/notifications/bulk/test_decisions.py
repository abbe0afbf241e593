"""A preview says what an operation would do, and does nothing."""

from datetime import timedelta

import pytest
from bson import ObjectId

from domain import content
from domain.states import BulkAction, BulkOutcome, BulkStage, Channel, DeliveryStatus
from notifications.bulk import decisions, repository, results, runner, selection
from notifications.bulk.operation import Selection
from notifications.resend.actions import InvalidStateError
from notifications.resend.risk import RiskKind
from notifyproject.db.collections import collection
from recipients.models import SuppressionReason
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import (
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

S = DeliveryStatus
EVERYTHING = Selection(
    match={"type": "payment_confirmed"}, order="created_at", description=("All",)
)


def test_it_counts_by_verdict_and_changes_nothing(clock: Time) -> None:
    safe = failed(3)
    held_back = failed(recipient=content.Recipient(email="bob@example.com"))
    factories.suppress("bob@example.com", reason=SuppressionReason.MANUAL, at=clock())
    operation = previewed(clock)
    assert operation.stage is BulkStage.READY
    assert operation.preview_counts == {"safe": 3, "suppressed": 1}
    assert (operation.found_count, operation.delivery_count, operation.is_capped) == (4, 4, False)
    assert statuses([*safe, *held_back]) == ["failed"] * 4
    assert {row["outcome"] for row in rows(operation).values()} == {"waiting"}


def test_it_shows_some_of_each_verdict(clock: Time) -> None:
    failed(5)
    samples = results.samples(previewed(clock).id, RiskKind.SAFE, limit=3)
    assert len(samples) == 3
    assert {row.risk.kind for row in samples.values()} == {RiskKind.SAFE}


def test_it_goes_on_page_by_page(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(selection, "PAGE_SIZE", 4)
    failed(9)
    assert previewed(clock).preview_counts == {"safe": 9}


def test_beyond_its_cap_it_says_that_there_are_more(
    clock: Time, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(selection, "PAGE_SIZE", 2)
    monkeypatch.setattr(runner, "PREVIEW_CAP", 4)
    failed(7)
    operation = previewed(clock)
    assert (operation.found_count, operation.is_capped) == (4, True)


def test_what_fails_after_the_preview_was_asked_for_is_not_in_it(clock: Time) -> None:
    failed()
    failed(at=clock.at + timedelta(minutes=1))
    assert previewed(clock).found_count == 1


def test_only_the_deliveries_that_the_filter_is_about_are_in_it(clock: Time) -> None:
    failed()
    cohort = selection.select_failures(channel=Channel.EMAIL, code="timeout", since=None)
    assert previewed(clock, cohort=cohort).found_count == 0
    cohort = selection.select_failures(channel=Channel.EMAIL, code="provider_error", since=None)
    assert previewed(clock, cohort=cohort).preview_counts == {"safe": 1}


def test_what_has_nothing_to_be_done_is_counted_by_itself(clock: Time) -> None:
    failed(2)
    factories.accepted()
    operation = previewed(clock, action=BulkAction.CANCEL, cohort=EVERYTHING)
    assert operation.preview_counts == {"safe": 1, runner.NO_DELIVERY: 2}
    assert (operation.found_count, operation.delivery_count) == (3, 1)


def test_two_workers_preview_it_once(clock: Time) -> None:
    failed(3)
    asked = decisions.preview(action=BulkAction.RETRY, selection=EVERYTHING, by=MARIA, now=clock())
    assert runner.run(asked.id, clock=clock)
    assert not runner.run(asked.id, clock=clock)
    assert stored(asked).preview_counts == {"safe": 3}


def test_a_preview_that_was_broken_off_counts_each_once(clock: Time) -> None:
    ids = failed(3)
    asked = decisions.preview(action=BulkAction.RETRY, selection=EVERYTHING, by=MARIA, now=clock())
    # A worker has written a row and was lost before it could say so.
    collection("operation_results").insert_one(
        {"_id": f"{asked.id}:{ids[0]}:email", "operation_id": asked.id, "outcome": "waiting"}
    )
    runner.run(asked.id, clock=clock)
    assert stored(asked).preview_counts == {"safe": 3}


@pytest.mark.parametrize(
    ("fields", "told"),
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
def test_it_is_not_started_without_a_decision_on_everything(
    clock: Time, fields: dict[str, object], told: str
) -> None:
    failed()
    operation = previewed(clock)
    with pytest.raises(InvalidStateError, match=told):
        started(clock, operation, **fields)
    assert stored(operation).stage is BulkStage.READY


def test_an_old_preview_is_made_anew(clock: Time) -> None:
    operation = previewed(clock)
    clock.at += repository.PREVIEW_LIFETIME + timedelta(seconds=1)
    with pytest.raises(InvalidStateError, match="preview expired"):
        started(clock, operation)


def test_it_is_started_once(clock: Time) -> None:
    operation = started(clock)
    with pytest.raises(InvalidStateError, match="changed meanwhile"):
        decisions.start(operation.id, options=plan(), by=MARIA, now=clock())


def test_what_is_not_there_is_not_started(clock: Time) -> None:
    with pytest.raises(InvalidStateError, match="Not found"):
        decisions.start(ObjectId(), options=plan(), by=MARIA, now=clock())


def test_a_preview_needs_a_channel_and_a_new_time_that_lies_ahead(clock: Time) -> None:
    nothing = Selection(match={}, order="created_at", description=(), channels=())
    with pytest.raises(InvalidStateError, match="channel"):
        decisions.preview(action=BulkAction.RETRY, selection=nothing, by=MARIA, now=clock())
    for send_at in (None, clock.at - timedelta(seconds=1)):
        with pytest.raises(InvalidStateError, match="time"):
            previewed(clock, action=BulkAction.RESCHEDULE, cohort=EVERYTHING, send_at=send_at)


def test_a_preview_that_is_thrown_away_leaves_nothing(clock: Time) -> None:
    failed()
    operation = previewed(clock)
    repository.discard(operation.id)
    assert repository.get(operation.id) is None
    assert rows(operation) == {}


def test_what_was_started_is_not_thrown_away(clock: Time) -> None:
    failed()
    operation = started(clock)
    repository.discard(operation.id)
    assert stored(operation).stage is BulkStage.RUNNING
    assert BulkOutcome.DONE not in stored(operation).counts
