"""How each provider that is set up is doing, for people: its circuits, its rate, its last sends."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.conf import settings

from analytics import metrics
from analytics.metrics import Metric, MetricValue
from analytics.models import Interval
from delivery import circuit_breaker, rate_limiter
from delivery.circuit_breaker import CircuitState, Pause, State
from delivery.rate_limiter import RateStatus
from domain.states import AttemptStatus, Channel
from providers.registry import providers_for

DAY = timedelta(hours=24)
A = AttemptStatus


class Health(StrEnum):
    """A provider in one word, the worst first."""

    PAUSED = "paused"
    OPEN = "open"
    """Its circuit is: nothing goes there."""
    PROBING = "probing"
    """Its circuit was open, and one message at a time tries whether it is well again."""
    PARTLY_OPEN = "partly_open"
    """One of its platforms takes nothing."""
    SLOWED = "slowed"
    """It said that it was too much."""
    UNKNOWN = "unknown"
    """Valkey, which knows, does not answer."""
    WELL = "well"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderHealth:
    """One provider's account."""

    name: str
    account: str
    channel: Channel
    health: Health
    pause: Pause | None
    circuits: Sequence[CircuitState]
    """Its own and, if it fails in parts, those of its platforms."""
    rate: float | None
    """Messages a second, as configured; None without a limit."""
    standing: RateStatus | None
    tried: int
    """Attempts of the last 24 hours."""
    refused: int
    """Of these, those that failed or ended unknown."""
    last_success: datetime | None
    """To the minute, of the last 24 hours."""
    last_failure: datetime | None
    p95: float | None
    """Seconds from when it was due until it was sent, of the last 24 hours."""

    @property
    def rate_now(self) -> float | None:
        """Messages a second, as its last refusals have left it."""
        if self.rate is None or self.standing is None:
            return self.rate
        return self.rate * self.standing.share


def provider_health(*, now: datetime) -> list[ProviderHealth]:
    """Return the providers that are set up, in the order of their channels; not the sandbox."""
    known = [
        (channel, provider)
        for channel in Channel
        if channel is not Channel.IN_APP
        for provider in providers_for(channel)
    ]
    circuits, pauses = circuit_breaker.circuit_states(now=now), circuit_breaker.pauses()
    standings = rate_limiter.rate_statuses([provider.account for _, provider in known], now=now)
    figures = _figures(now)
    return [
        _health(
            name=provider.name,
            account=provider.account,
            channel=channel,
            circuits=circuits,
            pause=pauses.get(provider.name),
            standing=standings[provider.account] if standings is not None else None,
            figures=[f for f in figures if f.dimensions.get("provider") == provider.name],
            now=now,
        )
        for channel, provider in known
    ]


def names() -> frozenset[str]:
    """Return the names of the providers that are set up."""
    return frozenset(
        p.name
        for channel in Channel
        if channel is not Channel.IN_APP
        for p in providers_for(channel)
    )


def _health(
    *,
    name: str,
    account: str,
    channel: Channel,
    circuits: Sequence[CircuitState] | None,
    pause: Pause | None,
    standing: RateStatus | None,
    figures: Sequence[MetricValue],
    now: datetime,
) -> ProviderHealth:
    own = [c for c in circuits or () if c.account == account or c.account.startswith(f"{account}:")]
    tried = [f for f in figures if f.metric == Metric.TRIED]
    bad = [f for f in tried if f.dimensions["status"] in (A.FAILED, A.UNKNOWN)]
    good = [f for f in tried if f.dimensions["status"] == A.SENT]
    rate, _ = settings.PROVIDER_RATES.get(name, (None, 1))
    waits = metrics.merge_histograms(f for f in figures if f.metric == Metric.LATENCY)
    return ProviderHealth(
        name=name,
        account=account,
        channel=channel,
        health=_word(account, circuits is None, own, pause, standing),
        pause=pause,
        circuits=own,
        rate=rate,
        standing=standing,
        tried=_sum(tried),
        refused=_sum(bad),
        last_success=_last_minute(good, name, (A.SENT,), now),
        last_failure=_last_minute(bad, name, (A.FAILED, A.UNKNOWN), now),
        p95=metrics.quantile(waits, 0.95),
    )


def _word(
    account: str,
    is_unknown: bool,
    circuits: Sequence[CircuitState],
    pause: Pause | None,
    standing: RateStatus | None,
) -> Health:
    states: Mapping[str, State] = {circuit.account: circuit.state for circuit in circuits}
    is_slowed = standing is not None and (standing.blocked_until or standing.share < 1)
    troubles = {
        Health.PAUSED: pause is not None,
        Health.UNKNOWN: is_unknown,
        Health.OPEN: states.get(account) is State.OPEN,
        Health.PROBING: states.get(account) is State.HALF_OPEN,
        Health.PARTLY_OPEN: any(state is not State.CLOSED for state in states.values()),
        Health.SLOWED: is_slowed,
    }
    return next((word for word, is_so in troubles.items() if is_so), Health.WELL)


def _figures(now: datetime) -> list[MetricValue]:
    wanted = (Metric.TRIED.value, Metric.LATENCY.value)
    return metrics.read_summed(
        Interval.HOUR, since=now - DAY, until=now, metrics=wanted, by=("provider", "status")
    )


def _sum(figures: Iterable[MetricValue]) -> int:
    return sum(int(figure.value) for figure in figures)


def _last_minute(
    hours: Sequence[MetricValue], provider: str, statuses: Sequence[AttemptStatus], now: datetime
) -> datetime | None:
    """Return the last minute with an attempt of this provider that ended so."""
    hour = max((figure.timestamp for figure in hours), default=None)
    if hour is None:
        return None
    minute = metrics.last(
        Interval.MINUTE,
        Metric.TRIED.value,
        since=hour,
        until=min(hour + metrics.LENGTH[Interval.HOUR], now),
        dimensions={"provider": [provider], "status": [status.value for status in statuses]},
    )
    return minute or hour
