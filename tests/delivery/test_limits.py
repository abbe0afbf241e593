"""Limits in the pipeline: never more messages than a limit allows, and none is lost."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from random import Random
from typing import Any

import pytest
import redis
from bson import ObjectId

from delivery import limits as delivery_limits
from delivery import pipeline, sweeper, worker
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.states import Category, Priority
from notifications.catalog import limits
from notifications.queueing.fair_queue import FairQueue
from notifications.queueing.wakeups import DELIVER
from notifications.store import acceptance, actions, leases, limit_uses
from notifications.store.claims import LimitUse
from notifications.store.leases import LEASE
from notifyproject.db.collections import collection
from privacy import erasure
from tests.support.broker_messages import queued_messages
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.fakes.provider import (
    ScriptedProvider,
    channel_unavailable,
    provider_error,
    refused,
    timeout,
)
from tests.support.fakes.provider import accepted as taken
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL = Channel.EMAIL
DAY, HOUR, SECOND = timedelta(days=1), timedelta(hours=1), timedelta(seconds=1)
DAILY = {
    "types": [],
    "categories": [],
    "channels": ["email", "push", "whatsapp"],
    "max": 2,
    "period_seconds": 86_400,
    "min_gap_seconds": 0,
    "overflow": "later",
}


@pytest.fixture(autouse=True)
def daily() -> Iterator[None]:
    define()
    yield
    collection("limits").delete_many({})
    limits.invalidate_limits()


def define(name: str = "daily", **fields: Any) -> None:
    limits.define_limit(name, DAILY | fields, now=NOON)


def mail(**fields: Any) -> ObjectId:
    notification = factories.new(**{"user_id": "ada", **fields})
    acceptance.accept([notification], now=NOON)
    return notification.id


def mails(count: int, **fields: Any) -> list[ObjectId]:
    return [mail(**fields) for _ in range(count)]


def deliver(*ids: ObjectId, at: datetime = NOON, channel: Channel = EMAIL) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), ids, channel=channel, clock=lambda: at)


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id))


def statuses(*ids: ObjectId) -> list[str]:
    return [state(notification_id)["status"] for notification_id in ids]


def uses(limit: str = "daily", person: str = "user:ada") -> list[datetime]:
    counter = collection("limit_uses").find_one({"_id": f"{limit}/{person}"}) or {}
    return [use["at"] for use in counter.get("uses", ())]


def test_message_beyond_the_limit_waits_until_a_slot_is_free(fcm: ScriptedProvider) -> None:
    first, second, third = mails(3)
    deliver(first, at=NOON)
    deliver(second, at=NOON + HOUR)
    report = deliver(third, at=NOON + 2 * HOUR)
    assert statuses(first, second, third) == ["sent", "sent", "pending"]
    held = state(third)
    assert held["next_attempt_at"] == NOON + DAY
    assert (held["failure_code"], held["failure_reason"]) == (
        "over_limit",
        "2 of 2 in 1 day (limit daily).",
    )
    assert held["attempt_count"] == 0
    assert [wakeup.at for wakeup in report.wakeups] == [NOON + DAY]
    deliver(third, at=NOON + DAY)
    assert statuses(third) == ["sent"]
    assert len(fcm.seen) == 3
    assert uses() == [NOON + HOUR, NOON + DAY]


@pytest.mark.usefixtures("fcm")
def test_waiting_messages_keep_their_order() -> None:
    ids = mails(6)
    deliver(*ids)
    waits = [state(notification_id)["next_attempt_at"] for notification_id in ids[2:]]
    assert waits == [NOON + DAY, NOON + DAY, NOON + 2 * DAY, NOON + 2 * DAY]
    late = mail()
    # A newcomer doesn't take the slot of one that waits and isn't claimed yet.
    deliver(late, at=NOON + DAY + SECOND)
    assert statuses(late) == ["pending"]
    deliver(ids[2], ids[3], at=NOON + DAY + 2 * SECOND)
    assert statuses(*ids[2:4]) == ["sent", "sent"]


@pytest.mark.usefixtures("fcm")
def test_eleventh_message_that_would_wait_is_suppressed() -> None:
    ids = mails(13)
    deliver(*ids)
    assert statuses(*ids) == ["sent"] * 2 + ["pending"] * 10 + ["suppressed"]
    reason = "2 of 2 in 1 day (limit daily). Ten other messages wait."
    assert state(ids[-1])["failure_reason"] == reason


@pytest.mark.usefixtures("fcm")
def test_limit_that_drops_suppresses() -> None:
    define(overflow="drop")
    ids = mails(3)
    deliver(*ids)
    assert statuses(*ids) == ["sent", "sent", "suppressed"]
    assert state(ids[2])["failure_code"] == "over_limit"


@pytest.mark.usefixtures("fcm")
def test_message_that_expires_before_its_slot_ends_as_expired() -> None:
    sent = mails(2)
    deliver(*sent)
    notification_id = mail(expires_at=NOON + HOUR)
    deliver(notification_id)
    assert statuses(notification_id) == ["expired"]
    after = mail()
    deliver(after)
    # It left the line: the next one has the first slot.
    assert state(after)["next_attempt_at"] == NOON + DAY


@pytest.mark.usefixtures("fcm")
def test_least_gap_spreads_a_burst() -> None:
    define(max=10, min_gap_seconds=600)
    ids = mails(3)
    deliver(*ids)
    assert statuses(*ids) == ["sent", "pending", "pending"]
    waits = [state(notification_id)["next_attempt_at"] for notification_id in ids[1:]]
    assert waits == [NOON + timedelta(minutes=10), NOON + timedelta(minutes=20)]
    deliver(ids[1], ids[2], at=waits[0])
    assert statuses(*ids) == ["sent", "sent", "pending"]


@pytest.mark.parametrize(
    "fields", [{"priority": Priority.CRITICAL}, {"is_test": True}], ids=["critical", "test"]
)
@pytest.mark.usefixtures("fcm")
def test_exempt_message_is_not_counted(fields: dict[str, Any]) -> None:
    ids = mails(3, **fields)
    deliver(*ids)
    assert uses() == []
    assert all(
        state(notification_id).get("failure_code") != "over_limit" for notification_id in ids
    )


@pytest.mark.usefixtures("fcm")
def test_message_that_ignores_limits_is_sent_and_counted() -> None:
    deliver(*mails(2))
    notification_id = mail(ignores_limits=True)
    deliver(notification_id, at=NOON + SECOND)
    assert statuses(notification_id) == ["sent"]
    assert len(uses()) == 3


@pytest.mark.usefixtures("fcm")
def test_every_limit_must_allow_a_message_and_refused_ones_count_nowhere() -> None:
    define("weekly", max=1, period_seconds=604_800, categories=["marketing"])
    first, second = mails(2, category=Category.MARKETING)
    deliver(first, second)
    assert statuses(first, second) == ["sent", "pending"]
    assert state(second)["next_attempt_at"] == NOON + 7 * DAY
    assert (len(uses("daily")), len(uses("weekly"))) == (1, 1)


def due(notification_id: ObjectId) -> datetime:
    return state(notification_id)["next_attempt_at"]


def run(ids: list[ObjectId], *, steps: int = 200) -> dict[ObjectId, datetime]:
    """Dispatch each delivery when it is due. Return when each was sent."""
    for _ in range(steps):
        waiting = [
            notification_id
            for notification_id in ids
            if state(notification_id)["status"] == "pending"
        ]
        if not waiting:
            break
        at = min(map(due, waiting))
        deliver(
            *reversed(
                [notification_id for notification_id in waiting if due(notification_id) <= at]
            ),
            at=at,
        )
    assert set(statuses(*ids)) == {"sent"}
    return {notification_id: state(notification_id)["sent_at"] for notification_id in ids}


@pytest.mark.usefixtures("fcm")
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")], ids=["short first", "long first"])
def test_two_limits_keep_the_order_and_use_each_free_slot(names: tuple[str, str]) -> None:
    collection("limits").delete_many({})
    define(names[0], max=1, period_seconds=60)
    define(names[1], max=2, period_seconds=604_800)
    ids = mails(4)
    deliver(*reversed(ids))
    minute = timedelta(minutes=1)
    plans = [NOON + minute, NOON + 7 * DAY, NOON + 7 * DAY + minute]
    assert statuses(*ids) == ["sent", "pending", "pending", "pending"]
    assert [due(notification_id) for notification_id in ids[1:]] == plans
    assert [state(notification_id)["failure_reason"] for notification_id in ids[1:]] == [
        f"1 of 1 in 1 minute (limit {names[0]}).",
        f"1 of 2 in 7 days, 1 waits before it (limit {names[1]}).",
        f"1 of 2 in 7 days, 2 wait before it (limit {names[1]}).",
    ]
    assert list(run(ids).values()) == [NOON, *plans]


MINUTE = timedelta(minutes=1)
KINDS = {"both": ("new_sale", Category.MARKETING), "one": ("order_shipped", Category.TRANSACTIONAL)}


def plan_by_hand(
    rules: Sequence[Mapping[str, int]], kinds: Sequence[str], arrivals: Sequence[int]
) -> list[int]:
    """Return the minute of each message: the first that suits it and all that came before it."""
    planned: list[tuple[int, str]] = []
    for kind, arrival in zip(kinds, arrivals, strict=True):
        minute = arrival
        own = rules if kind == "both" else rules[1:]
        while True:
            is_free = True
            for rule, counted in zip(own, _counted(own, rules, planned), strict=True):
                near = sorted([*counted, minute])
                for start in near:
                    span = [m for m in near if start <= m < start + rule["period"]]
                    if start <= minute < start + rule["period"] and len(span) > rule["max"]:
                        is_free = False
                is_free &= all(abs(minute - other) >= rule["gap"] for other in counted)
            if is_free:
                break
            minute += 1
        planned.append((minute, kind))
    return [minute for minute, _ in planned]


def _counted(
    own: Sequence[Mapping[str, int]],
    rules: Sequence[Mapping[str, int]],
    planned: Sequence[tuple[int, str]],
) -> list[list[int]]:
    return [
        [minute for minute, kind in planned if rule is rules[1] or kind == "both"] for rule in own
    ]


@pytest.mark.usefixtures("fcm")
@pytest.mark.parametrize("seed", range(8))
def test_random_pairs_of_limits_send_as_planned_by_hand(seed: int) -> None:
    random = Random(seed)
    collection("limits").delete_many({})
    rules = [
        {
            "max": (most := random.randint(1, 3)),
            "period": (period := random.choice([1, 3, 10, 60])),
            "gap": random.randint(0, period // most),
        }
        for _ in range(2)
    ]
    names = random.sample(["alpha", "omega"], 2)
    for name, rule, categories in zip(names, rules, (["marketing"], []), strict=True):
        define(
            name,
            max=rule["max"],
            period_seconds=rule["period"] * 60,
            min_gap_seconds=rule["gap"] * 60,
            categories=categories,
        )
    kinds = [random.choice(list(KINDS)) for _ in range(7)]
    arrivals = sorted(random.choice([0, 0, 1, 2, 5]) for _ in kinds)
    ids = []
    for kind, arrival in zip(kinds, arrivals, strict=True):
        slug, category = KINDS[kind]
        at = NOON + arrival * MINUTE
        ids.append(mail(type=slug, category=category, send_at=at, created_at=at))
    sent = run(ids)
    minutes = [(at - NOON) // MINUTE for at in sent.values()]
    assert minutes == plan_by_hand(rules, kinds, arrivals), (rules, kinds, arrivals)


def test_message_that_failed_keeps_its_place_until_its_retry(fcm: ScriptedProvider) -> None:
    define(max=1)
    first, second = mails(2)
    fcm.always(provider_error)
    deliver(first)
    fcm.always(taken)
    deliver(second, at=NOON + SECOND)
    retry_at = due(first)
    assert statuses(first, second) == ["pending", "pending"]
    assert due(second) == retry_at + DAY
    assert state(second)["failure_reason"] == "0 of 1 in 1 day, 1 waits before it (limit daily)."
    deliver(first, at=retry_at)
    assert statuses(first) == ["sent"]


def test_message_held_by_an_outage_takes_no_slot(fcm: ScriptedProvider) -> None:
    define(max=1)
    first, second = mails(2)
    fcm.always(channel_unavailable)
    deliver(first)
    fcm.always(taken)
    # The circuit's probe.
    deliver(second, at=NOON + HOUR)
    assert statuses(first, second) == ["pending", "sent"]


@pytest.mark.usefixtures("fcm")
def test_those_behind_a_cancelled_message_move_up() -> None:
    define(max=1)
    ids = mails(4)
    deliver(*ids)
    assert [due(notification_id) for notification_id in ids[1:]] == [
        NOON + DAY,
        NOON + 2 * DAY,
        NOON + 3 * DAY,
    ]
    actions.cancel(notification_id=ids[1], channels=[EMAIL], reason="Wrong.", now=NOON + HOUR)
    late = mail()
    deliver(late, at=NOON + HOUR)
    sent = run([*ids[2:], late])
    assert list(sent.values()) == [NOON + DAY, NOON + 2 * DAY, NOON + 3 * DAY]


@pytest.mark.usefixtures("fcm", "valkey_anew")
@pytest.mark.parametrize("is_pulled", [False, True])
def test_those_that_move_up_are_woken(is_pulled: bool, broker: redis.Redis) -> None:
    define(max=1, period_seconds=3_600)
    other_client = ObjectId("d" * 24)
    first, cancelled = mails(2)
    high = mail(client_id=other_client, priority=Priority.HIGH)
    deliver(first, cancelled, high)
    assert due(high) == NOON + 2 * HOUR
    actions.cancel(notification_id=cancelled, channels=[EMAIL], reason="Wrong.", now=NOON)
    late, at = mail(), NOON + SECOND
    if is_pulled:
        queue = FairQueue(factories.CLIENT, EMAIL, Priority.NORMAL)
        assert worker.pull(SendingRuntime(), queue, None, clock=lambda: at) == 1
    else:
        worker.handle_wakeup(
            SendingRuntime(), [late], channel=EMAIL, priority=Priority.NORMAL, clock=lambda: at
        )
    (message,) = queued_messages(broker, "email.high")
    assert (message.task, message.ids, message.eta) == (DELIVER, [high], None)


@pytest.mark.parametrize("behaviour", [refused, provider_error, channel_unavailable])
def test_certain_failure_gives_the_use_back(fcm: ScriptedProvider, behaviour: Any) -> None:
    fcm.always(behaviour)
    deliver(mail())
    assert uses() == []


def test_unknown_outcome_keeps_the_use(fcm: ScriptedProvider) -> None:
    fcm.always(timeout)
    notification_id = mail()
    deliver(notification_id)
    assert statuses(notification_id) == ["unknown"]
    assert uses() == [NOON]


def test_retry_counts_once(fcm: ScriptedProvider) -> None:
    fcm.always(provider_error)
    notification_id = mail()
    deliver(notification_id)
    fcm.always(taken)
    later = state(notification_id)["next_attempt_at"]
    deliver(notification_id, at=later)
    assert statuses(notification_id) == ["sent"]
    assert uses() == [later]


def test_refused_retry_keeps_the_use_of_a_message_that_may_have_arrived(
    fcm: ScriptedProvider,
) -> None:
    define(max=1)
    fcm.always(timeout)
    first, urgent = mail(type="payment_confirmed"), mail(ignores_limits=True)
    deliver(first)
    fcm.always(taken)
    deliver(urgent, at=NOON + HOUR)
    deadline = state(first)["next_attempt_at"]
    sweeper.resolve_unknown_outcomes(now=deadline)
    deliver(first, at=deadline)
    assert statuses(first, urgent) == ["pending", "sent"]
    assert state(first)["next_attempt_at"] == NOON + HOUR + DAY
    assert uses() == [NOON, NOON + HOUR]


def test_claim_after_a_lost_worker_takes_its_use_over(fcm: ScriptedProvider) -> None:
    notification_id = mail()
    claimed = leases.claim(ids=[notification_id], channel=EMAIL, worker="lost", now=NOON)
    delivery_limits.apply_limits(claimed, now=NOON)
    assert uses() == [NOON]
    later = NOON + LEASE + SECOND
    sweeper.recover_expired_leases(now=later)
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=lambda: later)
    assert statuses(notification_id) == ["sent"]
    assert uses() == [later]
    assert len(fcm.seen) == 1


def test_unwritable_counter_delays_and_never_drops(fcm: ScriptedProvider) -> None:
    notification_id = mail()
    with fail_commands("update", "limit_uses", {"errorCode": 121}, times=9):
        deliver(notification_id)
    assert statuses(notification_id) == ["pending"]
    assert state(notification_id)["next_attempt_at"] == NOON + timedelta(seconds=30)
    assert fcm.seen == []
    deliver(notification_id, at=NOON + timedelta(seconds=30))
    assert statuses(notification_id) == ["sent"]


def test_recipient_without_user_id_is_counted_by_address(fcm: ScriptedProvider) -> None:
    ids = mails(3, user_id=None)
    deliver(*ids)
    assert statuses(*ids) == ["sent", "sent", "pending"]
    stored = str(list(collection("limit_uses").find()))
    assert "ada@example.com" not in stored
    assert len(fcm.seen) == 2


def test_32_threads_never_exceed_the_limit(fcm: ScriptedProvider) -> None:
    define(max=5)
    ids = mails(32)
    at_once(*(partial(deliver, notification_id) for notification_id in ids))
    assert len(fcm.seen) == 5
    assert sorted(statuses(*ids)) == ["pending"] * 10 + ["sent"] * 5 + ["suppressed"] * 17


@pytest.mark.usefixtures("fcm")
def test_recipient_may_be_stricter_and_never_laxer() -> None:
    person = limits.person_of_user("ada")
    for own in ({"max": 9, "min_gap_seconds": 0}, {"max": 1, "min_gap_seconds": 7_200}):
        limit_uses.set_stricter("daily", person=person, user_id="ada", own=own, now=NOON)
        ids = mails(3)
        deliver(*ids)
        assert statuses(*ids).count("sent") == min(own["max"], 2)
        assert state(ids[-1])["next_attempt_at"] > NOON + DAY - SECOND
        collection("limit_uses").update_one({}, {"$set": {"uses": [], "waiting": []}})
    [counter] = collection("limit_uses").find()
    # It must outlive the period.
    assert "purge_at" not in counter
    limit_uses.set_stricter("daily", person=person, user_id="ada", own=None, now=NOON)
    ids = mails(2)
    deliver(*ids)
    assert statuses(*ids) == ["sent", "sent"]


@pytest.mark.usefixtures("fcm")
def test_own_gap_spreads_messages() -> None:
    person = limits.person_of_user("ada")
    own = {"min_gap_seconds": 3_600}
    limit_uses.set_stricter("daily", person=person, user_id="ada", own=own, now=NOON)
    ids = mails(2)
    deliver(*ids)
    assert statuses(*ids) == ["sent", "pending"]
    assert state(ids[1])["next_attempt_at"] == NOON + HOUR
    deliver(ids[1], at=NOON + HOUR)
    assert statuses(*ids) == ["sent", "sent"]


@pytest.mark.usefixtures("fcm")
def test_erased_recipient_has_no_counters() -> None:
    deliver(mail())
    assert uses()
    erasure.erase("ada", now=NOON)
    assert list(collection("limit_uses").find()) == []


def test_contested_counter_holds_only_its_own_messages(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    decide = limit_uses._decide

    def decide_while_others_write(request: Any, *others: Any) -> Any:
        if request.person == "user:ada":
            match, rival = {"_id": "daily/user:ada"}, {"d": str(ObjectId()), "at": NOON}
            collection("limit_uses").update_one(match, {"$push": {"uses": rival}}, upsert=True)
        return decide(request, *others)

    monkeypatch.setattr(limit_uses, "_decide", decide_while_others_write)
    monkeypatch.setattr(limit_uses, "PAUSE_SECONDS", 0)
    ada, ben, code = mail(), mail(user_id="ben"), mail(user_id="ada", priority=Priority.CRITICAL)
    deliver(ada, ben, code)
    assert statuses(ada, ben, code) == ["pending", "sent", "sent"]
    assert state(ada)["next_attempt_at"] == NOON + timedelta(seconds=2)


def test_line_is_bounded_in_an_outage() -> None:
    key = limit_uses.delivery_key(ObjectId(), "email")
    entries = [{"d": f"{n}.email", "until": NOON, "due": NOON} for n in range(500)]
    use = {"d": key, "at": NOON}
    collection("limit_uses").insert_one(
        {"_id": "daily/user:ada", "uses": [use], "waiting": entries}
    )
    given = LimitUse("daily/user:ada", key, NOON)
    limit_uses.give_back([(given, NOON, NOON + timedelta(hours=1))])
    counter = collection("limit_uses").find_one({"_id": "daily/user:ada"}) or {}
    assert len(counter["waiting"]) == limit_uses.MAX_PLACES
    assert counter["waiting"][-1]["d"] == key
