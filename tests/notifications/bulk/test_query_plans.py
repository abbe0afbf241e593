"""Query plans of bulk operations."""

from typing import Any

import pytest

from domain.channels import Channel
from domain.states import BulkStage, DeliveryStatus
from notifications.actions import risk
from notifications.bulk import repository, results, runner, selection
from notifications.bulk.operation import Selection
from notifications.store import acceptance, leases
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import Time, finish, previewed, started
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import Plan, plans

COUNT, FAILED, PAGE_SIZE = 600, 200, 20


@pytest.fixture
def many(clock: Time, monkeypatch: pytest.MonkeyPatch) -> None:
    """Store notifications, of which a third have failed, and use small pages."""
    monkeypatch.setattr(selection, "PAGE_SIZE", PAGE_SIZE)
    new = [factories.new(user_id=None) for _ in range(COUNT)]
    acceptance.accept(new, now=NOON)
    ids = [item.id for item in new[:FAILED]]
    for start in range(0, FAILED, 100):
        some = ids[start : start + 100]
        claims = leases.claim(ids=some, channel=Channel.EMAIL, worker="w", now=NOON)
        begun = leases.start(claims, provider="sendgrid", worker="w", now=NOON)
        ended = [factories.settlement(delivery, DeliveryStatus.FAILED) for delivery in begun]
        leases.settle(ended, now=NOON)


def page_reads(found: list[Plan]) -> list[Plan]:
    """Return the plans of the reads of the next page."""
    return [plan for plan in found if "sort" in plan.command]


def assert_efficient(found: list[Plan]) -> None:
    for plan in found:
        assert plan.is_indexed or plan.is_by_id, plan.summary
        assert not plan.sorts, plan.summary
        assert plan.examined <= 2 * max(plan.returned, PAGE_SIZE), plan


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    "selected",
    [
        selection.select_failures(channel=Channel.EMAIL, code="provider_error", since=NOON),
        Selection(
            match={"failed_at": {"$exists": True}, "type": "payment_confirmed"},
            order="failed_at",
            description=(),
        ),
        Selection(match={"status": "failed"}, order="created_at", description=()),
        Selection(match={"type": "payment_confirmed"}, order="created_at", description=()),
    ],
    ids=["failures", "failures-type", "status", "type"],
)
def test_pages_of_a_selection_use_indexes(clock: Time, selected: Selection) -> None:
    with plans("notifications") as found:
        operation = previewed(clock, selected=selected)
    assert operation.found_count >= FAILED
    assert len(page_reads(found)) > FAILED // PAGE_SIZE
    assert_efficient(found)


@pytest.mark.usefixtures("many")
def test_operations_and_results_use_indexes(clock: Time) -> None:
    found: dict[str, list[Plan]] = {}

    def record(name: str, *calls: Any) -> None:
        with plans(name) as found[name]:
            for call in calls:
                call()

    operation = started(clock)
    record(
        "operation_results",
        lambda: finish(clock, operation),
        lambda: list(results.iter_rows(operation.id)),
        lambda: results.samples(operation.id, risk.RiskKind.SAFE, limit=3),
    )
    record("operations", lambda: runner.enqueue_due(now=clock()))
    done = repository.get(operation.id)
    assert done is not None
    assert done.stage is BulkStage.COMPLETED
    for some in found.values():
        assert some
        for plan in some:
            assert plan.is_indexed or plan.is_by_id, plan.summary
            assert not plan.sorts, plan.summary
