"""A worker is killed in the middle of its work."""

from collections import Counter
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import urllib3
from bson import ObjectId

from delivery import pipeline, sweeper
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Recipient
from domain.retry import UNKNOWN_WAIT
from domain.states import OPEN, BulkAction, BulkOutcome, BulkStage, Priority
from domain.time import utc_now
from notifications.bulk import decisions, operation, runner, selection
from notifications.bulk.operation import UNKNOWN_STAFF
from notifications.bulk.repository import LEASES as BULK_LEASES
from notifications.queueing import wakeups
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from sandbox.assembly import Sandbox
from sandbox.log import read_records
from tests.faults.conftest import Start
from tests.support.factories import notifications as factories
from tests.support.factories.bulk import failed, plan, stored
from tests.support.waiting import until

COUNT = 250
RECEIPTS = 2
"""Webhook events per message: processed, delivered."""


def test_killed_worker_loses_nothing_and_copies_are_on_record(
    provider: Sandbox, start_worker: Start
) -> None:
    worker = start_worker()
    ids = [_accepted(n) for n in range(COUNT)]
    _send_wakeups(ids)
    until(lambda: _acceptances(provider).total() >= COUNT // 4)
    worker.kill()
    worker.wait()
    # Receipts of what was taken have arrived; the rest waits for its lease to end.
    taken = _acceptances(provider).total()
    until(lambda: _reported(provider) >= RECEIPTS * taken)
    later = utc_now() + LEASE + timedelta(seconds=1)
    sweeper.sweep(now=later)
    later += UNKNOWN_WAIT[Priority.NORMAL] + timedelta(seconds=1)
    sweeper.sweep(now=later)
    pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: later)

    stored = list(collection("notifications").find())
    assert len(stored) == COUNT
    assert [d["_id"] for d in stored if d["delivery"][0]["status"] in OPEN] == []
    until(lambda: {str(notification_id) for notification_id in ids} == set(_acceptances(provider)))
    for reference, count in _acceptances(provider).items():
        if count > 1:
            attempts = factories.attempts(ObjectId(reference))
            assert "unknown" in [attempt["status"] for attempt in attempts]


def test_claim_of_a_dead_worker_is_claimed_again(db: None, broker: Any, provider: Sandbox) -> None:
    claim = factories.claimed(at=utc_now())
    assert (
        pipeline.dispatch(SendingRuntime(), [claim.notification_id], channel=Channel.EMAIL).claimed
        == 0
    )
    later = utc_now() + LEASE + timedelta(seconds=1)
    report = pipeline.dispatch(
        SendingRuntime(), [claim.notification_id], channel=Channel.EMAIL, clock=lambda: later
    )
    assert report.counts == {"sent": 1}


def _accepted(number: int) -> Any:
    document = factories.accepted(
        created_at=utc_now(), recipient=Recipient(email=f"user-{number}@example.com")
    )
    return document["_id"]


def _send_wakeups(ids: list[Any]) -> None:
    for start in range(0, len(ids), 50):
        published = wakeups.send_wakeup(
            ids[start : start + 50], channel=Channel.EMAIL, priority=Priority.NORMAL, now=utc_now()
        )
        assert published


def _acceptances(provider: Sandbox) -> Counter[str]:
    """Return how often the provider accepted each notification, by its durable log."""
    references: Iterable[str] = (
        reference.partition(".")[0]
        for record in read_records(provider.data / "requests.jsonl")
        if record.accepted
        for reference in record.references
    )
    return Counter(references)


def _reported(provider: Sandbox) -> int:
    counters = urllib3.request("GET", f"{provider.url}/_sandbox/counters").json()
    return int(counters["webhooks"]["sent"])


BULK_COUNT = 150


def test_killed_bulk_operation_resends_each_once(start_worker: Start) -> None:
    ids = failed(BULK_COUNT)
    failures = selection.select_failures(channel=None, code=None, since=None)
    worker = start_worker()
    requested = decisions.preview(
        action=BulkAction.RESEND, selection=failures, by=UNKNOWN_STAFF, now=utc_now()
    )
    until(lambda: stored(requested).stage is BulkStage.READY)
    decisions.start(requested.id, options=plan(), by=UNKNOWN_STAFF, now=utc_now())
    until(lambda: _resent() > BULK_COUNT // 5)
    worker.kill()
    worker.wait()
    assert _resent() < BULK_COUNT

    assert runner.enqueue_due(now=_later()) == 1
    while stored(requested).stage is BulkStage.RUNNING:
        runner.run(requested.id, clock=_later)
    done = stored(requested)
    assert done.counts == {BulkOutcome.DONE: BULK_COUNT}
    made = list(collection("notifications").find({"resent_from": {"$ne": None}}))
    assert sorted(resend["resent_from"] for resend in made) == sorted(ids)
    assert {resend["_id"] for resend in made} == {
        operation.resend_id(done, resend) for resend in ids
    }


def _resent() -> int:
    return collection("notifications").count_documents({"resent_from": {"$ne": None}})


def _later() -> datetime:
    """Return a time after the end of the lost lease."""
    return utc_now() + BULK_LEASES.length + timedelta(seconds=1)
