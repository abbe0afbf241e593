"""Retries of callbacks, and the health of an endpoint."""

from datetime import UTC, datetime, timedelta

from callbacks import retry
from callbacks.events import DisabledReason
from callbacks.retry import AttemptOutcome, Decision, EndpointHealth
from tests.support.tables import each_case

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
SECOND, MINUTE, HOUR = timedelta(seconds=1), timedelta(minutes=1), timedelta(hours=1)
MIDDLE = 0.5
"""The jitter that changes no delay."""


def decided(
    status: int | None, *, tries: int = 1, pause: timedelta | None = None, jitter: float = MIDDLE
) -> Decision:
    return retry.decide_retry(status=status, tries=tries, pause=pause, now=NOW, jitter=jitter)


@each_case("status", [200, 201, 202, 204, 299])
def test_status_from_200_to_299_is_delivered(status: int) -> None:
    assert decided(status) == Decision(AttemptOutcome.DELIVERED)


@each_case("status", [None, 100, 301, 302, 307, 400, 401, 404, 429, 500, 503])
def test_other_status_is_retried(status: int | None) -> None:
    assert decided(status).outcome is AttemptOutcome.RETRY


@each_case(
    "tries, wait",
    [
        (1, 5 * SECOND),
        (2, 1 * MINUTE),
        (3, 10 * MINUTE),
        (4, 1 * HOUR),
        (5, 3 * HOUR),
        (6, 8 * HOUR),
        (7, 11 * HOUR),
    ],
)
def test_delay_after_each_attempt(tries: int, wait: timedelta) -> None:
    assert decided(503, tries=tries).at == NOW + wait
    assert decided(503, tries=tries, jitter=0.0).at == NOW + wait * 0.8
    assert decided(503, tries=tries, jitter=1.0).at == NOW + wait * 1.2


def test_eighth_attempt_is_the_last() -> None:
    assert retry.MAX_ATTEMPTS == 8
    assert decided(503, tries=8) == Decision(AttemptOutcome.GIVE_UP)
    assert timedelta(hours=23) < sum(retry.DELAYS, timedelta(0)) < timedelta(hours=24)


def test_retry_after_extends_the_delay_up_to_a_limit() -> None:
    assert decided(429, pause=2 * MINUTE).at == NOW + 2 * MINUTE
    assert decided(429, tries=2, pause=1 * SECOND).at == NOW + MINUTE
    assert decided(503, pause=timedelta(days=9)).at == NOW + 12 * HOUR


@each_case(
    "failures, open_for",
    [
        (0, None),
        (4, None),
        (5, 30 * SECOND),
        (6, 1 * MINUTE),
        (7, 2 * MINUTE),
        (9, 8 * MINUTE),
        (10, 10 * MINUTE),
        (1_000_000, 10 * MINUTE),
    ],
)
def test_circuit_opens_longer_with_each_failure(failures: int, open_for: timedelta | None) -> None:
    until = NOW + open_for if open_for else None
    assert retry.circuit_open_until(failures=failures, now=NOW) == until


def test_failing_since_is_the_first_failure_in_a_row() -> None:
    health = EndpointHealth().after_failure(at=NOW, error="HTTP 500.")
    health = health.after_failure(at=NOW + HOUR, error="HTTP 503.")
    assert health == EndpointHealth(
        failures=2, failing_since=NOW, last_failure_at=NOW + HOUR, last_error="HTTP 503."
    )


def test_success_resets_the_health() -> None:
    health = EndpointHealth().after_failure(at=NOW, error="HTTP 500.").after_success(at=NOW + HOUR)
    assert health == EndpointHealth(last_failure_at=NOW, last_success_at=NOW + HOUR)


def test_callback_is_disabled_after_five_days_of_failures() -> None:
    health = EndpointHealth().after_failure(at=NOW, error="HTTP 500.")
    almost = timedelta(days=5) - SECOND
    assert health.disable_reason(now=NOW + almost) is None
    assert health.disable_reason(now=NOW + almost + SECOND) is DisabledReason.FAILING
