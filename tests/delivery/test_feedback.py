"""Feedback of results to devices, suppressions, circuit breakers, and rate limits."""

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from bson import ObjectId
from structlog.testing import capture_logs

from delivery import circuit_breaker, feedback
from delivery.circuit_breaker import (
    FIRST_WAIT,
    MIN_FAILURES,
    Allowed,
    Blocked,
    CircuitReporter,
    Permission,
    Probe,
)
from delivery.feedback import MIN_MISMATCHES
from delivery.rate_limiter import RateLimiter
from delivery.results import TargetResult
from delivery.runtime import SendingRuntime
from delivery.sending import PreparedDelivery
from domain.channels import Channel
from domain.errors import FailureCode, ProviderResponse, RecipientAction, TransientError
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


EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
MESSAGE = Message(subject="Paid", text="Your payment has arrived.")
MISMATCH = ProviderResponse(status=403, code="SENDER_ID_MISMATCH")
NOTIFICATION = ObjectId("b" * 24)


def result(
    outcome: Outcome,
    device_id: str | None = None,
    *,
    channel: Channel = PUSH,
    at: datetime = NOON,
    took: timedelta = SECOND,
    notification_id: ObjectId = NOTIFICATION,
    is_test: bool = False,
) -> tuple[PreparedDelivery, TargetResult]:
    claim = claimed(channel=channel, notification_id=notification_id, is_test=is_test)
    result = TargetResult(
        device_id=device_id, outcome=outcome, started_at=at, finished_at=at + took, duration_ms=1
    )
    return PreparedDelivery(claimed=claim, message=MESSAGE, targets=()), result


def apply(*results: tuple[PreparedDelivery, TargetResult], at: datetime = NOON) -> None:
    feedback.apply_reputation(results, provider=ScriptedProvider(name="fcm"), now=at)


def test_invalid_token_without_a_response_deactivates_its_device() -> None:
    old = device("old")
    apply(result(invalid_token(), old))
    assert stored_device(old)["deactivation_reason"] == "unregistered"


def test_third_malformed_token_error_deactivates_the_device() -> None:
    phone = device("phone")
    for n in range(3):
        assert stored_device(phone)["is_active"]
        apply(result(malformed_token(), phone, at=NOON + n * MINUTE))
    assert stored_device(phone)["deactivation_reason"] == "suspect"


def test_acceptance_is_recorded_with_the_time_of_the_response() -> None:
    phone = device("phone")
    apply(result(accepted(), phone, took=3 * SECOND))
    assert stored_device(phone)["last_accepted_at"] == NOON + 3 * SECOND


def test_latest_acceptance_of_a_device_counts() -> None:
    phone = device("phone")
    apply(*(result(accepted(), phone, at=NOON + n * MINUTE) for n in (0, 5, 2)))
    assert stored_device(phone)["last_accepted_at"] == NOON + 5 * MINUTE + SECOND


@pytest.mark.parametrize("invalid_later", [True, False])
def test_later_of_two_results_in_a_batch_counts(invalid_later: bool) -> None:
    phone = device("phone")
    alive = result(accepted(), phone, at=NOON + (0 if invalid_later else 5) * MINUTE)
    apply(result(invalid_token(), phone, at=NOON + (5 if invalid_later else 0) * MINUTE), alive)
    assert stored_device(phone)["is_active"] is not invalid_later


@pytest.mark.parametrize(
    "outcome",
    [provider_error(), rate_limited(), unreachable(), timeout(), channel_unavailable(), refused()],
)
def test_other_errors_affect_no_reputation(outcome: Outcome) -> None:
    phone = device("phone")
    before = stored_device(phone)
    apply(result(outcome, phone), result(outcome, channel=EMAIL), result(outcome, channel=WHATSAPP))
    assert stored_device(phone) == before
    assert collection("suppressions").count_documents({}) == 0
    assert collection("soft_bounces").count_documents({}) == 0


@pytest.mark.parametrize("code", ["SENDER_ID_MISMATCH", "INVALID_ARGUMENT"])
def test_batch_of_only_doubtful_refusals_is_no_devices_fault(code: str) -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    doubtful = ProviderResponse(status=400, code=code)
    with capture_logs() as logs:
        apply(*(result(invalid_token(response=doubtful), phone) for phone in phones))
    assert all(stored_device(phone)["is_active"] for phone in phones)
    assert [entry["log_level"] for entry in logs] == ["error"]


@pytest.mark.parametrize("action", [RecipientAction.SUSPECT, RecipientAction.DEACTIVATE])
def test_third_sender_mismatch_in_a_row_deactivates_the_device(action: RecipientAction) -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    first, *others = phones
    for n in range(3):
        assert all(stored_device(phone)["is_active"] for phone in phones)
        wrong = invalid_token(response=MISMATCH, action=action)
        at = NOON + n * MINUTE
        apply(result(accepted(), first, at=at), *(result(wrong, phone, at=at) for phone in others))
    assert stored_device(first)["is_active"]
    assert {stored_device(other)["deactivation_reason"] for other in others} == {"sender_mismatch"}


def test_repeated_results_change_nothing() -> None:
    old, phone, odd = device("old"), device("phone"), device("odd")
    results = [
        result(invalid_token(), old),
        result(accepted(), phone),
        result(malformed_token(), odd),
    ]
    apply(*results)
    once = [stored_device(item) for item in (old, phone, odd)]
    apply(*results)
    assert [stored_device(item) for item in (old, phone, odd)] == once


MAIL = ("email", "ada@example.com")
PHONE = ("whatsapp", "+351912345678")
TEXT = ("sms", "+351912345678")


def suppressions() -> dict[tuple[str, str], Any]:
    return dict(queries.find_suppressed({MAIL, PHONE, TEXT}, now=NOON))


@pytest.mark.parametrize(
    ("action", "channel", "found"),
    [
        (RecipientAction.DEACTIVATE, EMAIL, (MAIL, "hard_bounce", False)),
        (RecipientAction.UNSUBSCRIBE, WHATSAPP, (PHONE, "unsubscribed", True)),
        (RecipientAction.UNSUBSCRIBE, Channel.SMS, (TEXT, "unsubscribed", False)),
    ],
)
def test_invalid_address_or_marketing_refusal_is_suppressed(
    action: RecipientAction, channel: Channel, found: tuple[object, ...]
) -> None:
    apply(result(invalid_token(action=action), channel=channel))
    ((address, stored),) = suppressions().items()
    assert (address, stored.reason, stored.marketing_only) == found


def test_third_soft_bounce_suppresses_the_address() -> None:
    for n in range(3):
        assert suppressions() == {}
        another = result(malformed_token(), channel=WHATSAPP, notification_id=ObjectId(f"{n:024x}"))
        apply(another, at=NOON + n * MINUTE)
    assert list(suppressions()) == [PHONE]


def test_one_attempt_is_one_soft_bounce() -> None:
    for n in range(3):
        apply(result(malformed_token(), channel=WHATSAPP), at=NOON + n * MINUTE)
    assert suppressions() == {}


def test_in_app_has_no_reputation() -> None:
    apply(result(invalid_token(), channel=IN_APP))
    assert collection("suppressions").count_documents({}) == 0


def test_no_address_is_logged() -> None:
    with capture_logs() as logs:
        apply(result(invalid_token(), channel=EMAIL), result(malformed_token(), channel=WHATSAPP))
    assert len(logs) == 2
    assert not [entry for entry in logs if "ada@" in str(entry) or "3519" in str(entry)]


def test_results_of_the_sandbox_affect_no_reputation() -> None:
    old, phone = device("old"), device("phone")
    before = [stored_device(item) for item in (old, phone)]
    apply(result(invalid_token(), old, is_test=True), result(accepted(), phone, is_test=True))
    apply(result(invalid_token(action=RecipientAction.DEACTIVATE), channel=EMAIL, is_test=True))
    for n in range(3):
        another = ObjectId(f"{n:024x}")
        apply(result(malformed_token(), channel=WHATSAPP, notification_id=another, is_test=True))
    assert [stored_device(item) for item in (old, phone)] == before
    assert suppressions() == {}


def test_test_notification_does_not_hide_a_batch_of_mismatches() -> None:
    phones = [device(f"phone-{n}") for n in range(MIN_MISMATCHES)]
    wrong = [result(invalid_token(response=MISMATCH), phone) for phone in phones]
    apply(*wrong, result(accepted(), device("mine"), is_test=True))
    assert all(stored_device(phone)["is_active"] for phone in phones)


AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon allows a probe."""

Make = Callable[..., Outcome]


def internal_error() -> TransientError:
    return TransientError("A defect.", code=FailureCode.INTERNAL_ERROR, is_ambiguous=True)


def report(
    provider: ScriptedProvider,
    *outcomes: Outcome,
    scope: str = "",
    probes: Mapping[str, Probe] | None = None,
    now: datetime = NOON,
) -> None:
    """Report outcomes of different recipients."""
    sent = []
    for outcome in outcomes:
        found = TargetResult(
            device_id=None,
            outcome=outcome,
            started_at=now,
            finished_at=now,
            duration_ms=1,
            scope=scope,
        )
        claim = claimed(channel=PUSH, notification_id=ObjectId(), user_id=str(ObjectId()))
        sent.append((PreparedDelivery(claimed=claim, message=MESSAGE, targets=()), found))
    feedback.report_provider_health(SendingRuntime(), provider, sent, probes=probes or {}, now=now)


def permission(account: str, now: datetime = NOON) -> Permission:
    return circuit_breaker.request_permissions([account], now=now)[account]


def open_and_probe(account: str) -> dict[str, Probe]:
    CircuitReporter().trip(account, now=NOON, retry_after=None)
    probe = permission(account, AFTER)
    assert isinstance(probe, Probe)
    return {account: probe}


@pytest.mark.parametrize("error", [provider_error, unreachable, timeout])
def test_twenty_failures_open_the_circuit(fcm: ScriptedProvider, error: Make) -> None:
    report(fcm, *[error() for _ in range(MIN_FAILURES - 1)])
    assert permission(fcm.account) == Allowed()
    report(fcm, error())
    assert permission(fcm.account) == Blocked(AFTER)


@pytest.mark.parametrize(
    "answer", [accepted, invalid_token, malformed_token, refused, rate_limited, internal_error]
)
def test_answers_about_the_message_open_no_circuit(fcm: ScriptedProvider, answer: Make) -> None:
    report(fcm, *[answer() for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()


def test_internal_errors_do_not_count_as_successes(fcm: ScriptedProvider) -> None:
    report(
        fcm,
        *[internal_error() for _ in range(100)],
        *[provider_error() for _ in range(MIN_FAILURES)],
    )
    assert permission(fcm.account) == Blocked(AFTER)


def test_outage_opens_the_circuit_for_retry_after(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), channel_unavailable(retry_after=300), accepted())
    assert permission(fcm.account) == Blocked(NOON + 300 * SECOND)


def test_outage_of_a_platform_opens_only_its_circuit(fcm: ScriptedProvider) -> None:
    report(fcm, *[channel_unavailable(scope="ios") for _ in range(5 * MIN_FAILURES)])
    assert permission(fcm.account) == Allowed()
    assert permission(f"{fcm.account}/ios") == Blocked(AFTER)
    assert permission(f"{fcm.account}/android") == Allowed()


@pytest.mark.parametrize("answer", [accepted, invalid_token, refused, rate_limited])
def test_answer_about_the_message_closes_the_circuit(fcm: ScriptedProvider, answer: Make) -> None:
    report(fcm, answer(), probes=open_and_probe(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Allowed()


@pytest.mark.parametrize("error", [provider_error, unreachable, timeout, channel_unavailable])
def test_failed_probe_doubles_the_wait(fcm: ScriptedProvider, error: Make) -> None:
    report(fcm, error(), probes=open_and_probe(fcm.account), now=AFTER)
    assert permission(fcm.account, AFTER) == Blocked(AFTER + 2 * FIRST_WAIT)


@pytest.mark.parametrize(
    "outcomes", [[], [internal_error()]], ids=["nothing sent", "internal error"]
)
def test_inconclusive_probe_is_returned(fcm: ScriptedProvider, outcomes: list[Outcome]) -> None:
    report(fcm, *outcomes, probes=open_and_probe(fcm.account), now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [(accepted(), Allowed()), (channel_unavailable(scope="ios"), Blocked(AFTER + 2 * FIRST_WAIT))],
)
def test_platform_probe_closes_its_circuit_or_doubles_the_wait(
    fcm: ScriptedProvider, answer: Outcome, expected: Permission
) -> None:
    ios = f"{fcm.account}/ios"
    report(fcm, answer, scope="ios", probes=open_and_probe(ios), now=AFTER)
    assert permission(ios, AFTER) == expected


def test_result_of_another_platform_returns_the_probe(fcm: ScriptedProvider) -> None:
    ios = f"{fcm.account}/ios"
    report(fcm, accepted(), scope="android", probes=open_and_probe(ios), now=AFTER)
    assert isinstance(permission(ios, AFTER), Probe)


def test_outage_of_a_platform_returns_the_provider_probe(fcm: ScriptedProvider) -> None:
    probes = open_and_probe(fcm.account)
    report(fcm, channel_unavailable(scope="ios"), scope="ios", probes=probes, now=AFTER)
    assert isinstance(permission(fcm.account, AFTER), Probe)


def granted(provider: ScriptedProvider, after: timedelta) -> int:
    return RateLimiter().take(provider.account, 100, rate=10, burst=10, now=NOON + after).granted


def test_rate_limit_halves_the_rate_after_its_pause_if_any(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), rate_limited(retry_after=3), rate_limited(retry_after=5))
    assert granted(fcm, 4 * SECOND) == 0
    assert granted(fcm, 6 * SECOND) == 5
    other = ScriptedProvider(name="other")
    report(other, rate_limited())
    assert granted(other, SECOND) == 5


def test_other_results_do_not_slow_sending(fcm: ScriptedProvider) -> None:
    report(fcm, accepted(), provider_error(retry_after=300), timeout(), invalid_token(), refused())
    assert granted(fcm, SECOND) == 10
