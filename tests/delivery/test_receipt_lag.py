"""Late receipts: a lost answer is repeated only once its receipt would have come."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import sweeper
from domain.states import DeliveryStatus
from notifications.receipts import lag, processor
from notifyproject.db.collections import collection
from providers.contract import Receipt, ReceiptKind
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.mongo.query_plans import plans
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db", "broker")

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
DUE = NOON + 5 * MINUTE
"""When an unknown outcome of normal priority is decided."""


def sent(*, at: datetime, **fields: Any) -> ObjectId:
    return factories.settled(S.SENT, at=at, **fields)["_id"]


def report(
    notification_id: ObjectId,
    *,
    at: datetime,
    kind: ReceiptKind = ReceiptKind.SENT,
    attempt: int = 1,
    provider: str = "sendgrid",
) -> None:
    receipt = Receipt(
        reference=f"{notification_id}.email.{attempt}",
        provider_id=None,
        kind=kind,
        at=at,
        reason=None,
        event_id=f"{notification_id}:{kind}:{attempt}",
        address=None,
    )
    processor.apply_receipts([receipt], provider=provider, now=at)


def lose(**fields: Any) -> ObjectId:
    return factories.settled(S.UNKNOWN, **fields)["_id"]


def state(notification_id: ObjectId) -> tuple[str, datetime | None]:
    delivery = factories.delivery(factories.read(notification_id))
    return delivery["status"], delivery["next_attempt_at"]


def test_while_receipts_are_late_a_lost_answer_waits_for_its_own() -> None:
    lost = lose()
    report(sent(at=DUE - 4 * MINUTE), at=DUE - SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 0
    assert state(lost) == ("unknown", NOON + 4 * MINUTE - SECOND + 5 * MINUTE)
    report(lost, at=DUE + MINUTE)
    assert state(lost)[0] == "sent"


def test_wait_grows_with_the_lag_and_ends_after_four_times_the_usual_one() -> None:
    lost, now = lose(), DUE
    decided = [now]
    while state(lost)[0] == "unknown":
        report(sent(at=NOON), at=now)
        sweeper.resolve_unknown_outcomes(now=now)
        status, now = state(lost)[0], state(lost)[1] or now
        decided += [now] if status == "unknown" else []
    assert decided == [DUE, NOON + 10 * MINUTE, NOON + 15 * MINUTE, NOON + 20 * MINUTE]
    assert state(lost)[0] == "pending"


def test_one_fast_receipt_shows_that_receipts_are_in_time() -> None:
    lost = lose()
    report(sent(at=NOON), at=DUE - SECOND)
    report(sent(at=DUE - 10 * SECOND), at=DUE - 5 * SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 1
    assert state(lost) == ("pending", DUE)


@each_case(
    "fields",
    [
        {"kind": ReceiptKind.READ, "at": DUE - SECOND},
        {"at": DUE - 2 * MINUTE},
        {"attempt": 2, "at": DUE - SECOND},
        {"provider": "smtp", "at": DUE - SECOND},
    ],
)
def test_other_receipts_say_nothing_about_the_lag(fields: dict[str, Any]) -> None:
    """What people do later, old ones, those of a repeat, and those of another provider."""
    lost, known = lose(), sent(at=NOON)
    if fields.get("attempt") == 2:
        begun = factories.started(at=NOON)
        retry = factories.settlement(begun, S.PENDING, next_attempt_at=NOON)
        factories.leases.settle([retry], now=NOON)
        again = factories.start(factories.claim(begun.notification_id))
        factories.leases.settle([factories.settlement(again, S.SENT)], now=NOON)
        known = begun.notification_id
    report(known, **fields)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 1
    assert state(lost) == ("pending", DUE)


@each_case("is_reached", [True, False])
def test_message_that_arrived_waits_for_no_receipt(is_reached: bool) -> None:
    """On another device, or according to a record of the worker that was lost."""
    begun = factories.started(at=NOON, type="marketing")
    have = ("phone",) if is_reached else ()
    lost = factories.settlement(begun, S.UNKNOWN, accepted_targets=have)
    factories.leases.settle([lost], now=NOON)
    if not is_reached:
        record = {"$set": {"status": "sent", "finished_at": NOON}}
        collection("delivery_attempts").update_one({"_id": begun.reference}, record)
    report(sent(at=NOON), at=DUE - SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 1
    assert state(begun.notification_id)[0] == "sent"


def test_repeat_for_the_other_devices_waits_for_late_receipts() -> None:
    begun = factories.started(at=NOON)
    lost = factories.settlement(begun, S.UNKNOWN, accepted_targets=("phone",))
    factories.leases.settle([lost], now=NOON)
    report(sent(at=NOON), at=DUE - SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 0
    assert state(begun.notification_id)[0] == "unknown"


def test_delivery_that_would_expire_meanwhile_is_decided_at_once() -> None:
    lost = lose(expires_at=DUE + 3 * MINUTE)
    report(sent(at=NOON), at=DUE - SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 1
    assert state(lost) == ("pending", DUE)


def test_policy_that_forbids_a_repeat_waits_too() -> None:
    """Its plan would go on with the next channel, and the message may have arrived."""
    lost = lose(type="marketing")
    report(sent(at=NOON), at=DUE - SECOND)
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 0
    assert state(lost)[0] == "unknown"


def test_sweep_without_an_overdue_outcome_reads_no_receipts() -> None:
    lose()
    with plans("provider_events") as found:
        sweeper.resolve_unknown_outcomes(now=DUE - SECOND)
    assert found == []


def through_smtp(status: DeliveryStatus, *, at: datetime = NOON) -> ObjectId:
    begun = factories.started(at=at)
    factories.leases.settle([factories.settlement(begun, status, at=at, provider="smtp")], now=at)
    return begun.notification_id


def busy_next_to_a_small_provider() -> ObjectId:
    """Return a message with a lost answer of a small provider, whose newest receipt was late."""
    lost = through_smtp(S.UNKNOWN)
    report(through_smtp(S.SENT), at=DUE - 2 * SECOND, provider="smtp")
    for _ in range(4):
        report(sent(at=DUE - 3 * SECOND), at=DUE - SECOND)
    return lost


def test_receipts_of_a_busy_provider_hide_no_late_one_of_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(lag, "MAX_EVENTS", 3)
    lost = busy_next_to_a_small_provider()
    assert sweeper.resolve_unknown_outcomes(now=DUE) == 0
    assert state(lost)[0] == "unknown"


def test_newest_receipts_are_read_by_an_index_of_the_provider() -> None:
    busy_next_to_a_small_provider()
    with plans("provider_events") as found:
        sweeper.resolve_unknown_outcomes(now=DUE)
    assert [(plan.is_indexed, plan.sorts, plan.examined) for plan in found] == [(True, False, 1)]
