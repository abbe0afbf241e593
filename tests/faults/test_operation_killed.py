"""A worker is killed in the middle of a bulk operation."""

from datetime import datetime, timedelta

from domain.states import BulkAction, BulkOutcome, BulkStage
from domain.time import utc_now
from notifications.bulk import decisions, operation, runner, selection
from notifications.bulk.operation import UNKNOWN_STAFF
from notifications.bulk.repository import LEASE
from notifyproject.db.collections import collection
from tests.faults.conftest import Start
from tests.support.factories.bulk import failed, plan, stored
from tests.support.waiting import until

COUNT = 150


def test_killed_bulk_operation_resends_each_once(start_worker: Start) -> None:
    ids = failed(COUNT)
    failures = selection.select_failures(channel=None, code=None, since=None)
    worker = start_worker()
    requested = decisions.preview(
        action=BulkAction.RESEND, selection=failures, by=UNKNOWN_STAFF, now=utc_now()
    )
    until(lambda: stored(requested).stage is BulkStage.READY)
    decisions.start(requested.id, options=plan(), by=UNKNOWN_STAFF, now=utc_now())
    until(lambda: _resent() > COUNT // 5)
    worker.kill()
    worker.wait()
    assert _resent() < COUNT

    assert runner.enqueue_due(now=_later()) == 1
    while stored(requested).stage is BulkStage.RUNNING:
        runner.run(requested.id, clock=_later)
    done = stored(requested)
    assert done.counts == {BulkOutcome.DONE: COUNT}
    made = list(collection("notifications").find({"resent_from": {"$ne": None}}))
    assert sorted(one["resent_from"] for one in made) == sorted(ids)
    assert {one["_id"] for one in made} == {operation.resend_id(done, one) for one in ids}


def _resent() -> int:
    return collection("notifications").count_documents({"resent_from": {"$ne": None}})


def _later() -> datetime:
    """Return a time after the end of the lost lease."""
    return utc_now() + LEASE + timedelta(seconds=1)
