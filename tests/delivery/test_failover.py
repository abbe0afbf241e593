"""Failover between providers: after refusals, waits, ambiguous results, and pauses."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import circuit_breaker, pipeline, provider_pauses, routing, sweeper
from delivery.circuit_breaker import FIRST_WAIT, PROBE_CHECK, CircuitReporter, Probe, State
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.content import Content
from domain.states import Channel
from notifications.store import acceptance, actions, recovery
from notifications.store.documents import NewDelivery
from notifyproject.platform import cache
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, mails
from tests.support.factories.routes import AFTER as ROUTES_AFTER
from tests.support.factories.routes import choose, chosen_providers, permission, several, trip
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    channel_unavailable,
    frozen_after_start,
    provider_error,
    rate_limited,
    refused,
    timeout,
    unreachable,
)
from tests.support.fakes.provider import accepted as taken

Mail = tuple[ScriptedProvider, ScriptedProvider]
"""The first has priority."""


def deliver(*ids: ObjectId, at: datetime = NOON) -> BatchReport:
    return pipeline.dispatch(SendingRuntime(), ids, channel=Channel.EMAIL, clock=lambda: at)


def state(notification_id: ObjectId) -> dict[str, Any]:
    return factories.delivery(factories.read(notification_id))


def delivery_status(notification_id: ObjectId) -> tuple[str, str | None]:
    delivery = state(notification_id)
    return delivery["status"], delivery.get("failure_code")


def attempts_used(notification_id: ObjectId) -> int:
    delivery = state(notification_id)
    used: int = delivery["attempt_count"] - delivery["uncounted_attempts"]
    return used


def history(notification_id: ObjectId) -> list[tuple[str, str]]:
    return [(a["provider"], a["status"]) for a in factories.attempts(notification_id)]


pytestmark = pytest.mark.usefixtures("db", "broker", "pauses_anew")


EMAIL = Channel.EMAIL
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon allows a probe."""


@pytest.mark.parametrize("error", [channel_unavailable, unreachable])
def test_untaken_delivery_fails_over_at_once(mail: Mail, error: Callable[[], Outcome]) -> None:
    first, second = mail
    first.always(error)
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


def test_outage_of_the_first_provider_is_met_once(mail: Mail) -> None:
    first, second = mail
    first.always(channel_unavailable)
    one, *others = mails(5)
    deliver(one)
    assert deliver(one, *others).counts == {"sent": 5}
    assert (len(first.seen), len(second.seen)) == (1, 5)


def test_connection_error_affects_only_its_delivery(mail: Mail) -> None:
    first, _ = mail
    one, other = mails(2)
    first.always(unreachable)
    deliver(one)
    first.always(taken)
    deliver(one, other)
    assert [history(i)[-1] for i in (one, other)] == [("smtp", "sent"), ("sendgrid", "sent")]


def test_ambiguous_delivery_does_not_fail_over(mail: Mail) -> None:
    first, second = mail
    first.always(timeout)
    (one,) = mails(1)
    assert deliver(one).counts == {"unknown": 1}
    assert deliver(one).claimed == 0
    assert (delivery_status(one), second.seen) == (("unknown", "timeout"), [])


@pytest.mark.parametrize(("error", "used"), [(provider_error, 2), (rate_limited, 1)])
def test_transient_error_waits_for_the_first(
    mail: Mail, error: Callable[[], Outcome], used: int
) -> None:
    first, second = mail
    first.always(error)
    (one,) = mails(1)
    deliver(one)
    assert deliver(one).claimed == 0
    first.always(taken)
    assert deliver(one, at=NOON + 7 * MINUTE).counts == {"sent": 1}
    assert (len(first.seen), second.seen, attempts_used(one)) == (2, [], used)


def test_one_failed_round_of_all_providers_is_one_attempt(mail: Mail) -> None:
    for provider in mail:
        provider.always(unreachable)
    (one,) = mails(1, max_attempts=2)
    deliver(one)
    assert attempts_used(one) == 0
    deliver(one)
    assert (delivery_status(one), attempts_used(one)) == (("pending", "connection_failed"), 1)
    for at in (NOON + 7 * MINUTE, NOON + 7 * MINUTE):
        deliver(one, at=at)
    assert delivery_status(one) == ("failed", "connection_failed")
    assert [name for name, _ in history(one)] == ["sendgrid", "smtp"] * 2


def test_outage_of_all_providers_defers_until_the_first_probe(mail: Mail) -> None:
    for provider in mail:
        provider.always(channel_unavailable)
    one, other = mails(2)
    deliver(one)
    deliver(one)
    report = deliver(other)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [AFTER]
    assert (delivery_status(other), state(other)["attempt_count"]) == (
        ("pending", "channel_unavailable"),
        0,
    )
    assert sum(len(provider.seen) for provider in mail) == 2


def open_circuit(provider: ScriptedProvider) -> None:
    CircuitReporter().trip(provider.account, now=NOON, retry_after=None)


def circuit(provider: ScriptedProvider, now: datetime) -> State:
    found = {c.name: c.state for c in circuit_breaker.circuit_states(now=now) or []}
    return found.get(provider.account, State.CLOSED)


def can_probe(provider: ScriptedProvider, now: datetime) -> bool:
    return isinstance(permission(provider.account, now), Probe)


def test_probe_sends_one_delivery_and_the_others_fail_over(mail: Mail) -> None:
    first, second = mail
    open_circuit(first)
    assert deliver(*mails(10), at=AFTER).counts == {"sent": 10}
    assert (len(first.seen), len(second.seen)) == (1, 9)
    assert circuit(first, AFTER) is State.CLOSED
    deliver(*mails(3), at=AFTER)
    assert (len(first.seen), len(second.seen)) == (4, 9)


def test_failed_probe_fails_over_at_once(mail: Mail) -> None:
    first, _ = mail
    open_circuit(first)
    first.always(channel_unavailable)
    (one,) = mails(1)
    deliver(one, at=AFTER)
    assert deliver(one, at=AFTER).counts == {"sent": 1}
    assert history(one) == [("sendgrid", "failed"), ("smtp", "sent")]
    assert circuit(first, AFTER) is State.OPEN


def test_deliveries_without_failover_wait_for_the_probe(fcm: ScriptedProvider) -> None:
    open_circuit(fcm)
    ids = mails(10)
    report = deliver(*ids, at=AFTER)
    assert report.counts == {"sent": 1, "pending": 9}
    assert {wakeup.at for wakeup in report.wakeups} == {AFTER + PROBE_CHECK}
    assert deliver(*ids, at=AFTER + PROBE_CHECK).counts == {"sent": 9}
    assert {attempts_used(one) for one in ids} == {1}


def test_probe_is_returned_after_a_render_failure(fcm: ScriptedProvider) -> None:
    open_circuit(fcm)
    masked = Content(subject="x", body="y", template_id="mfa_code", is_masked=True)
    assert deliver(*mails(1, content=masked), at=AFTER).counts == {"failed": 1}
    assert can_probe(fcm, AFTER)


def test_cancellation_returns_the_probe(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_circuit(fcm)
    (one,) = mails(1)
    choose = routing.choose_routes

    def choose_then_cancel(*args: Any, **options: Any) -> Any:
        chosen = choose(*args, **options)
        cancelled = actions.cancel(
            notification_id=one, channels=[EMAIL], reason="Withdrawn.", now=AFTER
        )
        assert cancelled is not None
        return chosen

    monkeypatch.setattr(routing, "choose_routes", choose_then_cancel)
    deliver(one, at=AFTER)
    assert (delivery_status(one)[0], fcm.seen) == ("cancelled", [])
    assert can_probe(fcm, AFTER)


def test_probe_is_returned_if_the_send_is_too_late(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_circuit(fcm)
    (one,) = mails(1)
    clock = frozen_after_start(monkeypatch, at=AFTER, for_=90 * SECOND)
    report = pipeline.dispatch(SendingRuntime(), [one], channel=EMAIL, clock=clock)
    assert (report.counts, fcm.seen) == ({"pending": 1}, [])
    assert can_probe(fcm, AFTER + 90 * SECOND)


LATER = NOON + 10 * MINUTE
"""When the wait for a receipt is over."""


def test_deferred_delivery_restarts_with_the_first_provider(mail: Mail) -> None:
    """Both providers were unavailable and are available again."""
    first, second = mail
    open_circuit(second)
    first.always(channel_unavailable)
    (one,) = mails(1)
    deliver(one)
    assert delivery_status(one) == ("pending", "channel_unavailable")
    first.always(taken)
    deliver(one, at=NOON + MINUTE)
    assert (history(one)[-1], second.seen) == (("sendgrid", "sent"), [])


def test_delivery_deferred_during_failover_restarts_with_the_first_provider(mail: Mail) -> None:
    first, second = mail
    first.always(unreachable)
    (one,) = mails(1)
    deliver(one)
    for provider in mail:
        open_circuit(provider)
    assert deliver(one).counts == {"pending": 1}
    first.always(taken)
    deliver(one, at=AFTER)
    assert (history(one)[-1], second.seen) == (("sendgrid", "sent"), [])


def ambiguous_at_the_second(mail: Mail, *, lost: bool = False) -> ObjectId:
    """Return an email that is pending again after an ambiguous attempt at the second provider."""
    first, second = mail
    open_circuit(first)
    second.always(timeout)
    (one,) = mails(1)
    if lost:
        begun = factories.start(factories.claim(one), provider="smtp")
        recovery.expire_leases(now=begun.lease_until)
    else:
        deliver(one)
    assert delivery_status(one)[0] == "unknown"
    assert sweeper.resolve_unknown_outcomes(now=LATER) == 1
    assert delivery_status(one)[0] == "pending"
    return one


@pytest.mark.parametrize("lost", [False, True], ids=["no answer", "the worker was lost"])
def test_ambiguous_delivery_stays_with_the_second_provider(mail: Mail, lost: bool) -> None:
    first, second = mail
    one = ambiguous_at_the_second(mail, lost=lost)
    second.always(unreachable)
    deliver(one, at=LATER)
    assert delivery_status(one) == ("pending", "connection_failed")
    second.always(taken)
    deliver(one, at=LATER + 13 * MINUTE)
    assert (history(one)[-1], first.seen) == (("smtp", "sent"), [])


def test_reopened_delivery_goes_to_any_provider(mail: Mail) -> None:
    first, second = mail
    one = ambiguous_at_the_second(mail)
    second.always(refused)
    deliver(one, at=LATER)
    assert delivery_status(one) == ("failed", "rejected")
    actions.reopen(notification_id=one, channels=[Channel.EMAIL], now=LATER)
    deliver(one, at=LATER)
    assert (history(one)[-1], len(first.seen)) == (("sendgrid", "sent"), 1)


NEXT_CHECK = NOON + provider_pauses.PAUSE_CHECK_INTERVAL


def pause(name: str = "sendgrid") -> bool:
    return provider_pauses.pause(name, by="maria", reason="A bill is due.", now=NOON)


def test_paused_provider_defers_without_using_an_attempt(fcm: ScriptedProvider) -> None:
    (one,) = mails(1)
    pause("fcm")
    report = deliver(one)
    assert (delivery_status(one)[0], state(one)["attempt_count"]) == ("pending", 0)
    assert state(one)["next_attempt_at"] == NEXT_CHECK
    assert [wakeup.at for wakeup in report.wakeups] == [NEXT_CHECK]
    assert history(one) == []
    assert provider_pauses.resume("fcm", by="maria")
    deliver(one, at=NEXT_CHECK)
    assert delivery_status(one)[0] == "sent"
    assert len(fcm.seen) == 1


def test_delivery_that_expires_while_its_provider_is_paused_ends_as_expired(
    fcm: ScriptedProvider,
) -> None:
    expires_at = NOON + timedelta(seconds=20)
    (one,) = mails(1, expires_at=expires_at)
    pause("fcm")
    deliver(one)
    assert (delivery_status(one)[0], state(one)["next_attempt_at"]) == ("pending", expires_at)
    deliver(one, at=expires_at)
    assert (delivery_status(one), fcm.seen) == (("expired", "expired"), [])


def test_pause_that_outlasts_a_message_leaves_its_time_to_the_fallback_channel(
    fcm: ScriptedProvider,
) -> None:
    deliveries = (
        NewDelivery(channel=Channel.EMAIL),
        NewDelivery(channel=Channel.PUSH, step=2, delay=timedelta(minutes=10)),
    )
    new = factories.new(deliveries=deliveries, expires_at=NOON + timedelta(seconds=20))
    acceptance.accept([new], now=NOON)
    pause("fcm")
    report = deliver(new.id)
    assert delivery_status(new.id) == ("expired", "expired")
    assert [(wakeup.channel, wakeup.at) for wakeup in report.wakeups] == [(Channel.PUSH, NOON)]


def test_pause_fails_over_to_another(mail: Mail) -> None:
    pause()
    deliver(*mails(1))
    assert [len(provider.seen) for provider in mail] == [0, 1]


def test_pause_survives_a_restart() -> None:
    pause()
    cache.clear_all()
    assert provider_pauses.paused_until(["sendgrid", "smtp"], now=NOON) == {"sendgrid": NEXT_CHECK}


def test_first_pause_is_kept_and_ends_once() -> None:
    assert pause()
    assert not provider_pauses.pause("sendgrid", by="rui", reason="", now=NEXT_CHECK)
    (one,) = provider_pauses.pauses().values()
    assert (one.by, one.reason, one.since) == ("maria", "A bill is due.", NOON)
    assert provider_pauses.resume("sendgrid", by="rui")
    assert not provider_pauses.resume("sendgrid", by="rui")
    assert provider_pauses.pauses() == {}


def test_reason_of_a_pause_is_stored_literally() -> None:
    provider_pauses.pause("smtp", by="$maria", reason="$$ROOT", now=NOON)
    one = provider_pauses.pauses()["smtp"]
    assert (one.by, one.reason) == ("$maria", "$$ROOT")


def test_paused_provider_takes_no_probe(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first)
    claims = several(2)
    routes, deferred = choose(
        claims, first, second, now=ROUTES_AFTER, paused={"first": ROUTES_AFTER}
    )
    assert (chosen_providers(routes), deferred) == ({"second": claims}, [])
    assert isinstance(permission(first.account, ROUTES_AFTER), circuit_breaker.Probe)


def test_pause_of_all_providers_defers(first: ScriptedProvider) -> None:
    until = NOON + timedelta(seconds=30)
    routes, deferred = choose(several(2), first, paused={"first": until})
    assert routes == []
    assert [one.next_attempt_at for one in deferred] == [until, until]
