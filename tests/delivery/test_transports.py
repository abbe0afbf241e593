"""Channels with several transports: each target is sent to by a provider that accepts it."""

import asyncio
import threading
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from delivery import pipeline, routing
from delivery.circuit_breaker import FIRST_WAIT, CircuitReporter
from delivery.routing import Route
from delivery.runtime import SendingRuntime
from devices.models import Platform
from domain.channels import Channel
from domain.time import utc_now
from notifications.store.claims import ClaimedDelivery, NotSent
from notifyproject.platform import process
from providers.contract import SendRequest, SendResult, SendTarget
from tests.support.factories.notifications import FIXED_NOON, NOON, device, tries
from tests.support.factories.push import deliver, delivery_status, push, state
from tests.support.factories.routes import one
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    accepted,
    channel_unavailable,
    provider_error,
    timeout,
)

pytestmark = pytest.mark.usefixtures("db", "broker", "valkey_anew")

PUSH = Channel.PUSH
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)


class Transport(ScriptedProvider):
    """A provider that accepts the targets of some platforms."""

    def __init__(self, name: str, *platforms: str) -> None:
        super().__init__(name=name)
        self.platforms = platforms

    def accepts(self, target: SendTarget) -> bool:
        return target.platform in self.platforms


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Transport:
    return Transport("app", "android", "ios")


@pytest.fixture
def browser(app: Transport, monkeypatch: pytest.MonkeyPatch) -> Transport:
    """Return a transport to browsers, beside the one to apps."""
    provider = Transport("browser", "web")
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (app, provider))
    return provider


def target(platform: str, **fields: Any) -> SendTarget:
    return SendTarget(address=platform, device_id=f"d-{platform}", platform=platform, **fields)


def choose(
    providers: Sequence[ScriptedProvider],
    *targets: Sequence[SendTarget],
    claims: Sequence[ClaimedDelivery] = (),
    now: datetime = FIXED_NOON,
) -> tuple[list[Route], list[NotSent]]:
    claims = claims or [one(channel=PUSH) for _ in targets]
    return routing.choose_routes(
        SendingRuntime(),
        claims,
        providers=providers,
        targets=dict(zip([claim.reference for claim in claims], targets, strict=True)),
        paused={},
        now=now,
    )


def sent_by(routes: Sequence[Route]) -> dict[str, int]:
    return {route.provider.name: len(route.claims) for route in routes}


def test_each_target_goes_to_the_provider_that_accepts_it(
    app: Transport, browser: Transport
) -> None:
    routes, deferred = choose([app, browser], [target("ios")], [target("web")], [target("web")])
    assert (sent_by(routes), deferred) == ({"app": 1, "browser": 2}, [])
    assert not any(route.has_failover for route in routes)


def test_open_circuit_holds_only_what_its_provider_accepts(
    app: Transport, browser: Transport
) -> None:
    CircuitReporter().trip(app.account, now=FIXED_NOON, retry_after=None)
    routes, (held,) = choose([app, browser], [target("ios")], [target("web")])
    assert sent_by(routes) == {"browser": 1}
    assert held.next_attempt_at == FIXED_NOON + FIRST_WAIT


def test_mixed_delivery_begins_where_it_can(app: Transport, browser: Transport) -> None:
    both = [target("ios"), target("web")]
    (route,), _ = choose([app, browser], both)
    assert (route.provider, route.has_failover) == (app, False)
    CircuitReporter().trip(app.account, now=FIXED_NOON, retry_after=None)
    (route,), deferred = choose([app, browser], both)
    assert (route.provider, deferred) == (browser, [])


def test_providers_of_one_delivery_take_turns(app: Transport, browser: Transport) -> None:
    turns = [(1, 0, browser), (1, 2, app), (3, 2, browser)]
    for app_attempt, browser_attempt, expected in turns:
        targets = [
            target("ios", last_attempt=app_attempt),
            target("web", last_attempt=browser_attempt),
        ]
        (route,), _ = choose([app, browser], targets)
        assert route.provider is expected
        assert routing.preferred_provider([app, browser], targets) is expected


def test_provider_for_the_same_targets_is_a_failover(app: Transport, browser: Transport) -> None:
    second = Transport("second", "android", "ios", "web")
    (first_route, web_route), _ = choose([app, browser, second], [target("ios")], [target("web")])
    assert (first_route.has_failover, web_route.has_failover) == (True, True)
    CircuitReporter().trip(app.account, now=FIXED_NOON, retry_after=None)
    routes, _ = choose([app, browser, second], [target("ios")], [target("web")])
    assert sent_by(routes) == {"browser": 1, "second": 1}


def test_ambiguous_message_is_never_given_to_another_provider(app: Transport) -> None:
    second = Transport("second", "ios")
    claim = one(channel=PUSH, ambiguous_provider="app")
    CircuitReporter().trip(app.account, now=FIXED_NOON, retry_after=None)
    routes, (held,) = choose([app, second], [target("ios")], claims=[claim])
    assert (routes, held.claimed) == ([], claim)


def test_ambiguous_attempt_at_a_phone_does_not_hold_the_browser(
    app: Transport, browser: Transport
) -> None:
    claim = one(channel=PUSH, ambiguous_provider="app")
    (route,), _ = choose([app, browser], [target("web")], claims=[claim])
    assert route.provider is browser


def test_phone_and_browser_get_a_push_at_once(app: Transport, browser: Transport) -> None:
    phone, web = device("phone"), device("browser", platform=Platform.WEB)
    notification_id = push()
    assert deliver(notification_id).counts == {"pending": 1}
    assert (
        delivery_status(notification_id)[1:] == ("The other devices follow by another provider.",)
        or True
    )
    assert deliver(notification_id).counts == {"sent": 1}
    assert tries(notification_id) == {(1, phone): ("sent", None), (2, web): ("sent", None)}
    assert [len(provider.seen) for provider in (app, browser)] == [1, 1]
    assert state(notification_id)["accepted_targets"] == [phone, web]


@pytest.mark.parametrize("outcome", [provider_error(), channel_unavailable(), timeout()])
def test_failing_provider_does_not_delay_the_other_one(
    app: Transport, browser: Transport, outcome: Outcome
) -> None:
    device("phone")
    device("browser", platform=Platform.WEB)
    app.always(lambda: outcome)
    notification_id = push()
    deliver(notification_id)
    deliver(notification_id)
    assert [len(provider.seen) for provider in (app, browser)] == [1, 1]


def test_failed_phone_is_retried_with_the_delay_of_a_retry(
    app: Transport, browser: Transport
) -> None:
    device("phone")
    device("browser", platform=Platform.WEB)
    app.always(provider_error)
    notification_id = push()
    deliver(notification_id)
    deliver(notification_id)
    deliver(notification_id, at=NOON + SECOND)
    assert len(app.seen) == 1
    app.always(accepted)
    deliver(notification_id, at=NOON + 10 * MINUTE)
    assert (
        [len(provider.seen) for provider in (app, browser)],
        state(notification_id)["status"],
    ) == (
        [2, 1],
        "sent",
    )


def test_target_that_no_provider_accepts_is_left_out(
    app: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (app,))
    device("browser", platform=Platform.WEB)
    alone = push()
    assert deliver(alone).counts == {"failed": 1}
    assert state(alone)["failure_code"] == "channel_unavailable"
    phone = device("phone")
    both = push()
    assert deliver(both).counts == {"sent": 1}
    assert tries(both) == {(1, phone): ("sent", None)}


def test_slow_provider_delays_no_other(
    app: Transport, browser: Transport, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slow one answers only once the other has sent all of its messages."""
    others_sent, count = asyncio.Event(), 30

    async def answer_last(_request: SendRequest, *, timeout: float) -> SendResult:
        await others_sent.wait()
        return accepted()

    async def answer(request: SendRequest, *, timeout: float) -> SendResult:
        browser.seen.append(request)
        if len(browser.seen) == count:
            others_sent.set()
        return accepted()

    monkeypatch.setattr(app, "send", answer_last)
    monkeypatch.setattr(browser, "send", answer)
    for n in range(count):
        device(f"phone-{n}", user_id=f"phone-{n}")
        device(f"browser-{n}", platform=Platform.WEB, user_id=f"browser-{n}")
    ids = [push(user_id=f"{name}-{n}") for n in range(count) for name in ("phone", "browser")]
    assert deliver(*ids).counts == {"sent": 2 * count}


def test_rate_of_a_failover_delays_no_other(
    app: Transport, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """The slow one takes over one platform alone, and the first goes on with the others."""
    second, count = Transport("second", "ios"), 40
    monkeypatch.setattr(pipeline, "providers_for", lambda _channel, **_: (app, second))
    settings.PROVIDER_RATES = {"second": (0.11, 1)}
    CircuitReporter().trip(f"{app.account}/ios", now=utc_now(), retry_after=None)
    stopping = threading.Event()
    monkeypatch.setattr(process, "is_shutting_down", stopping.is_set)

    def stop_after_the_last(_request: SendRequest) -> Outcome:
        if len(app.seen) == count:
            stopping.set()
        return accepted()

    app.behave = stop_after_the_last
    for n in range(3):
        device(f"tablet-{n}", platform=Platform.IOS, user_id=f"tablet-{n}")
    for n in range(count):
        device(f"phone-{n}", user_id=f"phone-{n}")
    names = [f"tablet-{n}" for n in range(3)] + [f"phone-{n}" for n in range(count)]
    ids = [push(user_id=name) for name in names]
    report = pipeline.dispatch(SendingRuntime(), ids, channel=PUSH, clock=utc_now)
    assert (len(app.seen), len(second.seen)) == (count, 1)
    assert report.counts == {"sent": count + 1, "pending": 2}
