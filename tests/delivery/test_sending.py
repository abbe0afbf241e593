"""Sending a batch: concurrency, deadlines, and errors of single messages."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from functools import partial

import pytest
import structlog
from bson import ObjectId
from structlog.testing import capture_logs

from delivery import sending
from delivery.results import TargetResult, combine_results
from delivery.routing import Route
from delivery.sending import InFlight, PreparedDelivery, group_by_request
from delivery.targets import address_of
from delivery.window import SendWindows
from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode, ProviderError
from domain.states import DeliveryStatus
from domain.time import Clock
from notifications.store.claims import ClaimedDelivery, Settlement
from notifyproject.platform import process
from providers.contract import Message, SendRequest, SendResult, SendTarget
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.fakes.provider import (
    ScriptedProvider,
    accepted,
    channel_unavailable,
    rate_limited,
)
from tests.support.tables import each_case
from tests.support.waiting import LIMIT

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
MESSAGE = Message(subject="Paid", text="Your payment has arrived.")


def send_all(
    provider: ScriptedProvider, *started: ClaimedDelivery, now: datetime = NOON
) -> list[Settlement]:
    jobs = [
        PreparedDelivery(claimed=delivery, message=MESSAGE, targets=(address_of(delivery),))
        for delivery in started
    ]
    return [
        combine_results(job.claimed, results, provider=provider.name, now=now, jitter=0)
        for job, results in sent_through(provider, jobs, lambda: now)
        if results
    ]


def sent_through(
    provider: ScriptedProvider, jobs: Sequence[PreparedDelivery], clock: Clock
) -> list[tuple[PreparedDelivery, tuple[TargetResult, ...]]]:
    in_flight = InFlight(SendWindows(), clock)
    route = Route(provider=provider, claims=[job.claimed for job in jobs])
    in_flight.submit(route, group_by_request(provider, jobs))
    groups = []
    while in_flight.count:
        groups += in_flight.collect(timeout=LIMIT)
    found = {job.claimed.reference: (job, results) for _, group in groups for job, results in group}
    return [found[job.claimed.reference] for job in jobs]


def several(count: int) -> list[ClaimedDelivery]:
    return [claimed(notification_id=ObjectId(f"{n:024x}")) for n in range(count)]


def test_send_request_holds_message_and_reference() -> None:
    provider = ScriptedProvider()
    send_all(provider, claimed(expires_at=NOON + MINUTE))
    (outbound,) = provider.seen
    assert outbound == SendRequest(
        reference=f"{'a' * 24}.email.1",
        idempotency_key=f"{'a' * 24}.email.1",
        notification_id="a" * 24,
        recipient="ada@example.com",
        recipient_name="Ada",
        message=MESSAGE,
        category="transactional",
        expires_at=NOON + MINUTE,
    )


@each_case(
    "channel, recipient",
    [
        (Channel.EMAIL, "ada@example.com"),
        (Channel.WHATSAPP, "+351912345678"),
        (Channel.IN_APP, "ada"),
    ],
)
def test_recipient_is_the_address_of_the_channel(channel: Channel, recipient: str) -> None:
    provider = ScriptedProvider()
    send_all(provider, claimed(channel=channel))
    assert provider.seen[0].recipient == recipient


def test_several_messages_are_sent_concurrently() -> None:
    both = threading.Barrier(2, timeout=LIMIT)

    def meet(outbound: SendRequest) -> SendResult:
        both.wait()
        return accepted()

    assert len(send_all(ScriptedProvider(meet), *several(2))) == 2


def test_internal_error_affects_only_its_delivery_and_has_its_own_code() -> None:
    started = several(3)

    def fail(outbound: SendRequest) -> SendResult:
        if outbound.reference == started[1].reference:
            raise KeyError("a defect")
        return accepted()

    settlements = send_all(ScriptedProvider(fail), *started)
    assert [s.status for s in settlements] == [S.SENT, S.UNKNOWN, S.SENT]
    assert settlements[1].code is FailureCode.INTERNAL_ERROR
    assert settlements[1].response is None


@pytest.mark.usefixtures("one_at_a_time")
def test_request_that_waits_in_the_window_is_not_sent_during_a_shutdown() -> None:
    """Otherwise a shutdown would wait for the answer to it, after those in flight."""

    def stop(outbound: SendRequest) -> SendResult:
        process.request_shutdown()
        return accepted()

    provider = ScriptedProvider(stop, name="fcm")
    try:
        settlements = send_all(provider, *several(2))
    finally:
        process.clear_shutdown()
    assert (len(provider.seen), len(settlements)) == (1, 1)


@pytest.mark.usefixtures("one_at_a_time")
@each_case("pause", [channel_unavailable, partial(rate_limited, retry_after=60)])
def test_request_that_waits_in_the_window_is_not_sent_after_the_provider_asked_for_a_pause(
    pause: Callable[[], ProviderError],
) -> None:
    provider = ScriptedProvider(lambda _outbound: pause(), name="fcm")
    settlements = send_all(provider, *several(2))
    assert (len(provider.seen), len(settlements)) == (1, 1)


@pytest.mark.usefixtures("one_at_a_time")
def test_request_that_waits_in_the_window_is_sent_after_other_errors() -> None:
    provider = ScriptedProvider(lambda _outbound: rate_limited(), name="fcm")
    assert len(send_all(provider, *several(2))) == 2


@each_case(
    "left, is_sent",
    [
        (timedelta(seconds=90), True),
        (timedelta(seconds=17, milliseconds=1), True),
        *((left, False) for left in (timedelta(seconds=17), timedelta(0), timedelta(seconds=-600))),
    ],
)
def test_send_starts_only_within_the_lease(left: timedelta, is_sent: bool) -> None:
    provider = ScriptedProvider()
    settlements = send_all(provider, claimed(lease_until=NOON + left))
    assert (len(provider.seen), len(settlements)) == (int(is_sent), int(is_sent))


def test_no_request_starts_after_the_expiry() -> None:
    provider = ScriptedProvider()
    for late in (timedelta(0), timedelta(milliseconds=1), 20 * SECOND):
        send_all(provider, claimed(expires_at=NOON), now=NOON + late)
    assert provider.seen == []


def test_expired_delivery_does_not_block_the_others() -> None:
    late, *others = several(3)
    settlements = send_all(ScriptedProvider(), replace(late, expires_at=NOON), *others)
    assert [s.claimed for s in settlements] == others


def test_recipient_without_an_address_is_reached_by_user_id() -> None:
    provider = ScriptedProvider()
    send_all(provider, replace(claimed(channel=Channel.IN_APP), recipient=Recipient()))
    assert provider.seen[0].recipient == "ada"


def test_log_names_the_delivery_apart_from_attempt_and_device(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    claim = claimed(channel=Channel.PUSH)
    target = SendTarget(address="token", device_id="d1", platform="ios")
    job = PreparedDelivery(claimed=claim, message=MESSAGE, targets=(target,))
    with capture_logs() as lines:
        monkeypatch.setattr(sending, "log", structlog.get_logger("delivery.sending"))
        sent_through(ScriptedProvider(), [job], lambda: NOON)
    (line,) = lines
    named = {name: line[name] for name in ("delivery_id", "attempt", "device_id")}
    delivery_id = f"{claim.notification_id}.push"
    assert named == {"delivery_id": delivery_id, "attempt": claim.attempt_count, "device_id": "d1"}
