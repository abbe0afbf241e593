"""Assigns each delivery to a provider by preference, circuit, and rate, or defers it."""

import itertools
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from operator import itemgetter

from django.conf import settings

from domain.errors import FailureCode
from domain.states import DeliveryStatus, Priority
from domain.wait_reasons import Hold, WaitReason
from notifications.store.claims import ClaimedDelivery, NotSent
from providers.contract import (
    Provider,
    ScopedProvider,
    SelectiveProvider,
    SendTarget,
    accepted_targets,
)

from . import circuit_breaker, provider_pauses
from .circuit_breaker import (
    Blocked,
    CircuitReporter,
    Permission,
    Probe,
    circuit_name,
    recipient_key,
)
from .eligibility import hold_or_end
from .rate_limiter import RateLimiter
from .runtime import SendingRuntime

S = DeliveryStatus
_REASON_TEXTS: Mapping[WaitReason, str] = {
    WaitReason.PROVIDER_PAUSED: "Provider paused.",
    WaitReason.CIRCUIT_OPEN: "Circuit open.",
    WaitReason.RATE_LIMITED: "Rate limited.",
}
Targets = Mapping[str, Sequence[SendTarget]]
"""By delivery reference."""
_NO_SCOPES = frozenset({""})
_NO_UNITS: Mapping[str, int] = {}
"""A delivery that isn't in it is one unit."""
RECHECKED_PER_SECOND = 100
"""Deliveries of a scope that are due again in one second. A worker that does nothing else looks
at 500."""


class ProviderShare:
    """One provider's part of a batch: permissions of its circuits, and its deliveries."""

    def __init__(
        self,
        provider: Provider,
        targets: Targets,
        permissions: Mapping[str, Permission],
        circuits: CircuitReporter,
        *,
        units: Mapping[str, int],
        now: datetime,
    ) -> None:
        prefix = circuit_name(provider, "")
        self.provider = provider
        self.targets = targets
        """What the provider accepts of each delivery's targets, with their scopes."""
        self._units = units
        self._circuits = circuits
        self._now = now
        self._account_permission = permissions[provider.account]
        self._scope_permissions = {
            name.removeprefix(prefix): permission
            for name, permission in permissions.items()
            if name.startswith(prefix)
        }
        self.claims: list[ClaimedDelivery] = []
        self.single_deliveries: list[
            tuple[ClaimedDelivery, dict[str, Probe], dict[str, datetime]]
        ] = []
        """Sent one by one: a delivery, the probes it is used for, and the blocked scopes."""
        self.groups: list[tuple[list[ClaimedDelivery], dict[str, Probe], dict[str, datetime]]] = []
        """Sent together: deliveries with the same blocked scopes and trials, if any."""
        found = [self._account_permission, *self._scope_permissions.values()]
        self._waiting = [
            permission
            for permission in found
            if isinstance(permission, Probe | Blocked)
            and (permission.refused or permission.doubted_at)
        ]

    def was_refused(self, claimed: ClaimedDelivery) -> bool:
        """Return whether a circuit that waits for its probe has refused this recipient."""
        return any(
            isinstance(permission, Probe)
            and permission.refused
            and recipient_key(claimed) in permission.refused
            for permission in self._waiting
        )

    def scopes(self, reference: str) -> Collection[str]:
        """Return the scopes of a delivery's targets. Without any, the provider can't send it."""
        if not self._scope_permissions and self.targets[reference]:
            return _NO_SCOPES
        return {target.scope for target in self.targets[reference]}

    def tokens(self, reference: str) -> int:
        """Return how much of the rate a delivery takes: its devices, or the parts of its text."""
        return len(self.targets[reference]) * self._units.get(reference, 1)

    def add(self, claimed: ClaimedDelivery) -> None:
        """Assign a delivery to the provider, as a probe if a circuit needs one."""
        blocked = self.blocked_scopes(claimed)
        scopes = self.scopes(claimed.reference)
        probes = self._take_probes(claimed, scopes)
        for name, probe in probes.items():
            if probe.refused and recipient_key(claimed) in probe.refused:
                self._circuits.share_probe(name, probe=probe, now=self._now)
        if not all(probe.is_trial for probe in probes.values()):
            self.single_deliveries.append((claimed, probes, blocked))
        elif probes or (self._waiting and not blocked.keys().isdisjoint(scopes)):
            self._add_to_group(claimed, probes, blocked)
        else:
            self.claims.append(claimed)

    def _add_to_group(
        self, claimed: ClaimedDelivery, probes: dict[str, Probe], blocked: dict[str, datetime]
    ) -> None:
        for claims, own, without in self.groups:
            if (own, without) == (probes, blocked):
                claims.append(claimed)
                return
        self.groups.append(([claimed], probes, blocked))

    def blocked_scopes(self, claimed: ClaimedDelivery | None = None) -> dict[str, datetime]:
        """Return until when each blocked scope is blocked, for a delivery."""
        found = {
            name: self._for_delivery(permission, claimed)
            for name, permission in self._scope_permissions.items()
        }
        return {
            name: permission.until
            for name, permission in found.items()
            if isinstance(permission, Blocked)
        }

    def opens_at(self, reference: str, claimed: ClaimedDelivery | None = None) -> datetime | None:
        """Return when the provider takes a delivery for one of its targets, or None if now."""
        account = self._for_delivery(self._account_permission, claimed)
        if isinstance(account, Blocked):
            return account.until
        blocked, scopes = self.blocked_scopes(claimed), self.scopes(reference)
        return min(map(blocked.__getitem__, scopes)) if blocked.keys() >= {*scopes} else None

    @property
    def is_blocked(self) -> bool:
        """Whether the account takes no delivery now, whatever its scopes are."""
        return isinstance(self._account_permission, Blocked)

    def needs_probe(self, claimed: ClaimedDelivery) -> bool:
        """Return whether a delivery that the provider takes now is the probe of a circuit."""
        scopes = self.scopes(claimed.reference)
        found = [
            self._account_permission,
            *(one for name, one in self._scope_permissions.items() if name in scopes),
        ]
        return any(isinstance(self._for_delivery(one, claimed), Probe) for one in found)

    def is_rate_limited(self, reference: str) -> bool:
        """Return whether it is a rate limit of the targets' scopes that blocks a delivery."""
        found = [self._scope_permissions.get(scope) for scope in self.scopes(reference)]
        return not isinstance(self._account_permission, Blocked) and all(
            isinstance(permission, Blocked) and permission.is_pause for permission in found
        )

    def rate_code(self, reference: str) -> FailureCode:
        """Return the failure code of a delivery whose scopes are paused: rooms, hosts, countries.

        Only a room is a recipient of its own. Behind another scope are many.
        """
        is_own = all(t.room and t.scope == t.room for t in self.targets[reference])
        return FailureCode.RECIPIENT_RATE_LIMITED if is_own else FailureCode.RATE_LIMITED

    def replaces(self, other: "ProviderShare", reference: str) -> bool:
        """Return whether this provider could send a delivery now in place of another one."""
        own, others = self.targets[reference], other.targets[reference]
        is_able = own is others or {t.address for t in own} >= {t.address for t in others}
        return is_able and self.opens_at(reference) is None

    def _for_delivery(self, found: Permission, claimed: ClaimedDelivery | None) -> Permission:
        """Return a circuit's permission for a delivery.

        Others go before a recipient that it has refused. A critical message to any other recipient
        waits for no doubted circuit.
        """
        if claimed is None or found not in self._waiting:
            return found
        if isinstance(found, Probe):
            others_until = found.others_until
            if (
                others_until is not None
                and self._now < others_until
                and recipient_key(claimed) in found.refused
            ):
                return Blocked(others_until)
        elif (
            isinstance(found, Blocked)
            and claimed.priority is Priority.CRITICAL
            and recipient_key(claimed) not in found.refused
        ):
            return found.trial(now=self._now)
        return found

    def _take_probes(self, claimed: ClaimedDelivery, scopes: Collection[str]) -> dict[str, Probe]:
        """Take probes for these scopes, by circuit. But for trials, each is taken once."""
        granted: dict[str, Probe] = {}
        account = self._for_delivery(self._account_permission, claimed)
        if isinstance(account, Probe):
            granted[self.provider.account] = account
            self._account_permission = self._without(self._account_permission)
        for name in scopes:
            permission = self._scope_permissions.get(name)
            probe = self._for_delivery(permission, claimed) if permission else None
            if permission and isinstance(probe, Probe):
                granted[circuit_name(self.provider, name)] = probe
                self._scope_permissions[name] = self._without(permission)
        return granted

    def _without(self, permission: Permission) -> Permission:
        """Return what remains of a permission once a delivery has taken it."""
        if not isinstance(permission, Probe):
            return permission
        left = Blocked(
            self._now + circuit_breaker.PROBE_CHECK, permission.refused, permission.doubted_at
        )
        if left.refused or left.doubted_at:
            self._waiting.append(left)
        return left

    def return_probes(self) -> None:
        """Return the unused probes of circuits, so that another worker gets them."""
        permissions = {self.provider.account: self._account_permission}
        for name, scope_permission in self._scope_permissions.items():
            permissions[circuit_name(self.provider, name)] = scope_permission
        for name, permission in permissions.items():
            if isinstance(permission, Probe):
                self._circuits.return_probe(name, probe=permission, now=self._now)


@dataclass(frozen=True, kw_only=True)
class Route:
    """Deliveries that are sent to one provider now."""

    provider: Provider
    claims: Sequence[ClaimedDelivery]
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By circuit. A route with probes has one delivery, unless all of them are trials."""
    has_failover: bool = False
    """Another provider is available for these deliveries."""
    blocked_scopes: Mapping[str, datetime] = field(default_factory=dict)
    targets: Targets = field(default_factory=dict)
    """What the provider accepts of each delivery's targets."""


def preferred_provider(providers: Sequence[Provider], targets: Sequence[SendTarget]) -> Provider:
    """Return the provider of a delivery if all of them send."""
    if len(providers) == 1:
        return providers[0]
    order = [(p, accepted) for p in providers if (accepted := accepted_targets(p, targets))]
    return min(order, key=lambda found: _last_attempt(found[1]))[0]


def _last_attempt(targets: Sequence[SendTarget]) -> int:
    """Return the attempt by which a provider's turn among several is found.

    A delivery has one provider at a time. If each accepts others of its devices, they take turns,
    so that a failing one doesn't keep it.
    """
    return min(target.last_attempt for target in targets)


def _targets_of(provider: Provider, targets: Targets) -> Targets:
    """Return what a provider accepts of the targets, with their scopes."""
    if isinstance(provider, SelectiveProvider):
        targets = {key: accepted_targets(provider, some) for key, some in targets.items()}
    if isinstance(provider, ScopedProvider):
        targets = {reference: _scoped(provider, some) for reference, some in targets.items()}
    return targets


def _scoped(provider: ScopedProvider, targets: Sequence[SendTarget]) -> Sequence[SendTarget]:
    """Return targets with their scopes: themselves if they have none."""
    scopes = [provider.scope(target) for target in targets]
    if not any(scopes):
        return targets
    return tuple(
        replace(target, scope=scope) for target, scope in zip(targets, scopes, strict=True)
    )


def choose_routes(
    runtime: SendingRuntime,
    claims: Sequence[ClaimedDelivery],
    *,
    providers: Sequence[Provider],
    targets: Targets,
    paused: Mapping[str, datetime],
    units: Mapping[str, int] = _NO_UNITS,
    now: datetime,
) -> tuple[list[Route], list[NotSent]]:
    """Assign a batch to providers. Return the routes, and the deliveries that are deferred or end.

    ``providers`` are in order of preference, and each delivery has a target that one of them
    accepts. ``paused`` gives the time until which to defer, by provider. ``units`` are the parts of
    texts, by delivery.
    """
    own_targets = [_targets_of(provider, targets) for provider in providers]
    available = [p for p in providers if p.name not in paused]
    accounts = [provider.account for provider in available]
    circuits = [
        circuit_name(provider, scope)
        for provider, own in zip(providers, own_targets, strict=True)
        if provider.name not in paused and isinstance(provider, ScopedProvider)
        for scope in {target.scope for some in own.values() for target in some}
        if scope
    ]
    permissions: dict[str, Permission] = {
        **(
            circuit_breaker.request_permissions([*accounts, *circuits], now=now)
            if runtime.has_circuits
            else dict.fromkeys([*accounts, *circuits], circuit_breaker.Allowed())
        ),
        **{p.account: Blocked(paused[p.name]) for p in providers if p.name in paused},
    }
    permissions |= _with_refused(permissions, claims, now=now)
    shares = [
        ProviderShare(provider, own, permissions, runtime.circuits, units=units, now=now)
        for provider, own in zip(providers, own_targets, strict=True)
    ]
    held: list[_Held] = []
    not_sent: list[NotSent] = []
    for claimed in sorted(claims, key=lambda claim: any(s.was_refused(claim) for s in shares)):
        candidates = _providers_in_order(claimed, shares)
        openings = [(share.opens_at(claimed.reference, claimed), share) for share in candidates]
        if able := [share for at, share in openings if at is None]:
            _choose_share(claimed, able).add(claimed)
        else:
            until, share = min(
                ((at, share) for at, share in openings if at is not None), key=itemgetter(0)
            )
            reason, code = WaitReason.CIRCUIT_OPEN, FailureCode.CHANNEL_UNAVAILABLE
            if share.is_rate_limited(claimed.reference):
                reason, code = WaitReason.RATE_LIMITED, share.rate_code(claimed.reference)
            elif share.provider.name in paused:
                reason = WaitReason.PROVIDER_PAUSED
            scopes = share.scopes(claimed.reference)
            held.append(_Held(claimed, until, share.provider, reason, code, scopes))
    blocked = [share.provider.account for share in shares if share.is_blocked]
    if len(blocked) < len(shares):
        held = _in_line(held, now=now)
    limited = [hold for hold in held if hold.reason is WaitReason.RATE_LIMITED]
    not_sent += [_wait_for_rate(hold.claimed, hold.until, hold.code) for hold in limited]
    outages = [hold for hold in held if hold.reason is not WaitReason.RATE_LIMITED]
    not_sent += _hold_all(outages, blocked=blocked, now=now)
    accounts_of_all = [provider.account for provider in providers]
    routes: list[Route] = []
    for index, share in enumerate(shares):
        later = shares[index + 1 :]
        # What waits for a rate doesn't change its provider, but another one may be that of others.
        is_of_all = not isinstance(share.provider, SelectiveProvider)
        accounts = accounts_of_all if is_of_all else [share.provider.account]
        provider_routes, rate_limited = _build_routes(
            runtime.rates, share, later, accounts, now=now
        )
        routes += provider_routes
        not_sent += rate_limited
    for share in shares:
        share.return_probes()
    return routes, not_sent


def _choose_share(claimed: ClaimedDelivery, able: Sequence[ProviderShare]) -> ProviderShare:
    """Return the first provider. Where the delivery has just failed, it isn't the probe.

    A probe uses up an attempt. The same delivery would be the probe again and again, and fail for
    good, while another provider takes it. Others are the probe.
    """
    if len(able) > 1 and claimed.last_provider == able[0].provider.name:
        return next((share for share in able if not share.needs_probe(claimed)), able[0])
    return able[0]


def _with_refused(
    permissions: Mapping[str, Permission], claims: Sequence[ClaimedDelivery], *, now: datetime
) -> dict[str, Permission]:
    """Return the permissions of open circuits, with those of the recipients that they refused."""
    waiting = {
        name: permission
        for name, permission in permissions.items()
        if isinstance(permission, Probe)
        or (isinstance(permission, Blocked) and permission.doubted_at)
    }
    if not waiting:
        return {}
    keys = list({recipient_key(claimed) for claimed in claims})
    refused = circuit_breaker.refused_among(waiting, keys, now=now)
    return {
        name: replace(probe, refused=probe.refused | refused[name])
        for name, probe in waiting.items()
        if refused.get(name)
    }


def _providers_in_order(
    claimed: ClaimedDelivery, shares: Sequence[ProviderShare]
) -> Sequence[ProviderShare]:
    """Return the providers to try, the failed one last, or only an ambiguous attempt's provider."""
    able = [share for share in shares if share.targets[claimed.reference]]
    names = [share.provider.name for share in able]
    if claimed.ambiguous_provider in names:
        return [able[names.index(claimed.ambiguous_provider)]]
    if claimed.failed_over_from in names:
        index = names.index(claimed.failed_over_from) + 1
        able = [*able[index:], *able[:index]]
    if len(able) > 1:
        able.sort(key=lambda share: _last_attempt(share.targets[claimed.reference]))
    return able


def _build_routes(
    rates: RateLimiter,
    share: ProviderShare,
    later: Sequence[ProviderShare],
    accounts: Collection[str],
    *,
    now: datetime,
) -> tuple[list[Route], list[NotSent]]:

    def route(
        claims: Sequence[ClaimedDelivery],
        probes: Mapping[str, Probe],
        blocked: Mapping[str, datetime],
    ) -> Route:
        return Route(
            provider=share.provider,
            claims=claims,
            probes=probes,
            has_failover=all(
                any(other.replaces(share, claimed.reference) for other in later)
                for claimed in claims
            ),
            blocked_scopes=blocked,
            targets=share.targets,
        )

    routes = [route([claim], probes, blocked) for claim, probes, blocked in share.single_deliveries]
    held: list[NotSent] = []
    for claims, probes, blocked in (*share.groups, (share.claims, {}, share.blocked_scopes())):
        for some in _by_criticality(claims):
            allowed, rate_limited = _apply_rate_limit(rates, share, some, accounts, now)
            held += rate_limited
            if allowed:
                routes.append(route(allowed, probes, blocked))
    return routes, held


def _by_criticality(claims: Sequence[ClaimedDelivery]) -> list[list[ClaimedDelivery]]:
    """Return critical messages, then the others; without a group that is empty."""
    groups: dict[bool, list[ClaimedDelivery]] = {True: [], False: []}
    for claimed in claims:
        groups[claimed.priority is Priority.CRITICAL].append(claimed)
    return [group for group in groups.values() if group]


def _apply_rate_limit(
    rates: RateLimiter,
    share: ProviderShare,
    claims: Sequence[ClaimedDelivery],
    accounts: Collection[str],
    now: datetime,
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Split deliveries into allowed and rate limited.

    A delivery that takes more than is left of the rate is sent if one token is, on credit.
    """
    if not claims:
        return [], []
    rate, burst = settings.PROVIDER_RATES.get(share.provider.name, (None, 1))
    totals = list(itertools.accumulate(share.tokens(claimed.reference) for claimed in claims))
    grant = rates.take(
        share.provider.account,
        totals[-1],
        rate=rate,
        burst=burst,
        now=now,
        is_critical=all(claimed.priority is Priority.CRITICAL for claimed in claims),
        totals=totals if totals[-1] > len(totals) else (),
    )
    count = bisect_left(totals, grant.granted) + 1 if grant.granted else 0
    next_at, step = now + grant.wait, timedelta(seconds=1 / rate if rate else 0)
    before = (0, *totals)
    rate_limited = [
        replace(
            _wait_for_rate(
                claim, next_at + (before[index] - before[count]) * step, FailureCode.RATE_LIMITED
            ),
            rate_of=share.provider.account,
            blocked_accounts=accounts,
        )
        for index, claim in enumerate(claims[count:], start=count)
    ]
    return list(claims[:count]), rate_limited


def _wait_for_rate(claimed: ClaimedDelivery, until: datetime, code: FailureCode) -> NotSent:
    held = WaitReason.RATE_LIMITED
    return NotSent(claimed, S.PENDING, code, _REASON_TEXTS[held], until, held)


@dataclass(frozen=True, slots=True)
class _Held:
    """A delivery without a provider that sends now."""

    claimed: ClaimedDelivery
    until: datetime
    provider: Provider
    reason: WaitReason
    code: FailureCode
    scopes: Collection[str]

    @property
    def causes(self) -> Sequence[tuple[WaitReason, str]]:
        """The paused provider, or the circuits that may be open: the account's, and its scopes'."""
        if self.reason is WaitReason.PROVIDER_PAUSED:
            return [(self.reason, self.provider.name)]
        scopes = [circuit_name(self.provider, scope) for scope in sorted(self.scopes) if scope]
        return [(self.reason, name) for name in (self.provider.account, *scopes)]


def _in_line(held: Sequence[_Held], *, now: datetime) -> list[_Held]:
    """Let the first that waits for a scope be its probe, and the others follow one by one.

    If thousands were due at once, what the other scopes let through would wait behind them.
    """
    probed_at = now + circuit_breaker.PROBE_CHECK
    lines: dict[tuple[str, datetime], list[_Held]] = {}
    found: list[_Held] = []
    for hold in held:
        is_circuit = hold.reason is WaitReason.CIRCUIT_OPEN and hold.until > probed_at
        is_lined = is_circuit or hold.reason is WaitReason.RATE_LIMITED
        if is_lined and hold.claimed.priority is not Priority.CRITICAL:
            lines.setdefault((hold.provider.account, hold.until), []).append(hold)
        else:
            found.append(hold)
    if lines:
        counts = {line: len(some) for line, some in lines.items()}
        places = circuit_breaker.take_places(counts, now=now)
        found += [
            replace(hold, until=hold.until + _wait_in_line(place, hold.reason))
            for line, some in lines.items()
            for place, hold in enumerate(some, start=places[line])
        ]
    return found


def _wait_in_line(place: int, reason: WaitReason) -> timedelta:
    """Return how long after the first another one is due. Only a circuit needs a probe."""
    turn = timedelta(seconds=place / RECHECKED_PER_SECOND)
    is_circuit = reason is WaitReason.CIRCUIT_OPEN
    return turn + circuit_breaker.PROBE_CHECK if place and is_circuit else turn


def _hold_all(held: Sequence[_Held], *, blocked: Collection[str], now: datetime) -> list[NotSent]:
    """Defer deliveries, and record since when and why, unless the outage is on record."""
    new = [
        hold
        for hold in held
        if not Hold(reason=hold.reason, provider=hold.provider.name, since=now).is_same(
            hold.claimed.hold
        )
    ]
    details = _outage_details(new) if new else {}
    return [
        replace(
            hold_or_end(
                waiting.claimed,
                Hold(
                    reason=waiting.reason,
                    provider=waiting.provider.name,
                    since=now,
                    detail=next(filter(None, map(details.get, waiting.causes)), ""),
                ),
                _REASON_TEXTS[waiting.reason],
                until=waiting.until,
            ),
            blocked_accounts=blocked if waiting.provider.account in blocked else (),
        )
        for waiting in held
    ]


def _outage_details(held: Sequence[_Held]) -> Mapping[tuple[WaitReason, str], str]:
    """Return by cause why a circuit opened, or who paused a provider and why."""
    causes = dict.fromkeys(cause for hold in held for cause in hold.causes)
    circuits = [name for reason, name in causes if reason is WaitReason.CIRCUIT_OPEN]
    found = {
        (WaitReason.CIRCUIT_OPEN, name): reason
        for name, reason in circuit_breaker.open_reasons(circuits).items()
    }
    pauses = provider_pauses.pauses() if len(circuits) < len(causes) else {}
    for name, pause in pauses.items():
        by = f"by {pause.by}" if pause.by else ""
        text = ": ".join(part for part in (by, pause.reason) if part)
        found[WaitReason.PROVIDER_PAUSED, name] = text
    return found
