"""Health of each configured provider: circuits, rate, and recent attempts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings

from delivery import circuit_breaker, provider_pauses, rate_limiter
from delivery.accounts import brand_providers
from delivery.circuit_breaker import CircuitState, State
from delivery.provider_pauses import Pause
from delivery.rate_limiter import RateStatus
from domain.channels import Channel
from domain.states import AttemptStatus
from providers.contract import Provider
from providers.registry import providers_for

from . import metrics
from .metrics import Metric, MetricValue
from .models import Interval

DAY = timedelta(hours=24)
RECENT = timedelta(minutes=10)
"""Attempts of this long decide whether a provider fails."""
MAX_SCOPES = 10
"""Circuits of scopes that are shown."""
MIN_RECENT_ATTEMPTS, MIN_FAILED_SHARE = 5, 0.5
"""A provider fails if it had this many recent attempts, and this share of them failed."""
A = AttemptStatus


class Health(StrEnum):
    """How well a provider works, from the worst state to the best."""

    PAUSED = "paused"
    OPEN = "open"
    """Circuit open: nothing is sent."""
    PROBING = "probing"
    """Circuit half-open: one probe at a time."""
    PARTLY_OPEN = "partly_open"
    """The circuit of a scope is open, such as a platform's."""
    FAILING = "failing"
    """Most recent attempts failed."""
    RATE_LIMITED = "slowed"
    UNKNOWN = "unknown"
    """Valkey, which holds the circuits, is unavailable."""
    HEALTHY = "well"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHealth:
    """State and recent results of one provider account."""

    name: str
    account: str
    channel: Channel
    health: Health
    pause: Pause | None
    circuits: Sequence[CircuitState]
    """Of the account, then of its scopes, such as platforms: the worst, at most MAX_SCOPES."""
    rate: float | None
    """Configured messages a second; None without a limit."""
    rate_status: RateStatus | None
    attempts: int
    """Attempts in the last 24 hours."""
    failures: int
    """Attempts among them that failed or ended unknown."""
    recent_attempts: int
    """Attempts in the last RECENT."""
    recent_failures: int
    last_success: datetime | None
    """In the last 24 hours, to the minute."""
    last_failure: datetime | None
    p95: float | None
    """Seconds from request to response, in the last 24 hours."""
    scopes_left_out: int = 0
    """Circuits of other scopes."""

    @property
    def current_rate(self) -> float | None:
        """Messages a second that the rate limiter allows now. None without a limit."""
        if self.rate is None or self.rate_status is None:
            return self.rate
        return self.rate * self.rate_status.share


def provider_health(*, now: datetime) -> list[ProviderHealth]:
    """Return the health of each provider that sends, by channel, without the sandbox.

    Those are the channels' own, and the accounts of brands.
    """
    known = _configured()
    circuits, pauses = circuit_breaker.circuit_states(now=now), provider_pauses.pauses()
    accounts = [provider.account for _, provider in known]
    rate_statuses = rate_limiter.rate_statuses(accounts, now=now) or {}
    values = metrics.read_summed(
        Interval.HOUR,
        since=now - DAY,
        until=now,
        metrics=(Metric.TRIED.value, Metric.REQUEST.value),
        by=("provider", "status"),
    )
    recent = metrics.read_summed(
        Interval.MINUTE,
        since=now - RECENT,
        until=now,
        metrics=(Metric.TRIED.value,),
        by=("provider", "status"),
    )
    healths = []
    for channel, provider in known:
        name, account = provider.name, provider.account
        pause, rate_status = pauses.get(name), rate_statuses.get(account)
        own_circuits, left_out = _shown([c for c in circuits or () if c.account == account])
        own = [f for f in values if f.dimensions.get("provider") == name]
        attempts = [f for f in own if f.metric == Metric.TRIED]
        failures = _failed(attempts)
        recent_attempts = [f for f in recent if f.dimensions.get("provider") == name]
        recent_count, recent_failures = _sum(recent_attempts), _sum(_failed(recent_attempts))
        is_failing = recent_count >= MIN_RECENT_ATTEMPTS and (
            recent_failures >= recent_count * MIN_FAILED_SHARE
        )
        successes = [f for f in attempts if f.dimensions["status"] == A.SENT]
        latencies = (f.histogram for f in own if f.metric == Metric.REQUEST)
        healths.append(
            ProviderHealth(
                name=name,
                account=account,
                channel=channel,
                health=_classify(
                    account,
                    own_circuits,
                    pause,
                    rate_status,
                    is_unknown=circuits is None,
                    is_failing=is_failing,
                ),
                pause=pause,
                circuits=own_circuits,
                scopes_left_out=left_out,
                rate=settings.PROVIDER_RATES.get(name, (None, 1))[0],
                rate_status=rate_status,
                attempts=_sum(attempts),
                failures=_sum(failures),
                recent_attempts=recent_count,
                recent_failures=recent_failures,
                last_success=_last_minute(successes, name, (A.SENT,), now),
                last_failure=_last_minute(failures, name, (A.FAILED, A.UNKNOWN), now),
                p95=metrics.quantile(metrics.merge_histograms(latencies), 0.95),
            )
        )
    return healths


def provider_names() -> frozenset[str]:
    """Return the names of the configured providers."""
    return frozenset(provider.name for _, provider in _configured())


def _configured() -> list[tuple[Channel, Provider]]:
    paused = provider_pauses.pauses()
    return [
        (channel, provider)
        for channel in Channel
        if not channel.is_inbox
        for provider in (*providers_for(channel), *brand_providers(channel, known=paused))
    ]


def _shown(circuits: Sequence[CircuitState]) -> tuple[Sequence[CircuitState], int]:
    """Return the circuits to show, and the number of others."""
    of_account = [circuit for circuit in circuits if not circuit.scope]
    of_scopes = [circuit for circuit in circuits if circuit.scope]
    of_scopes.sort(key=lambda circuit: circuit.state is State.CLOSED)
    return [*of_account, *of_scopes[:MAX_SCOPES]], max(len(of_scopes) - MAX_SCOPES, 0)


def _classify(
    account: str,
    circuits: Sequence[CircuitState],
    pause: Pause | None,
    rate_status: RateStatus | None,
    *,
    is_unknown: bool,
    is_failing: bool,
) -> Health:
    states: Mapping[str, State] = {circuit.name: circuit.state for circuit in circuits}
    is_rate_limited = rate_status is not None and (
        rate_status.blocked_until or rate_status.share < 1
    )
    conditions = {
        Health.PAUSED: pause is not None,
        Health.UNKNOWN: is_unknown,
        Health.OPEN: states.get(account) is State.OPEN,
        Health.PROBING: states.get(account) is State.HALF_OPEN,
        Health.PARTLY_OPEN: any(state is not State.CLOSED for state in states.values()),
        Health.FAILING: is_failing,
        Health.RATE_LIMITED: is_rate_limited,
    }
    return next((health for health, is_met in conditions.items() if is_met), Health.HEALTHY)


def _failed(attempts: Iterable[MetricValue]) -> list[MetricValue]:
    return [
        attempt for attempt in attempts if attempt.dimensions["status"] in (A.FAILED, A.UNKNOWN)
    ]


def _sum(values: Iterable[MetricValue]) -> int:
    return sum(int(metric_value.value) for metric_value in values)


def _last_minute(
    hours: Sequence[MetricValue], provider: str, statuses: Sequence[AttemptStatus], now: datetime
) -> datetime | None:
    hour = max((metric_value.timestamp for metric_value in hours), default=None)
    if hour is None:
        return None
    minute = metrics.last_timestamp(
        Interval.MINUTE,
        Metric.TRIED.value,
        since=hour,
        until=min(hour + metrics.INTERVAL_LENGTH[Interval.HOUR], now),
        dimensions={"provider": [provider], "status": [status.value for status in statuses]},
    )
    return minute or hour
