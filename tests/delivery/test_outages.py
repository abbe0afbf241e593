"""Long provider outages, simulated: no delivery is lost."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import circuit_breaker, pipeline, send_loop
from delivery.circuit_breaker import MAX_WAIT, CircuitReporter
from delivery.runtime import SendingRuntime
from devices.models import Platform
from domain.channels import Channel
from notifyproject.db.collections import collection
from providers.contract import SendRequest
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import (
    NOON,
    accepted,
    device,
    mails,
    stored_device,
    tries,
)
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    channel_unavailable,
    invalid_token,
    provider_error,
    rate_limited,
)
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL, PUSH = Channel.EMAIL, Channel.PUSH
CODE = "channel_unavailable"
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)


@pytest.fixture(autouse=True)
def _no_rate_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold rate-limited deliveries at once: in these tests, no time passes during a batch."""
    monkeypatch.setattr(send_loop, "RATE_WAIT_SECONDS", 0.0)


class WorkerSimulation:
    """Workers that dispatch due deliveries again and again as time passes."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.now = NOON
        self.sent: dict[ObjectId, datetime] = {}

    def run(self, ids: Sequence[ObjectId], *, until: datetime, step: timedelta) -> None:
        """Dispatch whenever something is due, in steps, until a time."""
        while self.now <= until and (waiting := self._waiting(ids)):
            if min(waiting.values()) <= self.now:
                pipeline.dispatch(
                    SendingRuntime(), ids, channel=self.channel, clock=lambda: self.now
                )
                self._note_sent(ids)
            due = min(self._waiting(ids).values(), default=self.now)
            self.now += step * max(math.ceil((due - self.now) / step), 1)
        self.now = min(self.now, until + step)

    def _waiting(self, ids: Sequence[ObjectId]) -> dict[ObjectId, datetime]:
        found = collection("notifications").find({"_id": {"$in": list(ids)}}, {"due_at": 1})
        return {document["_id"]: document["due_at"] for document in found if "due_at" in document}

    def _note_sent(self, ids: Sequence[ObjectId]) -> None:
        sent = {"channel": self.channel.value, "status": "sent"}
        wanted = {"_id": {"$in": list(ids)}, "delivery": {"$elemMatch": sent}}
        for document in collection("notifications").find(wanted, {"_id": 1}):
            self.sent.setdefault(document["_id"], self.now)

    def state(self, notification_id: ObjectId) -> dict[str, Any]:
        return factories.delivery(factories.read(notification_id), self.channel)

    def attempts_used(self, notification_id: ObjectId) -> int:
        delivery = self.state(notification_id)
        used: int = delivery["attempt_count"] - delivery["uncounted_attempts"]
        return used


def pushes(count: int) -> list[ObjectId]:
    return [accepted(channels=[PUSH])["_id"] for _ in range(count)]


def test_outage_of_an_hour_uses_no_attempt_and_loses_nothing(fcm: ScriptedProvider) -> None:
    simulation, outage_end = WorkerSimulation(EMAIL), NOON + HOUR

    def fail_for_an_hour(_outbound: SendRequest) -> Outcome:
        return channel_unavailable() if simulation.now < outage_end else taken()

    fcm.behave = fail_for_an_hour
    ids = mails(110)
    simulation.run(ids, until=outage_end - SECOND, step=30 * SECOND)
    assert simulation.sent == {}
    assert {simulation.attempts_used(notification_id) for notification_id in ids} == {0}
    # The first batch, and then one probe after each wait of the circuit.
    assert len(fcm.seen) <= 100 + 10
    simulation.run(ids, until=outage_end + MAX_WAIT + MINUTE, step=30 * SECOND)
    assert set(simulation.sent) == set(ids)
    assert {simulation.attempts_used(notification_id) for notification_id in ids} == {1}
    # Each was taken once: the attempts before that one were refused.
    wanted = {"status": "sent", "notification_id": {"$in": ids}}
    found = collection("delivery_attempts").find(wanted, {"notification_id": 1})
    assert Counter(record["notification_id"] for record in found) == dict.fromkeys(ids, 1)


def test_failing_provider_gets_nothing_after_20_failures(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 4
    fcm.always(provider_error)
    ids = mails(120)
    simulation = WorkerSimulation(EMAIL)
    simulation.run(ids, until=NOON, step=MINUTE)
    failed = [
        notification_id for notification_id in ids if simulation.attempts_used(notification_id) == 1
    ]
    waiting = [
        notification_id
        for notification_id in ids
        if simulation.state(notification_id)["attempt_count"] == 0
    ]
    assert len(failed) + len(waiting) == 120
    assert len(fcm.seen) == len(failed) <= 100
    assert len(waiting) >= 20


def test_rate_limit_delays_deliveries_and_loses_none(fcm: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"fcm": (3.0, 3)}
    ids = mails(10)
    simulation = WorkerSimulation(EMAIL)
    simulation.run(ids, until=NOON, step=SECOND)
    assert len(simulation.sent) == len(fcm.seen) == 3
    waiting = [
        simulation.state(notification_id)
        for notification_id in ids
        if notification_id not in simulation.sent
    ]
    assert {(d["status"], d["failure_code"], d["attempt_count"]) for d in waiting} == {
        ("pending", "rate_limited", 0)
    }
    simulation.run(ids, until=NOON + 5 * SECOND, step=SECOND)
    assert set(simulation.sent) == set(ids)
    assert Counter(simulation.sent.values()) == {
        NOON: 3,
        **{NOON + n * SECOND: 3 for n in (1, 2)},
    } | {NOON + 3 * SECOND: 1}
    assert len(fcm.seen) == 10


def test_rate_limited_response_slows_sending_only(fcm: ScriptedProvider, settings: Any) -> None:
    settings.PROVIDER_RATES = {"fcm": (20.0, 20)}
    simulation = WorkerSimulation(EMAIL)

    def rate_limited_at_first(_outbound: SendRequest) -> Outcome:
        return rate_limited(retry_after=60) if simulation.now == NOON else taken()

    fcm.behave = rate_limited_at_first
    ids = mails(60)
    simulation.run(ids, until=NOON + 59 * SECOND, step=SECOND)
    # The deliveries in flight, and then none until retry_after has passed.
    assert (len(fcm.seen), simulation.sent) == (10, {})
    simulation.run(ids, until=NOON + 10 * MINUTE, step=SECOND)
    assert set(simulation.sent) == set(ids)
    in_a_second = Counter(simulation.sent.values())
    assert max([in_a_second[NOON + n * SECOND] for n in (60, 61, 62)]) <= 10


@pytest.fixture
def apple_unavailable(fcm: ScriptedProvider) -> ScriptedProvider:
    """Make FCM refuse iOS devices only."""

    def behave(outbound: SendRequest) -> Outcome:
        return channel_unavailable(scope="ios") if outbound.platform == "ios" else taken()

    fcm.behave = behave
    return fcm


def test_blocked_platform_does_not_delay_others(apple_unavailable: ScriptedProvider) -> None:
    device("phone", platform=Platform.ANDROID, user_id="bob")
    device("tablet", platform=Platform.IOS, user_id="ada")
    bobs = accepted(channels=[PUSH], user_id="bob")["_id"]
    first, second = pushes(2)
    simulation = WorkerSimulation(PUSH)
    simulation.run([first], until=NOON, step=SECOND)
    simulation.run([bobs, second], until=NOON + SECOND, step=SECOND)
    assert list(simulation.sent) == [bobs]
    assert [o.platform for o in apple_unavailable.seen] == ["ios", "android"]
    assert simulation.state(second)["failure_code"] == "channel_unavailable"
    assert {simulation.attempts_used(notification_id) for notification_id in (first, second)} == {0}


def test_accepted_device_is_immediate_and_the_blocked_one_gets_it_later(
    apple_unavailable: ScriptedProvider,
) -> None:
    phone = device("phone", platform=Platform.ANDROID)
    tablet = device("tablet", platform=Platform.IOS)
    first, second = pushes(2)
    simulation = WorkerSimulation(PUSH)
    simulation.run([first], until=NOON, step=SECOND)
    simulation.run([second], until=NOON + SECOND, step=SECOND)
    assert tries(first) == {(1, phone): ("sent", None), (1, tablet): ("failed", CODE)}
    assert tries(second) == {(1, phone): ("sent", None)}
    for notification_id in (first, second):
        assert simulation.state(notification_id)["accepted_targets"] == [phone]
        assert (
            simulation.state(notification_id)["status"],
            simulation.attempts_used(notification_id),
        ) == ("pending", 0)
    apple_unavailable.always(taken)
    simulation.run([first, second], until=NOON + 2 * HOUR, step=30 * SECOND)
    assert set(simulation.sent) == {first, second}
    assert max(simulation.sent.values()) <= NOON + 3 * MINUTE
    assert Counter(o.recipient for o in apple_unavailable.seen) == {"phone": 2, "tablet": 3}
    assert stored_device(tablet)["is_active"]


def test_push_for_a_blocked_platform_ends_after_72_hours(
    apple_unavailable: ScriptedProvider,
) -> None:
    device("phone", platform=Platform.ANDROID)
    device("tablet", platform=Platform.IOS)
    only_ios = accepted(channels=[PUSH], user_id="bob")["_id"]
    device("bobs", platform=Platform.IOS, user_id="bob")
    (both,) = pushes(1)
    simulation = WorkerSimulation(PUSH)
    simulation.run([both, only_ios], until=NOON + 73 * HOUR, step=20 * MINUTE)
    assert simulation.state(both)["status"] == "sent"
    assert NOON + 71 * HOUR < simulation.sent[both] < NOON + 73 * HOUR
    assert (simulation.state(only_ios)["status"], simulation.state(only_ios)["failure_code"]) == (
        "failed",
        CODE,
    )
    assert Counter(o.recipient for o in apple_unavailable.seen)["phone"] == 1
    # A platform's circuit allows one probe at a time, at least every 15 minutes.
    assert sum(o.platform == "ios" for o in apple_unavailable.seen) <= 73 * 4 + 10


@pytest.mark.parametrize("answer", [taken, invalid_token])
def test_one_push_probes_ios(
    apple_unavailable: ScriptedProvider, answer: Callable[[], Outcome]
) -> None:
    for user in ("ada", "bob", "eve"):
        device(f"{user}s", platform=Platform.IOS, user_id=user)
    ids = [accepted(channels=[PUSH], user_id=user)["_id"] for user in ("ada", "bob", "eve")]
    ios = f"{apple_unavailable.account}/ios"
    CircuitReporter().trip(ios, now=NOON - circuit_breaker.FIRST_WAIT, retry_after=None)
    apple_unavailable.always(answer)
    pipeline.dispatch(SendingRuntime(), ids, channel=PUSH, clock=lambda: NOON)
    assert len(apple_unavailable.seen) == 1
    assert circuit_breaker.request_permissions([ios], now=NOON)[ios] == circuit_breaker.Allowed()
