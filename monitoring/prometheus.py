"""Prometheus metrics. They come from shared state, so that any process can be scraped."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import accumulate

from prometheus_client import generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

from access.clients import registry
from delivery import circuit_breaker, provider_pauses
from delivery.circuit_breaker import State
from domain.digests import DigestOutcome
from notifications.store import digests
from notifyproject.platform.cache import TimedCache

from . import dashboard, incidents, metrics, provider_health, workers
from .metrics import OTHER, MetricValue
from .metrics import Metric as Name
from .models import AlertKind, Interval

FRESH_SECONDS = 10.0
WINDOW = timedelta(minutes=60)
"""Period of the counts. The last minutes are still being counted."""
PREFIX = "notify"
COUNTED_METRICS = (Name.ACCEPTED, Name.SENT, Name.DELIVERED, Name.READ, Name.FAILED, Name.RETRIED)
MAX_DIGESTS = 10_000
MAX_TYPES = 200
"""Maximum of types with a label of their own. The rest share OTHER."""
DEVICE_METRICS = {
    Name.DEVICE_SENT: "sent",
    Name.DEVICE_DELIVERED: "delivered",
    Name.DEVICE_OPENED: "opened",
    Name.DEVICE_FAILED: "failed",
}
"""Labels of the metrics of attempts at devices."""
_cache = TimedCache[bytes](seconds=FRESH_SECONDS)
clear = _cache.clear
_CIRCUIT_VALUES = {State.OPEN: 1.0, State.HALF_OPEN: 0.5, State.CLOSED: 0.0}


def render_metrics(*, now: datetime) -> bytes:
    """Return the metrics in Prometheus format, at most ten seconds old."""
    return _cache.get(lambda: generate_latest(_ServiceCollector(now)))


@dataclass(frozen=True, slots=True)
class _ServiceCollector(Collector):
    now: datetime

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics."""
        now = self.now
        found = metrics.read(Interval.MINUTE, since=now - WINDOW, until=now)
        yield _deliveries(found)
        yield from _by_dimension(found)
        yield from _latency(found)
        yield from _work(now)
        yield from _digests(now)
        yield from _providers(now)
        yield from _heartbeats(now)
        yield _incidents()


def _deliveries(found: list[MetricValue]) -> Metric:
    family = GaugeMetricFamily(
        f"{PREFIX}_deliveries_last_hour",
        "Deliveries of the last hour by what became of them, of attempts begun in it.",
        labels=("event", "channel", "type"),
    )
    counts: dict[tuple[str, str, str], float] = {}
    known: set[str] = set()
    for metric_value in found:
        if metric_value.metric in COUNTED_METRICS:
            channel, kind = metric_value.dimensions["channel"], metric_value.dimensions["type"]
            if len(known) < MAX_TYPES:
                known.add(kind)
            key = (str(metric_value.metric), channel, kind if kind in known else OTHER)
            counts[key] = counts.get(key, 0) + metric_value.value
    for key, value in sorted(counts.items()):
        family.add_metric(key, value)
    return family


def _by_dimension(found: list[MetricValue]) -> Iterator[Metric]:
    """Yield deliveries by provider and by API client, and attempts at devices by platform."""
    by_provider, by_client, by_platform = (Counter[tuple[str, ...]]() for _ in range(3))
    clients = {str(key): name for key, name in registry.names(limit=metrics.MAX_CLIENTS).items()}
    for value in found:
        event, channel = str(value.metric), value.dimensions["channel"]
        if value.metric in DEVICE_METRICS:
            platform = value.dimensions["platform"]
            by_platform[DEVICE_METRICS[Name(value.metric)], platform] += int(value.value)
        elif value.metric in COUNTED_METRICS:
            client = clients.get(value.dimensions.get("client_id", ""), OTHER)
            by_client[event, channel, client] += int(value.value)
            if "provider" in value.dimensions:
                by_provider[event, channel, value.dimensions["provider"]] += int(value.value)
    for name, text, labels, counts in (
        ("provider_deliveries", "Deliveries", ("event", "channel", "provider"), by_provider),
        ("client_deliveries", "Deliveries", ("event", "channel", "client"), by_client),
        ("device_messages", "Attempts at devices", ("event", "platform"), by_platform),
    ):
        family = _gauge(f"{name}_last_hour", f"{text} of the last hour, by {labels[-1]}.", *labels)
        for key in sorted(counts):
            family.add_metric(key, counts[key])
        yield family


def _latency(found: list[MetricValue]) -> Iterator[Metric]:
    family = HistogramMetricFamily(
        f"{PREFIX}_due_to_sent_seconds_last_hour",
        "From when a delivery was due until the provider took it, of attempts of the last hour.",
        labels=("channel",),
    )
    by_channel: dict[str, list[MetricValue]] = defaultdict(list)
    for metric_value in found:
        if metric_value.metric == Name.LATENCY:
            by_channel[metric_value.dimensions["channel"]].append(metric_value)
    bounds = (*map(str, metrics.BOUNDS), "+Inf")
    for channel in sorted(by_channel):
        values = by_channel[channel]
        totals = accumulate(metrics.merge_histograms(value.histogram for value in values))
        buckets = [(bound, float(total)) for bound, total in zip(bounds, totals, strict=True)]
        family.add_metric([channel], buckets, sum(value.seconds or 0 for value in values))
    yield family


def _work(now: datetime) -> Iterator[Metric]:
    due = _gauge("due", "Notifications due and not done; 10,000 means at least that.", "priority")
    age = _gauge("oldest_due_seconds", "How long the oldest of them has been due.", "priority")
    depth = _gauge("queue_messages", "Messages in a queue.", "channel", "priority")
    for status in workers.queue_status(now=now):
        name = status.priority.value
        due.add_metric([name], status.due)
        oldest = status.oldest_due_at
        age.add_metric([name], (now - oldest).total_seconds() if oldest else 0)
        for channel, messages in status.depths.items():
            if messages is not None:
                depth.add_metric([channel.value, name], messages)
    summary = dashboard.summarize_work(now=now)
    waiting = _gauge("waiting", "Notifications that wait, up to 10,000.", "state")
    for state in ("scheduled", "retrying", "unknown"):
        waiting.add_metric([state], getattr(summary, state))
    yield from (due, age, depth, waiting)


def _digests(now: datetime) -> Iterator[Metric]:
    is_open = _gauge("digests_open", "Open digests; 10,000 means at least that.")
    is_open.add_metric([], digests.count_open(limit=MAX_DIGESTS))
    overdue = _gauge("digest_overdue_seconds", "How long the oldest due digest has been due.")
    first, _ = digests.next_due(until=now, limit=1)
    overdue.add_metric([], (now - first).total_seconds() if first else 0)
    closed = _gauge("digests_closed_last_hour", "Digests closed in the last hour.", "outcome")
    members = _gauge("digest_members_last_hour", "Messages of these digests.", "outcome")
    counts = digests.count_closed(since=now - WINDOW)
    for outcome in DigestOutcome:
        digest_count, member_count = counts.get(outcome, (0, 0))
        closed.add_metric([outcome.value], digest_count)
        members.add_metric([outcome.value], member_count)
    yield from (is_open, overdue, closed, members)


def _providers(now: datetime) -> Iterator[Metric]:
    is_open = _gauge(
        "circuit_open", "A provider's circuit: 1 open, 0.5 half open, 0 closed.", "provider"
    )
    paused = _gauge("provider_paused", "Whether an operator has paused a provider.", "provider")
    pauses, names = provider_pauses.pauses(), sorted(provider_health.provider_names())
    scopes = _gauge(
        "circuit_scopes_open", "Platforms, hosts, or rooms with an open circuit.", "provider"
    )
    worst, open_scopes = dict.fromkeys(names, 0.0), dict.fromkeys(names, 0)
    for circuit in circuit_breaker.circuit_states(now=now) or ():
        name = circuit.account.partition(":")[0]
        if name not in worst:
            continue
        if circuit.scope:
            open_scopes[name] += circuit.state is not State.CLOSED
        else:
            worst[name] = max(worst[name], _CIRCUIT_VALUES[circuit.state])
    for name in names:
        is_open.add_metric([name], worst[name])
        scopes.add_metric([name], open_scopes[name])
        paused.add_metric([name], float(name in pauses))
    yield from (is_open, scopes, paused)


def _heartbeats(now: datetime) -> Iterator[Metric]:
    family = _gauge("last_seen_seconds", "How long ago something regular last happened.", "what")
    heartbeats = workers.heartbeats()
    times = {"sweep": heartbeats.sweep, "canary": heartbeats.worker, "figures": heartbeats.rollup}
    for name, at in times.items():
        if at is not None:
            family.add_metric([name], (now - at).total_seconds())
    yield family


def _incidents() -> Metric:
    family = _gauge("incidents_open", "Open incidents.", "kind")
    kinds = [incident["kind"] for incident in incidents.open_incidents()]
    for kind in AlertKind:
        family.add_metric([kind.value], kinds.count(kind))
    return family


def _gauge(name: str, documentation: str, *labels: str) -> GaugeMetricFamily:
    return GaugeMetricFamily(f"{PREFIX}_{name}", documentation, labels=labels)
