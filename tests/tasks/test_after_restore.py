"""``manage.py after_restore``: what a restored backup doesn't send again."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from delivery import heartbeats
from domain.channels import Channel
from domain.states import BroadcastStatus, BulkStage, DeliveryStatus
from domain.time import utc_now
from notifications.actions.assessment import assess_risks
from notifications.actions.risk import RiskKind
from notifications.broadcasts import repository
from notifyproject.db.collections import collection
from tests.support.factories import broadcasts, bulk
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, delivery, read

pytestmark = pytest.mark.usefixtures("db", "broker")
EMAIL, IN_APP, S = Channel.EMAIL, Channel.IN_APP, DeliveryStatus
STOPPED_AT = NOON + timedelta(hours=1)


def after_restore(*options: str) -> str:
    out = StringIO()
    call_command("after_restore", f"--stopped-at={STOPPED_AT.isoformat()}", *options, stdout=out)
    return out.getvalue()


def test_what_may_have_been_sent_fails_and_what_is_due_later_stays() -> None:
    due = factories.accepted()["_id"]
    sending = factories.started().notification_id
    later = factories.accepted(send_at=STOPPED_AT + timedelta(minutes=1))["_id"]
    assert after_restore("--dry-run").startswith("Would give up 2 notifications")
    assert after_restore().startswith("Gave up 2 notifications")
    for item in (due, sending):
        ended = delivery(read(item))
        assert (ended["status"], ended["failure_code"]) == (S.FAILED, "outcome_unknown")
        assert ended["next_attempt_at"] is None
    assert delivery(read(later))["status"] == S.PENDING
    assert after_restore().startswith("Gave up 0 notifications")


def test_resending_what_was_given_up_may_duplicate() -> None:
    document = factories.accepted()
    after_restore()
    (assessed,) = assess_risks([read(document["_id"])], now=utc_now()).values()
    assert assessed.kind is RiskKind.MAY_DUPLICATE


def test_inbox_message_is_still_delivered() -> None:
    document = factories.accepted(channels=(EMAIL, IN_APP))
    collection("notifications").update_one(
        {"_id": document["_id"], "delivery.channel": IN_APP.value},
        {"$set": {"delivery.$.status": S.PENDING.value, "delivery.$.next_attempt_at": NOON}},
    )
    after_restore()
    assert delivery(read(document["_id"]), IN_APP)["status"] == S.PENDING
    assert delivery(read(document["_id"]))["status"] == S.FAILED


def test_started_broadcasts_and_bulk_operations_are_paused() -> None:
    broadcasts.recipients(1)
    begun = broadcasts.begun()
    later = broadcasts.begun(scheduled_at=(STOPPED_AT + timedelta(hours=1)).isoformat())
    bulk.failed()
    operation = bulk.started(bulk.Time())
    assert after_restore().endswith("paused 1 broadcasts and 1 bulk operations.\n")
    statuses = [repository.get(item)["status"] for item in (begun, later)]
    assert statuses == [BroadcastStatus.PAUSED, BroadcastStatus.SCHEDULED]
    stage = collection("operations").find_one({"_id": operation.id})["stage"]
    assert stage == BulkStage.PAUSED


def test_running_workers_are_refused() -> None:
    heartbeats.record_worker_heartbeat(now=utc_now())
    with pytest.raises(CommandError, match="stop workers"):
        after_restore()
