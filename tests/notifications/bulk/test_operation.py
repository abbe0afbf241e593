"""The rate and the stages of bulk operations."""

from datetime import UTC, datetime, timedelta

from domain.states import ACTIVE_BULK_STAGES, BULK_TRANSITIONS, BulkStage
from notifications.bulk import operation
from tests.support.tables import each_case

NOON = datetime(2026, 12, 1, 12, tzinfo=UTC)


@each_case("per_second, most", [(1, 1), (20, 20), (200, 200), (500, 200), (0, 1)])
def test_batch_is_one_second_and_at_most_200(per_second: int, most: int) -> None:
    assert operation.batch_limit(per_second) == most


@each_case("acted, per_second, seconds", [(20, 20, 1.0), (5, 20, 0.25), (200, 500, 0.4), (1, 1, 1)])
def test_next_run_waits_for_its_time(acted: int, per_second: int, seconds: float) -> None:
    resumes = operation.next_run_at(started_at=NOON, acted_count=acted, per_second=per_second)
    assert resumes == NOON + timedelta(seconds=seconds)


def test_run_without_actions_continues_at_once() -> None:
    assert operation.next_run_at(started_at=NOON, acted_count=0, per_second=1) == NOON


@each_case("per_second", [1, 7, 20, 333, 500])
def test_rate_over_a_minute_is_at_most_the_limit_and_one_batch(per_second: int) -> None:
    now, acted = NOON, 0
    while now < NOON + timedelta(minutes=1):
        batch = operation.batch_limit(per_second)
        acted += batch
        now = operation.next_run_at(started_at=now, acted_count=batch, per_second=per_second)
    assert per_second * 60 <= acted <= per_second * 60 + operation.batch_limit(per_second)


def test_every_stage_has_transitions_and_only_final_ones_have_none() -> None:
    assert set(BULK_TRANSITIONS) == set(BulkStage)
    assert {stage for stage, steps in BULK_TRANSITIONS.items() if not steps} == {
        BulkStage.CANCELLED,
        BulkStage.COMPLETED,
    }
    assert not any(stage in BULK_TRANSITIONS[stage] for stage in BulkStage)
    assert {BulkStage.PREVIEWING, BulkStage.RUNNING} == ACTIVE_BULK_STAGES
