"""A provider that an operator has paused: what is for it waits, untried, or goes elsewhere."""

from datetime import timedelta

import pytest

from delivery import circuit_breaker, dispatcher
from delivery.dispatcher import BatchReport
from domain.states import Channel
from notifyproject.platform import cache
from tests.support.factories import notifications as factories
from tests.support.factories.routes import AFTER, choose, permission, several, trip, where
from tests.support.fakes.provider import Scripted

pytestmark = pytest.mark.usefixtures("db", "broker", "pauses_anew")

NOON = factories.NOON
LATER = NOON + circuit_breaker.PAUSE_CHECK_INTERVAL


def pause(name: str = "sendgrid") -> bool:
    return circuit_breaker.pause(name, by="maria", reason="A bill is due.", now=NOON)


def deliver(document: object, at: object) -> BatchReport:
    return dispatcher.dispatch([document["_id"]], channel=Channel.EMAIL, clock=lambda: at)


def test_what_is_for_it_waits_and_burns_no_attempt(
    mail: tuple[Scripted, Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatcher, "providers_for", lambda _channel, **_: mail[:1])
    document = factories.accepted()
    pause()

    report = deliver(document, NOON)

    delivery = factories.delivery(factories.read(document["_id"]))
    assert (delivery["status"], delivery["attempt_count"]) == ("pending", 0)
    assert delivery["next_attempt_at"] == LATER
    assert [one.at for one in report.wakeups] == [LATER]
    assert factories.attempts(document["_id"]) == []
    assert circuit_breaker.resume("sendgrid", by="maria")
    deliver(document, LATER)
    assert factories.delivery(factories.read(document["_id"]))["status"] == "sent"
    assert len(mail[0].seen) == 1


def test_another_provider_of_the_channel_takes_it(mail: tuple[Scripted, Scripted]) -> None:
    document = factories.accepted()
    pause()
    deliver(document, NOON)
    assert [len(provider.seen) for provider in mail] == [0, 1]


def test_a_pause_outlives_the_process() -> None:
    pause()
    cache.clear_all()
    assert circuit_breaker.paused_until(["sendgrid", "smtp"], now=NOON) == {"sendgrid": LATER}


def test_who_paused_first_is_remembered_and_a_pause_ends_once() -> None:
    assert pause()
    assert not circuit_breaker.pause("sendgrid", by="rui", reason="", now=LATER)
    (one,) = circuit_breaker.pauses().values()
    assert (one.by, one.reason, one.since) == ("maria", "A bill is due.", NOON)
    assert circuit_breaker.resume("sendgrid", by="rui")
    assert not circuit_breaker.resume("sendgrid", by="rui")
    assert circuit_breaker.pauses() == {}


def test_a_reason_is_text_whatever_is_in_it() -> None:
    circuit_breaker.pause("smtp", by="$maria", reason="$$ROOT", now=NOON)
    one = circuit_breaker.pauses()["smtp"]
    assert (one.by, one.reason) == ("$maria", "$$ROOT")


def test_no_probe_is_taken_from_a_circuit_of_a_paused_provider(
    first: Scripted, second: Scripted
) -> None:
    trip(first)
    claims = several(2)
    routes, parked = choose(claims, first, second, now=AFTER, paused={"first": AFTER})
    assert (where(routes), parked) == ({"second": claims}, [])
    assert isinstance(permission(first.account, AFTER), circuit_breaker.Probe)


def test_all_paused_means_waiting(first: Scripted) -> None:
    until = NOON + timedelta(seconds=30)
    routes, parked = choose(several(2), first, paused={"first": until})
    assert routes == []
    assert [one.next_attempt_at for one in parked] == [until, until]
