"""What results mean beyond the delivery: for devices, addresses, circuits and rates."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from structlog.testing import capture_logs

from delivery import circuit_breaker, feedback, rate_limiter
from delivery.circuit_breaker import (
    FIRST_WAIT,
    MAX_WAIT,
    MIN_FAILURES,
    Allowed,
    Blocked,
    Permission,
    Probe,
)
from delivery.feedback import MIN_MISMATCHES
from delivery.results import TargetResult
from delivery.sending import PreparedDelivery
from domain.errors import FailureCode, ProviderResponse, RecipientAction, TransientError
from domain.states import Channel
from notifyproject.db.collections import collection
from providers.contract import Message
from recipients import queries
from tests.support.factories.notifications import NOON, device, stored_device
from tests.support.factories.notifications import claimed_delivery as claimed
from tests.support.fakes.provider import (
    Outcome,
    ScriptedProvider,
    accepted,
    channel_unavailable,
    invalid_token,
    malformed_token,
    provider_error,
    rate_limited,
    refused,
    timeout,
    unreachable,
)

pytestmark = pytest.mark.usefixtures("db", "broker", "valkey_anew")


EMAIL, PUSH, WHATSAPP, IN_APP = Channel

SECOND = timedelta(seconds=1)

MINUTE = timedelta(minutes=1)

MESSAGE = Message(subject="Paid", text="Your payment has arrived.")

MISMATCH = ProviderResponse(status=403, code="SENDER_ID_MISMATCH")

NOTIFICATION = ObjectId("b" * 24)


def sent(
    outcome: Outcome,
    device_id: str | None = None,
    *,
    channel: Channel = PUSH,
    at: datetime = NOON,
    took: timedelta = SECOND,
    notification_id: ObjectId = NOTIFICATION,
    is_test: bool = False,
) -> tuple[PreparedDelivery, TargetResult]:
    one = claimed(channel=channel, notification_id=notification_id, is_test=is_test)
    result = TargetResult(
        device_id=device_id,
        outcome=outcome,
        started_at=at,
        finished_at=at + took,
        duration_ms=1,
    )
    return PreparedDelivery(claimed=one, message=MESSAGE, targets=()), result


def draw(*some: tuple[PreparedDelivery, TargetResult], at: datetime = NOON) -> None:
    feedback.apply_reputation(some, provider="fcm", now=at)


def test_a_dead_token_switches_its_device_off() -> None:
    old, other = device("old"), device("other")
    draw(sent(invalid_token(response=ProviderResponse(status=404, code="UNREGISTERED")), old))
    off = stored_device(old)
    assert (off["is_active"], off["deactivation_reason"]) == (False, "unregistered")
    assert off["deactivation_evidence"] == {
        "at": NOON,
        "source": "fcm",
        "code": "UNREGISTERED",
        "notification_id": str(NOTIFICATION),
    }
    assert stored_device(other)["is_active"]


def test_a_dead_token_needs_no_answer_to_be_dead() -> None:
    old = device("old")
    draw(sent(invalid_token(), old))
    assert stored_device(old)["deactivation_reason"] == "unregistered"


def test_a_token_called_malformed_is_suspected_three_times_in_a_row() -> None:
    phone = device("phone")
    for n in range(3):
        assert stored_device(phone)["is_active"]
        draw(sent(malformed_token(), phone, at=NOON + n * MINUTE))
    assert stored_device(phone)["deactivation_reason"] == "suspect"


def test_a_message_that_is_taken_ends_the_row() -> None:
    phone = device("phone")
    for n, outcome in enumerate(
        [malformed_token(), malformed_token(), accepted(), malformed_token(), malformed_token()]
    ):
        draw(sent(outcome, phone, at=NOON + n * MINUTE))
    assert stored_device(phone)["is_active"]


def test_a_device_that_takes_a_message_is_alive_from_when_it_was_answered() -> None:
    phone = device("phone")
    draw(sent(accepted(), phone, took=3 * SECOND))
    assert stored_device(phone)["last_accepted_at"] == NOON + 3 * SECOND


def test_of_several_messages_to_one_device_the_last_counts() -> None:
    phone = device("phone")
    draw(*(sent(accepted(), phone, at=NOON + n * MINUTE) for n in (0, 5, 2)))
    assert stored_device(phone)["last_accepted_at"] == NOON + 5 * MINUTE + SECOND


@pytest.mark.parametrize("died_later", [True, False])
def test_of_two_answers_in_one_batch_the_later_holds(died_later: bool) -> None:
    phone = device("phone")
    alive = sent(accepted(), phone, at=NOON + (0 if died_later else 5) * MINUTE)
    died = sent(invalid_token(), phone, at=NOON + (5 if died_later else 0) * MINUTE)
    draw(died, alive)
    assert stored_device(phone)["is_active"] is not died_later


def test_an_answer_about_the_time_before_a_device_registered_again_is_old() -> None:
    phone = device("phone", at=NOON + MINUTE)
    draw(sent(invalid_token(), phone), at=NOON + 2 * MINUTE)
    assert stored_device(phone)["is_active"]


@pytest.mark.parametrize(
    "outcome",
    [provider_error(), rate_limited(), unreachable(), timeout(), channel_unavailable(), refused()],
)
def test_no_other_trouble_is_blamed_on_anybody(outcome: Outcome) -> None:
    phone = device("phone")
    before = stored_device(phone)
    draw(sent(outcome, phone), sent(outcome, channel=EMAIL), sent(outcome, channel=WHATSAPP))
    assert stored_device(phone) == before
    assert collection("suppressions").count_documents({}) == 0
    assert collection("suspicions").count_documents({}) == 0


def test_a_whole_batch_of_another_senders_tokens_is_a_mistake_of_ours() -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    with capture_logs() as logs:
        draw(*(sent(invalid_token(response=MISMATCH), phone) for phone in phones))
    assert all(stored_device(phone)["is_active"] for phone in phones)
    assert [entry["log_level"] for entry in logs] == ["error"]


@pytest.mark.parametrize("action", [RecipientAction.SUSPECT, RecipientAction.DEACTIVATE])
def test_another_senders_token_is_suspected_three_times_in_a_row(action: RecipientAction) -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    first, *others = phones
    for n in range(3):
        assert all(stored_device(phone)["is_active"] for phone in phones)
        wrong = invalid_token(response=MISMATCH, action=action)
        at = NOON + n * MINUTE
        draw(sent(accepted(), first, at=at), *(sent(wrong, phone, at=at) for phone in others))
    assert stored_device(first)["is_active"]
    assert {stored_device(one)["deactivation_reason"] for one in others} == {"sender_mismatch"}


def test_a_wrong_service_account_switches_off_no_device_that_ever_got_a_push() -> None:
    phone = device("phone")
    draw(sent(accepted(), phone))
    for n in range(1, 10):
        draw(sent(invalid_token(response=MISMATCH), phone, at=NOON + n * MINUTE))
    assert stored_device(phone)["is_active"]


def test_what_is_told_twice_of_a_device_is_as_if_told_once() -> None:
    old, phone, odd = device("old"), device("phone"), device("odd")
    some = [sent(invalid_token(), old), sent(accepted(), phone), sent(malformed_token(), odd)]
    draw(*some)
    once = [stored_device(one) for one in (old, phone, odd)]
    draw(*some)
    assert [stored_device(one) for one in (old, phone, odd)] == once


MAIL = ("email", "ada@example.com")

PHONE = ("whatsapp", "+351912345678")


def suppressions() -> dict[tuple[str, str], Any]:
    return dict(queries.find_suppressed({MAIL, PHONE}, now=NOON))


@pytest.mark.parametrize("action", [RecipientAction.SUPPRESS, RecipientAction.DEACTIVATE])
def test_a_dead_address_gets_nothing_more(action: RecipientAction) -> None:
    draw(sent(invalid_token(action=action), channel=EMAIL))
    ((address, found),) = suppressions().items()
    assert (address, found.reason, found.marketing_only) == (MAIL, "hard_bounce", False)


def test_who_does_not_want_marketing_gets_all_the_rest() -> None:
    draw(sent(invalid_token(action=RecipientAction.SUPPRESS_MARKETING), channel=WHATSAPP))
    ((address, found),) = suppressions().items()
    assert (address, found.reason, found.marketing_only) == (PHONE, "unsubscribed", True)


def test_an_address_that_is_suspected_three_times_gets_nothing_more() -> None:
    for n in range(3):
        assert suppressions() == {}
        another = sent(malformed_token(), channel=WHATSAPP, notification_id=ObjectId(f"{n:024x}"))
        draw(another, at=NOON + n * MINUTE)
    assert list(suppressions()) == [PHONE]


def test_one_attempt_counts_once_against_an_address() -> None:
    for n in range(3):
        draw(sent(malformed_token(), channel=WHATSAPP), at=NOON + n * MINUTE)
    assert suppressions() == {}


def test_who_has_no_address_cannot_be_blamed() -> None:
    draw(sent(invalid_token(), channel=IN_APP))
    assert collection("suppressions").count_documents({}) == 0


def test_no_address_is_in_the_log() -> None:
    with capture_logs() as logs:
        draw(sent(invalid_token(), channel=EMAIL), sent(malformed_token(), channel=WHATSAPP))
    assert len(logs) == 2
    assert not [entry for entry in logs if "ada@" in str(entry) or "3519" in str(entry)]


def test_what_went_to_the_sandbox_says_nothing_about_anybody() -> None:
    old, phone = device("old"), device("phone")
    before = [stored_device(one) for one in (old, phone)]
    draw(sent(invalid_token(), old, is_test=True), sent(accepted(), phone, is_test=True))
    draw(sent(invalid_token(action=RecipientAction.SUPPRESS), channel=EMAIL, is_test=True))
    for n in range(3):
        another = ObjectId(f"{n:024x}")
        draw(sent(malformed_token(), channel=WHATSAPP, notification_id=another, is_test=True))
    assert [stored_device(one) for one in (old, phone)] == before
    assert suppressions() == {}


def test_a_test_beside_it_does_not_hide_that_every_device_is_another_senders() -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    wrong = [sent(invalid_token(response=MISMATCH), phone) for phone in phones]
    draw(*wrong, sent(accepted(), device("mine"), is_test=True))
    assert all(stored_device(phone)["is_active"] for phone in phones)


AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon wants a probe."""

Make = Callable[..., Outcome]


@pytest.fixture
def fcm() -> ScriptedProvider:
    return ScriptedProvider(name="fcm")


def defect() -> TransientError:
    return TransientError("A defect.", code=FailureCode.INTERNAL_ERROR, is_ambiguous=True)


def report(
    provider: ScriptedProvider,
    *outcomes: Outcome,
    platform: str = "",
    probes: Mapping[str, Probe] | None = None,
    now: datetime = NOON,
) -> None:
    results = [
        TargetResult(
            device_id=None,
            outcome=outcome,
            started_at=now,
            finished_at=now,
            duration_ms=1,
            platform=platform,
        )
        for outcome in outcomes
    ]
    feedback.report_provider_health(provider, results, probes=probes or {}, now=now)


def permission(account: str, now: datetime = NOON) -> Permission:
    return circuit_breaker.request_permissions([account], now=now)[account]


def probing(account: str) -> dict[str, Probe]:
    """Return the probe of a circuit that opened at noon."""
    circuit_breaker.trip(account, now=NOON, retry_after=None)
    probe = permission(account, AFTER)
    assert isinstance(probe, Probe)
    return {account: probe}


@pytest.mark.parametrize("trouble", [provider_error, unreachable, timeout])
def test_twenty_troubles_open_it(fcm: ScriptedProvider, trouble: Make) -> None:
    report(fcm, *[trouble() for _ in range(MIN_FAILURES - 1)])
    assert permission(fcm.account) == Allowed()
    report(fcm, trouble())
    assert permission(fcm.account) == Blocked(AFTER)


@pytest.mark.parametrize(
    "answer", [accepted, invalid_token, malformed_token, refused, rate_limited, defect]
)
def test_what_is_no_trouble_of_the_providers_does_not(fcm: ScriptedProvider, answer: Make) -> None:
    report(fcm, *[answer() for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()


def test_defects_of_ours_are_no_sign_of_health(fcm: ScriptedProvider) -> None:
    report(fcm, *[defect() for _ in range(100)], *[provider_error() for _ in range(MIN_FAILURES)])
    assert permission(fcm.account) == Blocked(AFTER)


def test_one_outage_opens_it_for_as_long_as_the_provider_says(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), channel_unavailable(retry_after=300), accepted())
    assert permission(fcm.account) == Blocked(NOON + 300 * SECOND)


def test_an_outage_of_a_platform_is_that_platforms_alone(fcm: ScriptedProvider) -> None:
    report(fcm, *[channel_unavailable(scope="ios") for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()
    assert permission(f"{fcm.account}:ios") == Blocked(AFTER)
    assert permission(f"{fcm.account}:android") == Allowed()


@pytest.mark.parametrize("answer", [accepted, invalid_token, refused, rate_limited])
def test_any_answer_about_the_message_closes_it(fcm: ScriptedProvider, answer: Make) -> None:
    report(fcm, answer(), probes=probing(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Allowed()


@pytest.mark.parametrize("trouble", [provider_error, unreachable, timeout, channel_unavailable])
def test_the_same_trouble_again_opens_it_for_twice_as_long(
    fcm: ScriptedProvider, trouble: Make
) -> None:
    report(fcm, trouble(), probes=probing(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Blocked(AFTER + 2 * FIRST_WAIT)


@pytest.mark.parametrize("outcomes", [[], [defect()]], ids=["nothing was sent", "a defect"])
def test_who_has_learnt_nothing_gives_the_probe_back(
    fcm: ScriptedProvider, outcomes: list[Outcome]
) -> None:
    report(fcm, *outcomes, probes=probing(fcm.account), now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


def test_a_platform_that_is_well_again_is_open_again(fcm: ScriptedProvider) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, accepted(), platform="ios", probes=probing(ios), now=AFTER)
    assert permission(ios, AFTER) == Allowed()


def test_a_platform_that_is_not_waits_for_twice_as_long(fcm: ScriptedProvider) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, channel_unavailable(scope="ios"), platform="ios", probes=probing(ios), now=AFTER)
    assert permission(ios, AFTER) == Blocked(AFTER + 2 * FIRST_WAIT)


def test_another_platforms_answer_says_nothing_of_it(fcm: ScriptedProvider) -> None:
    ios = f"{fcm.account}:ios"
    report(fcm, accepted(), platform="android", probes=probing(ios), now=AFTER)
    assert isinstance(permission(ios, AFTER), Probe)


def test_a_platforms_outage_says_nothing_of_the_provider(fcm: ScriptedProvider) -> None:
    probes = probing(fcm.account)
    report(fcm, channel_unavailable(scope="ios"), platform="ios", probes=probes, now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


def test_an_outage_that_lasts_is_asked_about_at_least_every_quarter_of_an_hour(
    fcm: ScriptedProvider,
) -> None:
    circuit_breaker.trip(fcm.account, now=NOON, retry_after=None)
    now = AFTER
    for _ in range(10):
        probe = permission(fcm.account, now)
        assert isinstance(probe, Probe)
        report(fcm, channel_unavailable(), probes={fcm.account: probe}, now=now)
        blocked: Any = permission(fcm.account, now)
        assert blocked.until - now <= MAX_WAIT
        now = blocked.until


def granted(provider: ScriptedProvider, after: timedelta) -> int:
    return rate_limiter.take(provider.account, 100, rate=10, burst=10, now=NOON + after).granted


def test_too_much_halves_the_rate_after_a_pause(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), rate_limited(retry_after=3), rate_limited(retry_after=5))
    assert granted(fcm, 4 * SECOND) == 0
    assert granted(fcm, 6 * SECOND) == 5


def test_too_much_without_a_time_halves_it_at_once(fcm: ScriptedProvider) -> None:
    report(fcm, rate_limited())
    assert granted(fcm, SECOND) == 5


def test_nothing_else_slows_it_down(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), provider_error(retry_after=300), timeout(), invalid_token(), refused())
    assert granted(fcm, SECOND) == 10


def test_a_provider_of_which_nothing_is_known_has_proven_nothing(fcm: ScriptedProvider) -> None:
    assert not feedback.has_recent_success(fcm, now=NOON)


def test_what_it_took_of_late_proves_it_for_a_while(fcm: ScriptedProvider) -> None:
    report(fcm, refused(), accepted())
    assert feedback.has_recent_success(fcm, now=NOON + feedback.RECENT_SUCCESS)
    assert not feedback.has_recent_success(fcm, now=NOON + feedback.RECENT_SUCCESS + SECOND)


@pytest.mark.parametrize("answer", [refused, channel_unavailable, provider_error, timeout])
def test_what_it_did_not_take_proves_nothing(fcm: ScriptedProvider, answer: Make) -> None:
    report(fcm, answer())
    assert not feedback.has_recent_success(fcm, now=NOON)
