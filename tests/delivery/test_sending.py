"""Sending one and many: each in time, none spoiling the others."""

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId

from delivery import sending, targets
from delivery.results import combine_results
from delivery.sending import PreparedDelivery, split_rounds
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications.store import ClaimedDelivery, Settlement
from providers.contract import Message, SendRequest, SendResult
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.fakes.provider import ScriptedProvider, accepted
from tests.support.waiting import LIMIT

S = DeliveryStatus
SECOND, MINUTE = timedelta(seconds=1), timedelta(minutes=1)
MESSAGE = Message(subject="Paid", text="Your payment has arrived.")


def send_all(
    provider: ScriptedProvider, *started: ClaimedDelivery, now: datetime = NOON
) -> list[Settlement]:
    """Send each to its one address; return what becomes of those that were begun."""
    jobs = [
        PreparedDelivery(claimed=one, message=MESSAGE, targets=(targets.address_of(one),))
        for one in started
    ]
    return [
        combine_results(job.claimed, results, provider=provider.name, now=now, jitter=0)
        for job, results in sending.send_batch(provider, jobs, lambda: now)
    ]


def several(count: int) -> list[ClaimedDelivery]:
    return [claimed(notification_id=ObjectId(f"{n:024x}")) for n in range(count)]


@pytest.fixture
def two_threads(settings: Any) -> Iterator[None]:
    settings.WORKER_THREADS = 2
    sending._thread_pool.cache_clear()
    yield
    sending._thread_pool.cache_clear()


def test_a_provider_is_given_the_message_and_a_reference_and_no_more_than_it_needs() -> None:
    provider = ScriptedProvider()
    send_all(provider, claimed(expires_at=NOON + MINUTE))
    (outbound,) = provider.seen
    assert outbound == SendRequest(
        reference=f"{'a' * 24}.email.1",
        notification_id="a" * 24,
        recipient="ada@example.com",
        recipient_name="Ada",
        message=MESSAGE,
        category="transactional",
        expires_at=NOON + MINUTE,
    )


@pytest.mark.parametrize(
    ("channel", "recipient"),
    [
        (Channel.EMAIL, "ada@example.com"),
        (Channel.WHATSAPP, "+351912345678"),
        (Channel.IN_APP, "ada"),
    ],
)
def test_the_recipient_is_the_channels_own(channel: Channel, recipient: str) -> None:
    provider = ScriptedProvider()
    send_all(provider, claimed(channel=channel))
    assert provider.seen[0].recipient == recipient


def test_a_single_message_is_sent_in_the_thread_that_asks() -> None:
    threads: list[str] = []

    def note(outbound: SendRequest) -> SendResult:
        threads.append(threading.current_thread().name)
        return accepted()

    send_all(ScriptedProvider(note), claimed())
    assert threads == [threading.current_thread().name]


@pytest.mark.usefixtures("two_threads")
def test_several_messages_are_sent_at_the_same_time() -> None:
    both = threading.Barrier(2, timeout=LIMIT)

    def meet(outbound: SendRequest) -> SendResult:
        both.wait()
        return accepted()

    assert len(send_all(ScriptedProvider(meet), *several(2))) == 2


@pytest.mark.usefixtures("two_threads")
def test_outcomes_come_in_the_order_of_the_deliveries() -> None:
    started = several(20)
    settlements = send_all(ScriptedProvider(), *started)
    assert [s.claimed for s in settlements] == started


@pytest.mark.usefixtures("two_threads")
def test_a_defect_in_one_send_is_an_unknown_outcome_of_that_one() -> None:
    started = several(3)

    def stumble(outbound: SendRequest) -> SendResult:
        if outbound.reference == started[1].reference:
            raise KeyError("a defect")
        return accepted()

    statuses = [s.status for s in send_all(ScriptedProvider(stumble), *started)]
    assert statuses == [S.SENT, S.UNKNOWN, S.SENT]


def test_a_defect_is_named_as_our_own() -> None:
    def stumble(_outbound: SendRequest) -> SendResult:
        raise ZeroDivisionError("a defect")

    (settlement,) = send_all(ScriptedProvider(stumble), claimed())
    assert settlement.code is FailureCode.INTERNAL_ERROR
    assert settlement.answer.response is None


@pytest.mark.parametrize(
    ("left", "is_sent"),
    [
        (timedelta(seconds=90), True),
        (timedelta(seconds=17, milliseconds=1), True),
        (timedelta(seconds=17), False),
        (timedelta(0), False),
        (timedelta(seconds=-600), False),
    ],
)
def test_a_send_starts_only_if_its_lease_outlives_it(left: timedelta, is_sent: bool) -> None:
    provider = ScriptedProvider()
    settlements = send_all(provider, claimed(lease_until=NOON + left))
    assert (len(provider.seen), len(settlements)) == (int(is_sent), int(is_sent))


def test_no_request_starts_at_or_after_the_end_of_a_notification() -> None:
    provider = ScriptedProvider()
    for late in (timedelta(0), timedelta(milliseconds=1), 20 * SECOND):
        send_all(provider, claimed(expires_at=NOON), now=NOON + late)
    assert provider.seen == []


def test_one_that_has_expired_does_not_keep_the_others_from_being_sent() -> None:
    late, *others = several(3)
    provider = ScriptedProvider()
    settlements = send_all(provider, replace(late, expires_at=NOON), *others)
    assert [s.claimed for s in settlements] == others


def test_someone_without_an_address_is_reached_by_user_id() -> None:
    provider = ScriptedProvider()
    send_all(provider, replace(claimed(channel=Channel.IN_APP), recipient=Recipient()))
    assert provider.seen[0].recipient == "ada"


@pytest.mark.parametrize(
    ("is_proven", "expected"), [(True, [32, 32, 16]), (False, [10, 32, 32, 6])]
)
def test_the_first_round_to_a_provider_that_has_proven_nothing_is_a_small_one(
    settings: Any, is_proven: bool, expected: list[int]
) -> None:
    settings.WORKER_THREADS = 32
    waiting = [
        PreparedDelivery(claimed=one, message=MESSAGE, targets=(targets.address_of(one),))
        for one in several(80)
    ]
    found = split_rounds(ScriptedProvider(), waiting, has_recent_success=is_proven)
    assert [len(some) for some in found] == expected
