"""What is wrong now: outages of providers, work that isn't done, and many failures of one cause."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.channels import Channel
from domain.errors import FailureCode
from domain.mailboxes import parse_mailbox
from domain.wait_reasons import OUTAGES, as_clause
from monitoring import incidents as incident_store
from monitoring.dashboard import WorkSummary
from monitoring.documents import IncidentDocument
from monitoring.failure_groups import FailureCount, FailureCounts
from monitoring.models import AlertKind, AlertRule
from monitoring.provider_health import Health, ProviderHealth
from notifications.catalog.designs import BrandRequest
from providers import senders
from providers.labels import provider_name
from providers.registry import can_send
from rooms.registry import Room

from .texts.failure_codes import explain_cause
from .texts.labels import CHANNELS, HEALTH_LABELS
from .widgets.formats import clock, count_of, duration, percent
from .widgets.links import FAILURES, PROVIDERS, WAITING
from .widgets.waits import pause_text

F = FailureCode
SWEEP_OVERDUE = timedelta(minutes=3)  # Maximum age of the last sweep
WORK_OVERDUE = timedelta(minutes=5)
"""Maximum age of a due delivery. Normally, a worker claims it within seconds."""
RECENT = timedelta(hours=1)
"""The time in which failures are compared with what was sent."""
MANY_SHARE = 0.03
"""Share of a channel's recent deliveries from which failures of one cause are a problem."""
MANY_FAILURES, SOME_FAILURES = 10, 3
"""Least number of them; the second for causes that don't end by themselves."""
MAX_ROOM_ISSUES = 5
"""Disabled rooms that are named. Others are counted."""
NEVER_NORMAL = frozenset({F.INTERNAL_ERROR, F.QUARANTINED, F.DECRYPTION_FAILED})
"""Causes of which a single failure is a problem."""
PROVIDER_CAUSES = frozenset(
    {
        F.CHANNEL_UNAVAILABLE,
        F.PROVIDER_ERROR,
        F.CONNECTION_FAILED,
        F.TIMEOUT,
        F.CONNECTION_LOST,
        F.RATE_LIMITED,
        F.OUTCOME_UNKNOWN,
        F.EXPIRED,
    }
)
"""Causes that an outage of a provider explains."""
BLOCKED = frozenset({Health.PAUSED, Health.OPEN, Health.PROBING})
"""States in which a provider sends nothing, or one probe at a time."""
_ISSUE_OF_KIND = {AlertKind.SWEEP_OVERDUE.value: "sweep", AlertKind.WORK_OVERDUE.value: "overdue"}
_INCIDENT_KINDS = frozenset({AlertKind.BREAKER_OPEN, AlertKind.PROVIDER_PAUSED})


class ServiceState(StrEnum):
    """The state of the whole service, from the best to the worst."""

    OPERATIONAL = "operational"
    PAUSED = "paused"
    """Staff have paused what doesn't send."""
    DEGRADED = "degraded"
    OUTAGE = "outage"


@dataclass(frozen=True, slots=True)
class Cause:
    """A reason why the service isn't operational."""

    text: str
    url: str | None = None


@dataclass(frozen=True, slots=True)
class ServiceStatus:
    """The state of the service, and its causes."""

    state: ServiceState
    causes: Sequence[Cause] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """A number of an outage, and where it is listed."""

    label: str
    value: SafeString | str
    url: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outage:
    """A provider that doesn't send, with all that it has caused, in one place."""

    provider: str
    channel: Channel
    title: str
    is_planned: bool
    since: datetime | None
    reason: str
    facts: Sequence[Fact]
    incident: IncidentDocument | None
    """The open incident about it."""
    consequences: Sequence[Mapping[str, Any]] = ()
    """Open incidents about failures that it explains."""

    @property
    def unacknowledged(self) -> list[Any]:
        """IDs of its incidents that nobody has acknowledged."""
        known = [
            incident for incident in (self.incident, *self.consequences) if incident is not None
        ]
        return [incident["_id"] for incident in known if not incident.get("acknowledged_at")]

    @property
    def color(self) -> str:
        """Amber for a pause, red for a failure."""
        return "warning" if self.is_planned else "danger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Issue:
    """A problem that needs an operator."""

    key: str
    """Identifies it, so that staff can mute it."""
    color: str  # ``danger`` for an outage, else ``warning``
    text: str
    advice: str
    list_query: str | None = None  # Query that shows the problem in the list of failures
    room: str | None = None  # The room that it is about, by the key in its page's URL
    is_outage: bool = False  # Due work isn't done

    @property
    def is_mutable(self) -> bool:
        """Whether staff can mute it: work that isn't done is always shown."""
        return not self.is_outage


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """An open incident, with the issues that are the same matter."""

    incident: IncidentDocument
    issues: Sequence[Issue] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Matters:
    """What needs attention, each matter once."""

    outages: Sequence[Outage]
    alerts: Sequence[Alert]
    issues: Sequence[Issue]
    """Those that no open incident is about."""


def find_outages(
    providers: Sequence[ProviderHealth],
    *,
    work: WorkSummary,
    failures: FailureCounts,
    incidents: Sequence[IncidentDocument],
    now: datetime,
) -> list[Outage]:
    """Return the providers that don't send, those that failed first."""
    found = [
        _outage(provider, work=work, failures=failures, incidents=incidents, now=now)
        for provider in providers
        if provider.health in BLOCKED
    ]
    return sorted(found, key=lambda outage: outage.is_planned)


def _outage(
    health: ProviderHealth,
    *,
    work: WorkSummary,
    failures: FailureCounts,
    incidents: Sequence[IncidentDocument],
    now: datetime,
) -> Outage:
    name, channel = provider_name(health.name), health.channel
    circuit = next((circuit for circuit in health.circuits if circuit.name == health.account), None)
    is_planned = health.health is Health.PAUSED
    facts = list(_facts(channel, work, failures))
    pause = health.pause
    since: datetime | None
    if pause is not None:
        title, since, reason = pause_text(pause), pause.since, ""
    else:
        title, since = f"{name}'s circuit is open", circuit.opened_at if circuit else None
        reason = circuit.reason or "" if circuit else ""
        if circuit is not None and circuit.open_until is not None:
            at = circuit.open_until
            value: SafeString | str = "now" if at <= now else clock(at, now=now)
            if at > now:
                value = format_html("{}, in {}", value, duration((at - now).total_seconds()))
            facts.append(Fact(label="Next probe", value=value))
    own = (
        incident
        for incident in incidents
        if incident.get("kind") in _INCIDENT_KINDS
        and incident_store.subject_of(incident).partition(":")[0] == health.name
    )
    return Outage(
        provider=health.name,
        channel=channel,
        title=title,
        is_planned=is_planned,
        since=since,
        reason=as_clause(reason),
        facts=facts,
        incident=next(own, None),
    )


def _facts(channel: Channel, work: WorkSummary, failures: FailureCounts) -> Iterator[Fact]:
    held = sum(
        n
        for (held_channel, reason), n in work.held_on.items()
        if held_channel is channel and reason in OUTAGES
    )
    query = f"channel={channel.value}"
    waiting_url = f"{reverse(WAITING)}?{query}" if held else None
    yield Fact(label="Held", value=f"{held:,}", url=waiting_url)
    own = [group for group in failures.groups if group.channel is channel]
    causes = {F(group.code): group.count for group in own if group.code in PROVIDER_CAUSES}
    expired = causes.pop(F.EXPIRED, 0)
    failed = sum(causes.values())
    url = f"{reverse(FAILURES)}?{query}&failed_within=24h"
    yield Fact(label="Failed, 24 h", value=f"{failed:,}", url=url if failed else None)
    expired_url = f"{url}&code={F.EXPIRED.value}" if expired else None
    yield Fact(label="Expired while held, 24 h", value=f"{expired:,}", url=expired_url)


def issues(
    *,
    backlog: WorkSummary,
    failures: FailureCounts,
    sent: Mapping[Channel, int],
    out: Collection[Channel] = (),
    rooms: Iterable[Room] = (),
    brands: Mapping[str, BrandRequest] | None = None,
    now: datetime,
) -> list[Issue]:
    """Return the problems that need an operator, the most urgent first.

    ``failures`` and ``sent`` are those of the last RECENT. ``out`` are the channels of outages,
    which explain their failures. Of ``rooms``, those are a problem that staff didn't disable, and
    of ``brands``, those that the settings don't let send.
    """
    found = [
        *_backlog_issues(backlog, now),
        *_failure_issues(failures, sent, out),
        *_room_issues([room for room in rooms if room.is_gone]),
        *_brand_issues(brands or {}),
    ]
    return sorted(found, key=lambda issue: issue.color != "danger")


def _backlog_issues(backlog: WorkSummary, now: datetime) -> Iterator[Issue]:
    sweep = backlog.last_sweep
    if sweep is None or now - sweep > SWEEP_OVERDUE:
        since = f" for {ago(sweep, now)}" if sweep else ""
        yield Issue(
            key="sweep",
            color="danger",
            text=f"No sweep{since}: missed wake-ups aren't picked up.",
            advice="Check Celery beat and the workers.",
            is_outage=True,
        )
    oldest = backlog.oldest_due_at
    if oldest is not None and now - oldest > WORK_OVERDUE:
        yield Issue(
            key="overdue",
            color="danger",
            text=f"Deliveries overdue by {ago(oldest, now)}",
            advice="Check that workers run and keep up.",
            is_outage=True,
        )


def _failure_issues(
    failures: FailureCounts, sent: Mapping[Channel, int], out: Collection[Channel]
) -> Iterator[Issue]:
    ended = Counter(sent)
    for group in failures.groups:
        ended[group.channel] += group.count
    for group in failures.groups:
        share = group.count / ended[group.channel]
        explanation = explain_cause(group.code, group.outage)
        is_explained = group.channel in out and group.code in PROVIDER_CAUSES
        if is_explained or not _is_problem(group, share, needs_operator=explanation.needs_operator):
            continue
        yield Issue(
            key=f"{group.channel.value}:{group.code}",
            color="danger" if explanation.needs_operator else "warning",
            text=f"{CHANNELS[group.channel]}: {count_of(group.count, 'failure')} in 1 h "
            f"({percent(share)}), {explanation.meaning}",
            advice=explanation.advice,
            list_query=f"channel={group.channel.value}&code={group.code}&failed_within=1h",
        )


def _room_issues(gone: Sequence[Room]) -> Iterator[Issue]:
    for room in gone[:MAX_ROOM_ISSUES]:
        yield Issue(
            key=f"disabled_room:{room.slug}",
            color="danger",
            text=f"Room {room.name}: {room.obstacle}",
            advice="Messages to it fail. Set a new target, or repair it and enable it.",
            room=quote(room.slug),
        )
    if more := gone[MAX_ROOM_ISSUES:]:
        yield Issue(
            key="disabled_rooms:",
            color="danger",
            text=f"{count_of(len(more), 'other room')} disabled",
            advice="Messages to them fail. The page Rooms has the reason of each.",
        )


def _brand_issues(brands: Mapping[str, BrandRequest]) -> Iterator[Issue]:
    for name, brand in brands.items():
        gone = [
            account
            for channel, accounts in brand.accounts.items()
            for account in accounts
            if not can_send(account, Channel(channel))
        ]
        obstacles = [f"{account} isn't configured" for account in dict.fromkeys(gone)]
        if brand.sender is not None and not senders.is_allowed(parse_mailbox(brand.sender)):
            obstacles.insert(0, "its sender isn't one of EMAIL_SENDERS")
        if obstacles:
            yield Issue(
                key=f"brand:{name}",
                color="danger",
                text=f"Brand {brand.name}: {', '.join(obstacles)}",
                advice="Its messages wait if nothing else may send them. Correct the settings.",
            )


def _is_problem(group: FailureCount, share: float, *, needs_operator: bool) -> bool:
    if group.code in NEVER_NORMAL:
        return True
    least = SOME_FAILURES if needs_operator else MANY_FAILURES
    return group.count >= least and share >= MANY_SHARE


def join_matters(
    *,
    outages: Sequence[Outage],
    incidents: Sequence[IncidentDocument],
    rules: Mapping[Any, AlertRule],
    issues: Sequence[Issue],
    failures: FailureCounts,
) -> Matters:
    """Join what is the same matter: an incident with its outage, or with the issues it is about.

    ``incidents`` are the open ones, ``rules`` theirs by ID, and ``failures`` those of the last
    RECENT. Of several outages of a channel, the first has what all of them explain.
    """
    told = {outage.incident["_id"] for outage in outages if outage.incident is not None}
    others = [incident for incident in incidents if incident["_id"] not in told]
    first = {outage.channel: outage.provider for outage in reversed(outages)}
    explained = {
        other["_id"]: first[channel]
        for other in others
        if (
            channel := _explaining_channel(
                other, rules.get(other["rule_id"]), failures, first.keys()
            )
        )
    }
    joined = [
        replace(
            outage,
            consequences=[
                other for other in others if explained.get(other["_id"]) == outage.provider
            ],
        )
        for outage in outages
    ]
    alerts, left = [], list(issues)
    for other in others:
        if other["_id"] in explained:
            continue
        own = [issue for issue in left if _is_about(other, rules.get(other["rule_id"]), issue)]
        left = [issue for issue in left if issue not in own]
        alerts.append(Alert(incident=other, issues=own))
    return Matters(outages=joined, alerts=alerts, issues=left)


def _explaining_channel(
    incident: IncidentDocument,
    rule: AlertRule | None,
    failures: FailureCounts,
    out: Collection[Channel],
) -> Channel | None:
    """Return the channel whose outage explains an incident about failures, or None."""
    if incident["kind"] != AlertKind.FAILURES or rule is None or rule.type:
        return None
    own = [group for group in failures.groups if rule.channel in (None, "", group.channel)]
    explained: Counter[Channel] = Counter()
    for group in own:
        if group.channel in out and group.code in PROVIDER_CAUSES:
            explained[group.channel] += group.count
    if sum(group.count for group in own) - explained.total() > rule.threshold:
        return None
    return next((channel for channel, _ in explained.most_common(1)), None)


def _is_about(incident: IncidentDocument, rule: AlertRule | None, issue: Issue) -> bool:
    kind = incident["kind"]
    if kind != AlertKind.FAILURES:
        return issue.key == _ISSUE_OF_KIND.get(kind)
    if issue.is_outage or (rule is not None and rule.type):
        # The failures of one type say nothing about those of the others.
        return False
    return rule is None or rule.channel in (None, "", issue.key.partition(":")[0])


def service_status(
    *,
    issues: Sequence[Issue],
    providers: Sequence[ProviderHealth],
    incidents: Sequence[IncidentDocument],
) -> ServiceStatus:
    """Return the state of the service.

    An outage: a channel has no provider that sends, or due work isn't done. Paused: staff have
    paused all that doesn't send, and nothing else is wrong. Degraded: a provider isn't healthy, or
    there is another issue or an open incident. ``incidents`` are those that no outage explains.
    """
    by_channel: dict[Channel, list[ProviderHealth]] = {}
    for provider in providers:
        by_channel.setdefault(provider.channel, []).append(provider)
    outages: list[Cause] = []
    paused: list[Cause] = []
    told: set[Channel] = set()
    for channel, own in by_channel.items():
        if all(provider.health in BLOCKED for provider in own):
            told.add(channel)
            is_planned = all(provider.health is Health.PAUSED for provider in own)
            (paused if is_planned else outages).append(
                Cause(f"{CHANNELS[channel]} isn't sent", _provider_url())
            )
    outages += [Cause(issue.text) for issue in issues if issue.is_outage]
    paused += [
        Cause(_describe(provider), _provider_url(provider.name))
        for provider in providers
        if provider.health is Health.PAUSED and provider.channel not in told
    ]
    degraded = [
        Cause(_describe(provider), _provider_url(provider.name))
        for provider in providers
        if provider.health not in (Health.HEALTHY, Health.PAUSED) and provider.channel not in told
    ]
    others = sum(not issue.is_outage for issue in issues) + len(incidents)
    if others:
        degraded.append(Cause(f"{count_of(others, 'open alert')}, listed below"))
    causes = [*outages, *degraded, *paused]
    if outages:
        return ServiceStatus(ServiceState.OUTAGE, causes)
    if degraded:
        return ServiceStatus(ServiceState.DEGRADED, causes)
    return ServiceStatus(ServiceState.PAUSED if paused else ServiceState.OPERATIONAL, causes)


def _describe(health: ProviderHealth) -> str:
    if health.pause is not None:
        return pause_text(health.pause)
    name = provider_name(health.name)
    if health.health is Health.FAILING:
        return f"{name}: {health.recent_failures} of {health.recent_attempts} attempts failed"
    return f"{name}: {HEALTH_LABELS[health.health][0].lower()}"


def _provider_url(name: str = "") -> str:
    return reverse(PROVIDERS) + (f"#{name}" if name else "")


def ago(at: datetime, now: datetime) -> str:
    """Return how long ago an instant was, in its largest unit."""
    return duration((now - at).total_seconds())
