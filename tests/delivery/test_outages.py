"""Hours of trouble with a provider, lived through in passed-in time: nothing is lost."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import circuit_breaker, dispatcher
from delivery.circuit_breaker import MAX_WAIT
from devices.models import Platform
from domain.states import Channel
from notifyproject.db.collections import collection
from providers.contract import SendRequest
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, accepted, device, stored_device, tries
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


class Days:
    """Workers that look at what is due, again and again, as time goes by."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.now = NOON
        self.sent: dict[ObjectId, datetime] = {}

    def live(self, ids: Sequence[ObjectId], *, until: datetime, step: timedelta) -> None:
        """Look whenever something is due, every ``step`` at most; until then at the latest."""
        while self.now <= until and (waiting := self._waiting(ids)):
            if min(waiting.values()) <= self.now:
                dispatcher.dispatch(ids, channel=self.channel, clock=lambda: self.now)
                self._note_sent(ids)
            due = min(self._waiting(ids).values(), default=self.now)
            self.now += step * max(math.ceil((due - self.now) / step), 1)
        self.now = min(self.now, until + step)

    def _waiting(self, ids: Sequence[ObjectId]) -> dict[ObjectId, datetime]:
        """Return when each that is open is due."""
        found = collection("notifications").find({"_id": {"$in": list(ids)}}, {"due_at": 1})
        return {document["_id"]: document["due_at"] for document in found if "due_at" in document}

    def _note_sent(self, ids: Sequence[ObjectId]) -> None:
        sent = {"channel": self.channel.value, "status": "sent"}
        wanted = {"_id": {"$in": list(ids)}, "delivery": {"$elemMatch": sent}}
        for document in collection("notifications").find(wanted, {"_id": 1}):
            self.sent.setdefault(document["_id"], self.now)

    def state(self, notification_id: ObjectId) -> dict[str, Any]:
        """Return how a delivery stands."""
        return factories.delivery(factories.read(notification_id), self.channel)

    def attempts_used(self, notification_id: ObjectId) -> int:
        """Return the attempts that count."""
        delivery = self.state(notification_id)
        used: int = delivery["attempt_count"] - delivery["excused_count"]
        return used


def mails(count: int) -> list[ObjectId]:
    return [accepted()["_id"] for _ in range(count)]


def pushes(count: int) -> list[ObjectId]:
    return [accepted(channels=[PUSH])["_id"] for _ in range(count)]


def test_a_channel_that_is_unavailable_for_an_hour_uses_up_no_attempt_and_loses_nothing(
    fcm: ScriptedProvider,
) -> None:
    days, over = Days(EMAIL), NOON + HOUR

    def away_for_an_hour(_outbound: SendRequest) -> Outcome:
        return channel_unavailable() if days.now < over else taken()

    fcm.behave = away_for_an_hour
    ids = mails(200)
    days.live(ids, until=over - SECOND, step=30 * SECOND)
    assert days.sent == {}
    assert {days.attempts_used(one) for one in ids} == {0}
    # The first batch, and then one message whenever the circuit's wait was over.
    assert len(fcm.seen) <= 100 + 10
    days.live(ids, until=over + MAX_WAIT + MINUTE, step=30 * SECOND)
    assert set(days.sent) == set(ids)
    assert {days.attempts_used(one) for one in ids} == {1}
    # Each was taken once: the attempts before that one were refused.
    wanted = {"status": "sent", "notification_id": {"$in": ids}}
    found = collection("delivery_attempts").find(wanted, {"notification_id": 1})
    assert Counter(record["notification_id"] for record in found) == dict.fromkeys(ids, 1)


def test_a_provider_in_trouble_is_left_alone_after_twenty_failures(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.WORKER_THREADS = 4
    fcm.always(provider_error)
    ids = mails(120)
    days = Days(EMAIL)
    days.live(ids, until=NOON, step=MINUTE)
    failed = [one for one in ids if days.attempts_used(one) == 1]
    waiting = [one for one in ids if days.state(one)["attempt_count"] == 0]
    assert len(failed) + len(waiting) == 120
    assert len(fcm.seen) == len(failed) <= 100
    assert len(waiting) >= 20


def test_what_a_rate_has_no_room_for_is_sent_later_and_none_is_lost(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"fcm": (3.0, 3)}
    ids = mails(10)
    days = Days(EMAIL)
    days.live(ids, until=NOON, step=SECOND)
    assert len(days.sent) == len(fcm.seen) == 3
    waiting = [days.state(one) for one in ids if one not in days.sent]
    assert {(d["status"], d["failure_code"], d["attempt_count"]) for d in waiting} == {
        ("pending", "rate_limited", 0)
    }
    days.live(ids, until=NOON + 5 * SECOND, step=SECOND)
    assert set(days.sent) == set(ids)
    assert Counter(days.sent.values()) == {NOON: 3, **{NOON + n * SECOND: 3 for n in (1, 2)}} | {
        NOON + 3 * SECOND: 1
    }
    assert len(fcm.seen) == 10


def test_a_provider_that_says_it_is_too_much_is_sent_less_and_everything_in_the_end(
    fcm: ScriptedProvider, settings: Any
) -> None:
    settings.PROVIDER_RATES = {"fcm": (20.0, 20)}
    days = Days(EMAIL)

    def too_much_at_first(_outbound: SendRequest) -> Outcome:
        return rate_limited(retry_after=60) if days.now == NOON else taken()

    fcm.behave = too_much_at_first
    ids = mails(60)
    days.live(ids, until=NOON + 59 * SECOND, step=SECOND)
    # Those that were on their way; then nothing for as long as the provider asked.
    assert (len(fcm.seen), days.sent) == (10, {})
    days.live(ids, until=NOON + 10 * MINUTE, step=SECOND)
    assert set(days.sent) == set(ids)
    in_a_second = Counter(days.sent.values())
    first_seconds = [in_a_second[NOON + n * SECOND] for n in (60, 61, 62)]
    assert max(first_seconds) <= 10


# Apple's keys are wrong, and Google is well.


@pytest.fixture
def apple_away(fcm: ScriptedProvider) -> ScriptedProvider:
    """Have FCM refuse iOS devices, and nobody else."""

    def behave(outbound: SendRequest) -> Outcome:
        return channel_unavailable(scope="ios") if outbound.platform == "ios" else taken()

    fcm.behave = behave
    return fcm


def test_a_platform_in_trouble_holds_nobody_else_up(apple_away: ScriptedProvider) -> None:
    device("phone", platform=Platform.ANDROID, user_id="bob")
    device("tablet", platform=Platform.IOS, user_id="ada")
    to_bob = accepted(channels=[PUSH], user_id="bob")["_id"]
    to_ada, also_to_ada = pushes(2)
    days = Days(PUSH)
    days.live([to_ada], until=NOON, step=SECOND)
    days.live([to_bob, also_to_ada], until=NOON + SECOND, step=SECOND)
    assert list(days.sent) == [to_bob]
    assert [o.platform for o in apple_away.seen] == ["ios", "android"]
    assert days.state(also_to_ada)["failure_code"] == "channel_unavailable"
    assert {days.attempts_used(one) for one in (to_ada, also_to_ada)} == {0}


def test_a_person_with_both_has_it_on_one_at_once_and_on_the_other_when_it_is_well(
    apple_away: ScriptedProvider,
) -> None:
    phone = device("phone", platform=Platform.ANDROID)
    tablet = device("tablet", platform=Platform.IOS)
    first, second = pushes(2)
    days = Days(PUSH)
    days.live([first], until=NOON, step=SECOND)
    days.live([second], until=NOON + SECOND, step=SECOND)
    assert tries(first) == {(1, phone): ("sent", None), (1, tablet): ("failed", CODE)}
    assert tries(second) == {(1, phone): ("sent", None)}
    for one in (first, second):
        assert days.state(one)["accepted_targets"] == [phone]
        assert (days.state(one)["status"], days.attempts_used(one)) == ("pending", 0)
    apple_away.always(taken)
    days.live([first, second], until=NOON + 2 * HOUR, step=30 * SECOND)
    assert set(days.sent) == {first, second}
    assert max(days.sent.values()) <= NOON + 3 * MINUTE
    assert Counter(o.recipient for o in apple_away.seen) == {"phone": 2, "tablet": 3}
    assert stored_device(tablet)["is_active"]


def test_keys_that_stay_wrong_for_days_do_not_keep_a_push_open_for_ever(
    apple_away: ScriptedProvider,
) -> None:
    device("phone", platform=Platform.ANDROID)
    device("tablet", platform=Platform.IOS)
    lonely = accepted(channels=[PUSH], user_id="bob")["_id"]
    device("bobs", platform=Platform.IOS, user_id="bob")
    (both,) = pushes(1)
    days = Days(PUSH)
    days.live([both, lonely], until=NOON + 73 * HOUR, step=20 * MINUTE)
    assert days.state(both)["status"] == "sent"
    assert NOON + 71 * HOUR < days.sent[both] < NOON + 73 * HOUR
    assert (days.state(lonely)["status"], days.state(lonely)["failure_code"]) == ("failed", CODE)
    assert Counter(o.recipient for o in apple_away.seen)["phone"] == 1
    # A platform's circuit lets one message try at a time, at least every quarter of an hour.
    assert sum(o.platform == "ios" for o in apple_away.seen) <= 73 * 4 + 10


@pytest.mark.parametrize("answer", [taken, invalid_token])
def test_one_push_finds_out_whether_a_platform_is_well(
    apple_away: ScriptedProvider, answer: Callable[[], Outcome]
) -> None:
    for user in ("ada", "bob", "eve"):
        device(f"{user}s", platform=Platform.IOS, user_id=user)
    ids = [accepted(channels=[PUSH], user_id=user)["_id"] for user in ("ada", "bob", "eve")]
    ios = f"{apple_away.account}:ios"
    circuit_breaker.trip(ios, now=NOON - circuit_breaker.FIRST_WAIT, retry_after=None)
    apple_away.always(answer)
    dispatcher.dispatch(ids, channel=PUSH, clock=lambda: NOON)
    assert len(apple_away.seen) == 1
    assert circuit_breaker.request_permissions([ios], now=NOON)[ios] == circuit_breaker.Allowed()
