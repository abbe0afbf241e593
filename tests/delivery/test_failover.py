"""Several providers in an order: who is asked when one does not take a message."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery import circuit_breaker, dispatcher, routing
from delivery.circuit_breaker import FIRST_WAIT, PROBE_LEASE, Probe, State
from domain.content import Content
from domain.retry import MAX_OUTAGE
from domain.states import Channel
from notifications import store
from tests.support.factories.mail import Mail, attempts_used, deliver, fate, history, mails, state
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import (
    Outcome,
    Scripted,
    busy,
    silent,
    slowed,
    unavailable,
    unreachable,
)
from tests.support.fakes.provider import accepted as taken

pytestmark = pytest.mark.usefixtures("db", "broker")

EMAIL = Channel.EMAIL
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon wants a probe."""


@pytest.mark.parametrize("trouble", [unavailable, unreachable])
def test_what_the_first_did_not_take_goes_to_the_second_at_once(
    mail: Mail, trouble: Callable[[], Outcome]
) -> None:
    first, second = mail
    first.always(trouble)
    (one,) = mails(1)
    report = deliver(one)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [NOON]
    assert attempts_used(one) == 0
    assert deliver(one).counts == {"sent": 1}
    assert history(one) == [("sendgrid", "failed"), ("smtp", "sent")]
    assert state(one)["provider"] == "smtp"
    assert (len(first.seen), len(second.seen)) == (1, 1)
    assert attempts_used(one) == 1


def test_an_outage_of_the_first_is_met_once_and_then_known(mail: Mail) -> None:
    first, second = mail
    first.always(unavailable)
    one, *others = mails(5)
    deliver(one)
    assert deliver(one, *others).counts == {"sent": 5}
    assert (len(first.seen), len(second.seen)) == (1, 5)


def test_one_connection_that_fails_says_nothing_about_the_others(mail: Mail) -> None:
    first, _ = mail
    one, other = mails(2)
    first.always(unreachable)
    deliver(one)
    first.always(taken)
    deliver(one, other)
    assert [history(i)[-1] for i in (one, other)] == [("smtp", "sent"), ("sendgrid", "sent")]


def test_what_the_first_may_have_taken_is_never_given_to_the_second(mail: Mail) -> None:
    first, second = mail
    first.always(silent)
    (one,) = mails(1)
    assert deliver(one).counts == {"unknown": 1}
    assert deliver(one).claimed == 0
    assert (fate(one), second.seen) == (("unknown", "timeout"), [])


@pytest.mark.parametrize("later", [busy, slowed])
def test_what_the_first_takes_later_waits_for_it(mail: Mail, later: Callable[[], Outcome]) -> None:
    first, second = mail
    first.always(later)
    (one,) = mails(1)
    deliver(one)
    assert deliver(one).claimed == 0
    first.always(taken)
    assert deliver(one, at=NOON + 7 * MINUTE).counts == {"sent": 1}
    assert (len(first.seen), second.seen, attempts_used(one)) == (2, [], 2)


def test_a_round_in_which_nobody_can_be_reached_is_one_attempt(mail: Mail) -> None:
    for provider in mail:
        provider.always(unreachable)
    (one,) = mails(1, max_attempts=2)
    deliver(one)
    assert attempts_used(one) == 0
    deliver(one)
    assert (fate(one), attempts_used(one)) == (("pending", "connection_failed"), 1)
    for at in (NOON + 7 * MINUTE, NOON + 7 * MINUTE):
        deliver(one, at=at)
    assert fate(one) == ("failed", "connection_failed")
    assert [name for name, _ in history(one)] == ["sendgrid", "smtp"] * 2


def test_when_all_are_away_nothing_is_asked_until_the_first_may_be(mail: Mail) -> None:
    for provider in mail:
        provider.always(unavailable)
    one, other = mails(2)
    deliver(one)
    deliver(one)
    report = deliver(other)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [AFTER]
    assert (fate(other), state(other)["attempt_count"]) == (("pending", "channel_unavailable"), 0)
    assert sum(len(provider.seen) for provider in mail) == 2


def test_after_three_days_of_outage_it_has_failed_and_what_stands_in_for_it_goes(
    mail: Mail,
) -> None:
    for provider in mail:
        circuit_breaker.trip(provider.account, now=NOON + MAX_OUTAGE, retry_after=None)
    (one,) = mails(1)
    assert deliver(one, at=NOON + MAX_OUTAGE).counts == {"failed": 1}
    assert fate(one) == ("failed", "channel_unavailable")


# A provider that may be well again.


def half_open(provider: Scripted) -> None:
    circuit_breaker.trip(provider.account, now=NOON, retry_after=None)


def circuit(provider: Scripted, now: datetime) -> State:
    found = {c.account: c.state for c in circuit_breaker.circuit_states(now=now) or []}
    return found.get(provider.account, State.CLOSED)


def asks_for_a_probe(provider: Scripted, now: datetime) -> bool:
    return isinstance(
        circuit_breaker.request_permissions([provider.account], now=now)[provider.account], Probe
    )


def test_exactly_one_of_a_batch_tries_it_and_the_others_go_elsewhere(mail: Mail) -> None:
    first, second = mail
    half_open(first)
    assert deliver(*mails(10), at=AFTER).counts == {"sent": 10}
    assert (len(first.seen), len(second.seen)) == (1, 9)
    assert circuit(first, AFTER) is State.CLOSED
    deliver(*mails(3), at=AFTER)
    assert (len(first.seen), len(second.seen)) == (4, 9)


def test_the_one_that_tried_in_vain_goes_elsewhere_at_once(mail: Mail) -> None:
    first, _ = mail
    half_open(first)
    first.always(unavailable)
    (one,) = mails(1)
    deliver(one, at=AFTER)
    assert deliver(one, at=AFTER).counts == {"sent": 1}
    assert history(one) == [("sendgrid", "failed"), ("smtp", "sent")]
    assert circuit(first, AFTER) is State.OPEN


def test_with_nobody_else_the_others_wait_until_it_is_known(fcm: Scripted) -> None:
    half_open(fcm)
    ids = mails(10)
    report = deliver(*ids, at=AFTER)
    assert report.counts == {"sent": 1, "pending": 9}
    assert {wakeup.at for wakeup in report.wakeups} == {AFTER + PROBE_LEASE}
    assert deliver(*ids, at=AFTER + PROBE_LEASE).counts == {"sent": 9}
    assert {attempts_used(one) for one in ids} == {1}


def test_a_probe_whose_message_cannot_be_rendered_is_not_used_up(fcm: Scripted) -> None:
    half_open(fcm)
    masked = Content(subject="x", body="y", template_id="mfa_code", is_masked=True)
    assert deliver(*mails(1, content=masked), at=AFTER).counts == {"failed": 1}
    assert asks_for_a_probe(fcm, AFTER)


def test_a_probe_whose_delivery_was_taken_over_is_given_back(
    fcm: Scripted, monkeypatch: pytest.MonkeyPatch
) -> None:
    half_open(fcm)
    (one,) = mails(1)
    choose = routing.choose_routes

    def choose_slowly(*args: Any, **options: Any) -> Any:
        chosen = choose(*args, **options)
        cancelled = store.cancel(
            notification_id=one, channels=[EMAIL], reason="Withdrawn.", now=AFTER
        )
        assert cancelled is not None
        return chosen

    monkeypatch.setattr(routing, "choose_routes", choose_slowly)
    deliver(one, at=AFTER)
    assert (fate(one)[0], fcm.seen) == ("cancelled", [])
    assert asks_for_a_probe(fcm, AFTER)


def test_a_probe_that_is_not_begun_in_time_is_given_back(fcm: Scripted) -> None:
    half_open(fcm)
    (one,) = mails(1)

    def thaws_late() -> datetime:
        return AFTER + 90 * SECOND if state(one)["status"] == "sending" else AFTER

    report = dispatcher.dispatch([one], channel=EMAIL, clock=thaws_late)
    assert (report.counts, fcm.seen) == ({"pending": 1}, [])
    assert asks_for_a_probe(fcm, AFTER + 90 * SECOND)
