"""Failover between providers: after refusals, waits, ambiguous results, and pauses."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import circuit_breaker, pipeline, provider_pauses, routing, send_loop, sweeper
from delivery.circuit_breaker import FIRST_WAIT, PROBE_CHECK, CircuitReporter, Probe, State
from delivery.runtime import SendingRuntime
from delivery.settlement import BatchReport
from domain.channels import Channel
from domain.content import Content
from domain.time import utc_now
from notifications.store import acceptance, actions, recovery
from notifications.store.new_notifications import NewDelivery
from notifyproject.platform import cache, crash_points
from notifyproject.platform.crash_points import Boundary
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, mails, suppress
from tests.support.factories.routes import AFTER as ROUTES_AFTER
from tests.support.factories.routes import choose, chosen_providers, one, permission, several, trip
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
    (notification_id,) = mails(1)
    report = deliver(notification_id)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [NOON]
    assert attempts_used(notification_id) == 0
    assert deliver(notification_id).counts == {"sent": 1}
    assert history(notification_id) == [("sendgrid", "failed"), ("smtp", "sent")]
    assert state(notification_id)["provider"] == "smtp"
    assert (len(first.seen), len(second.seen)) == (1, 1)
    assert attempts_used(notification_id) == 1


def test_outage_of_the_first_provider_is_met_once(mail: Mail) -> None:
    first, second = mail
    first.always(channel_unavailable)
    notification_id, *others = mails(5)
    deliver(notification_id)
    assert deliver(notification_id, *others).counts == {"sent": 5}
    assert (len(first.seen), len(second.seen)) == (1, 5)


def test_connection_error_affects_only_its_delivery(mail: Mail) -> None:
    first, _ = mail
    notification_id, other = mails(2)
    first.always(unreachable)
    deliver(notification_id)
    first.always(taken)
    deliver(notification_id, other)
    assert [history(i)[-1] for i in (notification_id, other)] == [
        ("smtp", "sent"),
        ("sendgrid", "sent"),
    ]


def test_ambiguous_delivery_does_not_fail_over(mail: Mail) -> None:
    first, second = mail
    first.always(timeout)
    (notification_id,) = mails(1)
    assert deliver(notification_id).counts == {"unknown": 1}
    assert deliver(notification_id).claimed == 0
    assert (delivery_status(notification_id), second.seen) == (("unknown", "timeout"), [])


@pytest.mark.parametrize(("error", "used"), [(provider_error, 2), (rate_limited, 1)])
def test_transient_error_waits_for_the_first(
    mail: Mail, error: Callable[[], Outcome], used: int
) -> None:
    first, second = mail
    first.always(error)
    (notification_id,) = mails(1)
    deliver(notification_id)
    assert deliver(notification_id).claimed == 0
    first.always(taken)
    assert deliver(notification_id, at=NOON + 7 * MINUTE).counts == {"sent": 1}
    assert (len(first.seen), second.seen, attempts_used(notification_id)) == (2, [], used)


def test_one_failed_round_of_all_providers_is_one_attempt(mail: Mail) -> None:
    for provider in mail:
        provider.always(unreachable)
    (notification_id,) = mails(1, max_attempts=2)
    deliver(notification_id)
    assert attempts_used(notification_id) == 0
    deliver(notification_id)
    assert (delivery_status(notification_id), attempts_used(notification_id)) == (
        ("pending", "connection_failed"),
        1,
    )
    for at in (NOON + 7 * MINUTE, NOON + 7 * MINUTE):
        deliver(notification_id, at=at)
    assert delivery_status(notification_id) == ("failed", "connection_failed")
    assert [name for name, _ in history(notification_id)] == ["sendgrid", "smtp"] * 2


def test_outage_of_all_providers_defers_until_the_first_probe(mail: Mail) -> None:
    for provider in mail:
        provider.always(channel_unavailable)
    notification_id, other = mails(2)
    deliver(notification_id)
    deliver(notification_id)
    report = deliver(other)
    assert report.counts == {"pending": 1}
    assert [wakeup.at for wakeup in report.wakeups] == [AFTER]
    assert (delivery_status(other), state(other)["attempt_count"]) == (
        ("pending", "channel_unavailable"),
        0,
    )
    assert sum(len(provider.seen) for provider in mail) == 2


def test_what_failed_over_first_is_sent_first(
    mail: Mail, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Of a batch, several groups fail over, and wait for the rate of the second provider."""
    monkeypatch.setattr(send_loop, "STARTED_GROUPS", 2)
    settings.PROVIDER_RATES = {"smtp": (10.0, 1)}
    CircuitReporter().trip(mail[0].account, now=utc_now(), retry_after=None)
    ids = mails(6)
    report = pipeline.dispatch(SendingRuntime(), ids, channel=EMAIL, clock=utc_now)
    assert report.counts == {"sent": 6}
    sent = [request.reference.partition(".")[0] for request in mail[1].seen]
    assert sent == [str(notification_id) for notification_id in ids]


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
    (notification_id,) = mails(1)
    deliver(notification_id, at=AFTER)
    assert deliver(notification_id, at=AFTER).counts == {"sent": 1}
    assert history(notification_id) == [("sendgrid", "failed"), ("smtp", "sent")]
    assert circuit(first, AFTER) is State.OPEN


def test_deliveries_without_failover_wait_for_the_probe(fcm: ScriptedProvider) -> None:
    open_circuit(fcm)
    ids = mails(10)
    report = deliver(*ids, at=AFTER)
    assert report.counts == {"sent": 1, "pending": 9}
    assert {wakeup.at for wakeup in report.wakeups} == {AFTER + PROBE_CHECK}
    assert deliver(*ids, at=AFTER + PROBE_CHECK).counts == {"sent": 9}
    assert {attempts_used(notification_id) for notification_id in ids} == {1}


def test_probe_is_returned_after_a_render_failure(fcm: ScriptedProvider) -> None:
    open_circuit(fcm)
    masked = Content(subject="x", body="y", template_id="mfa_code", is_masked=True)
    assert deliver(*mails(1, content=masked), at=AFTER).counts == {"failed": 1}
    assert can_probe(fcm, AFTER)


def test_cancellation_returns_the_probe(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_circuit(fcm)
    (notification_id,) = mails(1)
    choose = routing.choose_routes

    def choose_then_cancel(*args: Any, **options: Any) -> Any:
        chosen = choose(*args, **options)
        cancelled = actions.cancel(
            notification_id=notification_id, channels=[EMAIL], reason="Withdrawn.", now=AFTER
        )
        assert cancelled is not None
        return chosen

    monkeypatch.setattr(routing, "choose_routes", choose_then_cancel)
    deliver(notification_id, at=AFTER)
    assert (delivery_status(notification_id)[0], fcm.seen) == ("cancelled", [])
    assert can_probe(fcm, AFTER)


def test_opt_out_returns_the_probe(fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes between the check of the batch and the send."""
    monkeypatch.setattr(send_loop, "RECHECK_SECONDS", 0.0)
    open_circuit(fcm)
    (notification_id,) = mails(1)

    def reach(boundary: Boundary) -> None:
        if boundary is Boundary.RENDERED:
            suppress("ada@example.com")

    monkeypatch.setattr(crash_points, "reach", reach)
    assert deliver(notification_id, at=AFTER).counts == {"suppressed": 1}
    assert fcm.seen == []
    assert can_probe(fcm, AFTER)


def test_probe_is_returned_if_the_send_is_too_late(
    fcm: ScriptedProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_circuit(fcm)
    (notification_id,) = mails(1)
    clock = frozen_after_start(monkeypatch, at=AFTER, for_=90 * SECOND)
    report = pipeline.dispatch(SendingRuntime(), [notification_id], channel=EMAIL, clock=clock)
    assert (report.counts, fcm.seen) == ({"pending": 1}, [])
    assert can_probe(fcm, AFTER + 90 * SECOND)


LATER = NOON + 10 * MINUTE
"""When the wait for a receipt is over."""


def test_deferred_delivery_restarts_with_the_first_provider(mail: Mail) -> None:
    """Both providers were unavailable and are available again."""
    first, second = mail
    open_circuit(second)
    first.always(channel_unavailable)
    (notification_id,) = mails(1)
    deliver(notification_id)
    assert delivery_status(notification_id) == ("pending", "channel_unavailable")
    first.always(taken)
    deliver(notification_id, at=NOON + MINUTE)
    assert (history(notification_id)[-1], second.seen) == (("sendgrid", "sent"), [])


def test_delivery_deferred_during_failover_restarts_with_the_first_provider(mail: Mail) -> None:
    first, second = mail
    first.always(unreachable)
    (notification_id,) = mails(1)
    deliver(notification_id)
    for provider in mail:
        open_circuit(provider)
    assert deliver(notification_id).counts == {"pending": 1}
    first.always(taken)
    deliver(notification_id, at=AFTER)
    assert (history(notification_id)[-1], second.seen) == (("sendgrid", "sent"), [])


def ambiguous_at_the_second(mail: Mail, *, lost: bool = False) -> ObjectId:
    """Return an email that is pending again after an ambiguous attempt at the second provider."""
    first, second = mail
    open_circuit(first)
    second.always(timeout)
    (notification_id,) = mails(1)
    if lost:
        begun = factories.start(factories.claim(notification_id), provider="smtp")
        recovery.expire_leases(now=begun.lease_until)
    else:
        deliver(notification_id)
    assert delivery_status(notification_id)[0] == "unknown"
    assert sweeper.resolve_unknown_outcomes(now=LATER) == 1
    assert delivery_status(notification_id)[0] == "pending"
    return notification_id


@pytest.mark.parametrize("lost", [False, True], ids=["no answer", "the worker was lost"])
def test_ambiguous_delivery_stays_with_the_second_provider(mail: Mail, lost: bool) -> None:
    first, second = mail
    notification_id = ambiguous_at_the_second(mail, lost=lost)
    second.always(unreachable)
    deliver(notification_id, at=LATER)
    assert delivery_status(notification_id) == ("pending", "connection_failed")
    second.always(taken)
    deliver(notification_id, at=LATER + 13 * MINUTE)
    assert (history(notification_id)[-1], first.seen) == (("smtp", "sent"), [])


def test_reopened_delivery_goes_to_any_provider(mail: Mail) -> None:
    first, second = mail
    notification_id = ambiguous_at_the_second(mail)
    second.always(refused)
    deliver(notification_id, at=LATER)
    assert delivery_status(notification_id) == ("failed", "rejected")
    actions.reopen(notification_id=notification_id, channels=[Channel.EMAIL], now=LATER)
    deliver(notification_id, at=LATER)
    assert (history(notification_id)[-1], len(first.seen)) == (("sendgrid", "sent"), 1)


NEXT_CHECK = NOON + provider_pauses.PAUSE_CHECK_INTERVAL


def pause(name: str = "sendgrid") -> bool:
    return provider_pauses.pause(name, by="maria", reason="A bill is due.", now=NOON)


def test_paused_provider_defers_without_using_an_attempt(fcm: ScriptedProvider) -> None:
    (notification_id,) = mails(1)
    pause("fcm")
    report = deliver(notification_id)
    assert (delivery_status(notification_id)[0], state(notification_id)["attempt_count"]) == (
        "pending",
        0,
    )
    assert state(notification_id)["next_attempt_at"] == NEXT_CHECK
    assert [wakeup.at for wakeup in report.wakeups] == [NEXT_CHECK]
    assert history(notification_id) == []
    assert provider_pauses.resume("fcm", by="maria")
    deliver(notification_id, at=NEXT_CHECK)
    assert delivery_status(notification_id)[0] == "sent"
    assert len(fcm.seen) == 1


def test_delivery_that_expires_while_its_provider_is_paused_ends_as_expired(
    fcm: ScriptedProvider,
) -> None:
    expires_at = NOON + timedelta(seconds=20)
    (notification_id,) = mails(1, expires_at=expires_at)
    pause("fcm")
    deliver(notification_id)
    assert (delivery_status(notification_id)[0], state(notification_id)["next_attempt_at"]) == (
        "pending",
        expires_at,
    )
    deliver(notification_id, at=expires_at)
    assert (delivery_status(notification_id), fcm.seen) == (("expired", "expired"), [])


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
    (only,) = provider_pauses.pauses().values()
    assert (only.by, only.reason, only.since) == ("maria", "A bill is due.", NOON)
    assert provider_pauses.resume("sendgrid", by="rui")
    assert not provider_pauses.resume("sendgrid", by="rui")
    assert provider_pauses.pauses() == {}


def test_reason_of_a_pause_is_stored_literally() -> None:
    provider_pauses.pause("smtp", by="$maria", reason="$$ROOT", now=NOON)
    pause = provider_pauses.pauses()["smtp"]
    assert (pause.by, pause.reason) == ("$maria", "$$ROOT")


def test_paused_provider_takes_no_probe(first: ScriptedProvider, second: ScriptedProvider) -> None:
    trip(first)
    claims = several(2)
    routes, deferred = choose(
        claims, first, second, now=ROUTES_AFTER, paused={"first": ROUTES_AFTER}
    )
    assert (chosen_providers(routes), deferred) == ({"second": claims}, [])
    assert isinstance(permission(first.account, ROUTES_AFTER), circuit_breaker.Probe)


def test_delivery_that_failed_is_no_probe_while_another_provider_takes_it(
    first: ScriptedProvider, second: ScriptedProvider
) -> None:
    """It would use up an attempt each time, and fail in the end."""
    trip(first)
    failed, other = one(last_provider="first"), one(last_provider="second")
    routes, deferred = choose([failed], first, second, now=ROUTES_AFTER)
    assert (chosen_providers(routes), deferred) == ({"second": [failed]}, [])
    # The probe is one that hasn't failed here, and is the only one.
    routes, deferred = choose([failed, other, failed], first, second, now=ROUTES_AFTER)
    assert chosen_providers(routes) == {"first": [other], "second": [failed, failed]}
    assert deferred == []


def test_delivery_that_failed_is_the_probe_of_the_only_provider(first: ScriptedProvider) -> None:
    trip(first)
    failed = one(last_provider="first")
    routes, _ = choose([failed], first, now=ROUTES_AFTER)
    assert [list(route.probes) for route in routes] == [[first.account]]


def test_pause_of_all_providers_defers(first: ScriptedProvider) -> None:
    until = NOON + timedelta(seconds=30)
    routes, deferred = choose(several(2), first, paused={"first": until})
    assert routes == []
    assert [unsent.next_attempt_at for unsent in deferred] == [until, until]
