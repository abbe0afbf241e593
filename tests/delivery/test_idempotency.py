"""Idempotent providers: an ambiguous attempt is repeated as the same request."""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import accounts, idempotency, pipeline, sweeper
from delivery.idempotency import FORGOTTEN, GONE, MARGIN
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.retry import UnknownPolicy
from notifications.receipts import processor
from notifications.store import leases, recovery
from notifications.store.leases import LEASE
from notifications.store.recovery import UnknownOutcome
from providers.contract import Receipt, ReceiptKind, SendRequest
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, WORKER, mails
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    accepted,
    frozen_after_start,
    provider_error,
    timeout,
)
from tests.support.mongo.query_plans import plans

pytestmark = pytest.mark.usefixtures("db", "broker", "pauses_anew")

EMAIL = Channel.EMAIL
WINDOW = timedelta(hours=2)
MINUTE = timedelta(minutes=1)


class Receiver(ScriptedProvider):
    """A provider that takes a key once, and whose answers may be lost."""

    idempotency = WINDOW

    def __init__(self, *, name: str = "receiver") -> None:
        super().__init__(name=name)
        self.taken: Counter[str] = Counter()
        """Messages by key. A further one of a key is the same message."""
        self.bytes: dict[str, set[tuple[Any, ...]]] = {}
        self.is_answer_lost: Callable[[], bool] = lambda: False
        self.most_lost = 100
        """Answers of one key that are lost at most."""
        self.lost: Counter[str] = Counter()
        self.behave = self._take

    def _take(self, request: SendRequest) -> Outcome:
        key = request.idempotency_key
        self.bytes.setdefault(key, set()).add((request.message.text, request.attempted_at))
        if not self.taken[key]:
            self.taken[key] += 1
        if self.lost[key] < self.most_lost and self.is_answer_lost():
            self.lost[key] += 1
            return timeout()
        return accepted()


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Receiver:
    """Return the only provider, and let no type retry an unknown outcome."""
    provider = Receiver()
    let_send(monkeypatch, provider)
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.FAIL)
    return provider


def deliver(*ids: ObjectId, at: datetime = NOON) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=lambda: at)


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id))


def lose(*, count: int) -> Callable[[], bool]:
    """Return a decision that loses the first answers."""
    left = iter([True] * count)
    return lambda: next(left, False)


def run_on(*ids: ObjectId, until: datetime, at: datetime = NOON) -> None:
    """Sweep and deliver every minute."""
    while at <= until:
        sweeper.resolve_unknown_outcomes(now=at)
        deliver(*ids, at=at)
        at += MINUTE


def test_lost_answers_lose_nothing_and_double_nothing(receiver: Receiver) -> None:
    """A fifth of the answers is lost, and never all four of one message."""
    rng = random.Random(7)
    receiver.is_answer_lost = lambda: rng.random() < 0.2
    receiver.most_lost = 3
    ids = mails(100)
    run_on(*ids, until=NOON + 90 * MINUTE)
    assert Counter(state(notification_id)["status"] for notification_id in ids) == {"sent": 100}
    assert receiver.taken == dict.fromkeys([f"{i}.email.1" for i in ids], 1)
    assert len(receiver.seen) > 100
    assert all(len(same) == 1 for same in receiver.bytes.values())


def test_repeat_is_the_same_request(receiver: Receiver) -> None:
    receiver.is_answer_lost = lose(count=2)
    (notification_id,) = mails(1)
    run_on(notification_id, until=NOON + 30 * MINUTE)
    assert [r.idempotency_key for r in receiver.seen] == [f"{notification_id}.email.1"] * 3
    assert len({r.reference for r in receiver.seen}) == 3
    assert len({r.attempted_at for r in receiver.seen}) == 1
    assert state(notification_id)["status"] == "sent"


def test_rejected_attempt_has_a_key_of_its_own(receiver: Receiver) -> None:
    receiver.always(provider_error)
    (notification_id,) = mails(1)
    deliver(notification_id)
    deliver(notification_id, at=NOON + 10 * MINUTE)
    keys = [request.idempotency_key for request in receiver.seen]
    assert keys == [f"{notification_id}.email.{n}" for n in (1, 2)]


def test_rejection_of_a_repeat_keeps_the_key_of_what_may_have_been_accepted(
    receiver: Receiver,
) -> None:
    outcomes = iter([timeout(), provider_error(), accepted()])
    receiver.always(lambda: next(outcomes))
    (notification_id,) = mails(1)
    run_on(notification_id, until=NOON + 40 * MINUTE)
    assert {r.idempotency_key for r in receiver.seen} == {f"{notification_id}.email.1"}
    assert (len(receiver.seen), state(notification_id)["status"]) == (3, "sent")


def test_lost_worker_is_repeated_with_its_key(receiver: Receiver) -> None:
    (notification_id,) = mails(1)
    (claim,) = leases.claim(ids=[notification_id], channel=EMAIL, worker=WORKER, now=NOON)
    leases.start([claim], provider=receiver.name, worker=WORKER, now=NOON)
    after = NOON + LEASE + MINUTE
    sweeper.recover_expired_leases(now=after)
    run_on(notification_id, at=after, until=after + 10 * MINUTE)
    (request,) = receiver.seen
    assert request.idempotency_key == f"{notification_id}.email.1"
    assert request.reference == f"{notification_id}.email.2"


def bounce(notification_id: ObjectId, *, attempt: int, at: datetime, provider: str) -> int:
    """Report the bounce of an attempt. Return how many deliveries changed."""
    receipt = Receipt(
        reference=f"{notification_id}.email.{attempt}",
        provider_id="mail-1",
        kind=ReceiptKind.BOUNCED,
        at=at,
        reason="550 no such user",
        event_id=f"bounce-{notification_id}-{attempt}",
        address=None,
    )
    return processor.apply_receipts([receipt], provider=provider, now=at).changed


def test_bounce_of_a_repeated_mail_names_its_first_attempt(receiver: Receiver) -> None:
    """However often it was repeated."""
    for lost in (1, 2, 3):
        receiver.is_answer_lost = lose(count=lost)
        (notification_id,) = mails(1)
        run_on(notification_id, until=NOON + 90 * MINUTE)
        assert (state(notification_id)["status"], state(notification_id)["attempt_count"]) == (
            "sent",
            lost + 1,
        )
        later = NOON + 100 * MINUTE
        assert bounce(notification_id, attempt=1, at=later, provider=receiver.name) == 1
        assert state(notification_id)["failure_code"] == "bounced"


def test_bounce_says_nothing_about_a_later_message(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the window, the type lets the mail be sent anew: by a key of its own."""
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.RETRY)
    receiver.is_answer_lost = lose(count=2)
    (notification_id,) = mails(1)
    run_on(notification_id, until=NOON + 9 * MINUTE)
    assert state(notification_id)["attempt_count"] == 2
    later = NOON + 2 * WINDOW
    run_on(notification_id, at=later, until=later + 10 * MINUTE)
    assert receiver.seen[-1].idempotency_key == f"{notification_id}.email.3"
    for attempt in (1, 2):
        assert bounce(notification_id, attempt=attempt, at=later, provider=receiver.name) == 0
    assert state(notification_id)["status"] == "sent"


def test_bounce_of_an_earlier_series_says_nothing_about_a_successor(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two accounts repeat the mail, each what it may itself have accepted."""
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.RETRY)
    receiver.is_answer_lost = lose(count=2)
    (notification_id,) = mails(1)
    run_on(notification_id, until=NOON + 9 * MINUTE)
    successor = Receiver(name="successor")
    successor.is_answer_lost = lose(count=1)
    let_send(monkeypatch, successor)
    run_on(notification_id, at=NOON + 10 * MINUTE, until=NOON + 60 * MINUTE)
    assert {r.idempotency_key for r in successor.seen} == {f"{notification_id}.email.3"}
    assert state(notification_id)["attempt_count"] == 4
    at = NOON + 61 * MINUTE
    for name in (receiver.name, successor.name):
        assert bounce(notification_id, attempt=1, at=at, provider=name) == 0
    assert bounce(notification_id, attempt=3, at=at, provider=successor.name) == 1


def test_delivery_without_a_repeat_has_no_series(receiver: Receiver) -> None:
    receiver.always(provider_error)
    (notification_id,) = mails(1)
    run_on(notification_id, until=NOON + 10 * MINUTE)
    assert state(notification_id)["attempt_count"] > 1
    assert not {"series_first", "series_last"} & state(notification_id).keys()


def test_after_the_window_the_type_decides(receiver: Receiver) -> None:
    receiver.is_answer_lost = lambda: True
    (notification_id,) = mails(1)
    deliver(notification_id)
    sweeper.resolve_unknown_outcomes(now=NOON + WINDOW)
    delivery = state(notification_id)
    assert (delivery["status"], delivery["failure_code"]) == ("failed", "outcome_unknown")
    assert len(receiver.seen) == 1


def test_repeat_that_waited_too_long_is_not_sent(receiver: Receiver) -> None:
    receiver.is_answer_lost = lambda: True
    (notification_id,) = mails(1)
    deliver(notification_id)
    sweeper.resolve_unknown_outcomes(now=NOON + 10 * MINUTE)
    deliver(notification_id, at=NOON + WINDOW - MARGIN)
    delivery = state(notification_id)
    assert (delivery["status"], delivery["failure_reason"]) == ("failed", FORGOTTEN)
    assert len(receiver.seen) == 1


def test_repeat_whose_request_would_begin_after_the_window_is_not_sent(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the check of the batch and the request may lie the wait for a rate, and a freeze."""
    receiver.is_answer_lost = lambda: True
    (notification_id,) = mails(1)
    deliver(notification_id)
    sweeper.resolve_unknown_outcomes(now=NOON + 10 * MINUTE)
    at = NOON + WINDOW - MARGIN - timedelta(seconds=5)
    clock = frozen_after_start(monkeypatch, at=at, for_=timedelta(seconds=5))
    pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=clock)
    assert len(receiver.seen) == 1
    deliver(notification_id, at=NOON + WINDOW - MARGIN)
    delivery = state(notification_id)
    assert (delivery["status"], delivery["failure_reason"]) == ("failed", FORGOTTEN)
    assert len(receiver.seen) == 1


def let_send(monkeypatch: pytest.MonkeyPatch, *providers: ScriptedProvider) -> None:
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: providers)
    monkeypatch.setattr(accounts, "providers_for", lambda _channel, **_: providers)


def test_repeat_is_not_sent_by_the_account_that_took_the_place_of_the_first(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The environment changes before the repeat is decided, and after it."""
    receiver.is_answer_lost = lambda: True
    early, late = mails(2)
    deliver(early, late)
    successor = ScriptedProvider(name="successor")
    with monkeypatch.context() as patch:
        # Only the first is found by this sweep.
        patch.setattr(recovery, "unknown_outcomes", _first_of(early))
        sweeper.resolve_unknown_outcomes(now=NOON + 10 * MINUTE)
    assert (state(early)["status"], state(late)["status"]) == ("pending", "unknown")
    let_send(monkeypatch, successor)
    run_on(early, late, at=NOON + 10 * MINUTE, until=NOON + 20 * MINUTE)
    assert successor.seen == []
    for notification_id in (early, late):
        assert state(notification_id)["failure_code"] == "outcome_unknown"
    assert state(early)["failure_reason"] == GONE


def test_type_that_allows_a_duplicate_is_sent_by_the_successor(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.is_answer_lost = lambda: True
    monkeypatch.setattr(idempotency, "policy_of", lambda _slug: UnknownPolicy.RETRY)
    (notification_id,) = mails(1)
    deliver(notification_id)
    successor = ScriptedProvider(name="successor")
    let_send(monkeypatch, successor)
    run_on(notification_id, at=NOON + 10 * MINUTE, until=NOON + 20 * MINUTE)
    assert len(successor.seen) == 1
    assert state(notification_id)["status"] == "sent"


def _first_of(notification_id: ObjectId) -> Callable[..., list[UnknownOutcome]]:
    """Return a search that finds one delivery alone."""
    find = recovery.unknown_outcomes

    def search(**options: Any) -> list[UnknownOutcome]:
        return [found for found in find(**options) if found.notification_id == notification_id]

    return search


def test_other_provider_has_no_repeats_and_costs_no_read(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = ScriptedProvider(lambda _request: timeout(), name="plain")
    let_send(monkeypatch, plain)
    (notification_id,) = mails(1)
    deliver(notification_id)
    with plans("delivery_attempts") as found:
        assert idempotency.repeatable([], now=NOON) == set()
    assert found == []
    sweeper.resolve_unknown_outcomes(now=NOON + 10 * MINUTE)
    assert state(notification_id)["failure_code"] == "outcome_unknown"
