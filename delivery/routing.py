"""Assigns each delivery to a provider: by order, circuit, and rate.

A delivery whose providers all refuse is deferred until the first of them may accept again.
"""

import itertools
from bisect import bisect
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings

from domain import retry
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.store import ClaimedDelivery, Deferred
from providers.contract import Provider

from . import circuit_breaker, rate_limiter
from .circuit_breaker import Blocked, Permission, Probe, circuit_name
from .targets import SendTarget


class CircuitGate:
    """One provider's circuits, as a batch goes through them one delivery after the other.

    Where a circuit wants a probe, the first delivery that can use it is that, and goes alone.
    """

    def __init__(
        self, provider: Provider, permissions: Mapping[str, Permission], *, now: datetime
    ) -> None:
        prefix = circuit_name(provider, "")
        self.provider = provider
        self._now = now
        self._own = permissions[provider.account]
        self._platforms = {
            name.removeprefix(prefix): permission
            for name, permission in permissions.items()
            if name.startswith(prefix)
        }

    @property
    def held(self) -> dict[str, datetime]:
        """Return the platforms that nothing goes to, and until when."""
        found = self._platforms.items()
        return {name: one.until for name, one in found if isinstance(one, Blocked)}

    def opens(self, platforms: Collection[str]) -> datetime | None:
        """Return when it takes something for any of these platforms; None if it does so now."""
        if isinstance(self._own, Blocked):
            return self._own.until
        held = self.held
        return min(map(held.__getitem__, platforms)) if held.keys() >= {*platforms} else None

    def probes(self, platforms: Collection[str]) -> dict[str, Probe]:
        """Return, by circuit, what a delivery to these platforms tries; nobody else tries it."""
        taken: dict[str, Probe] = {}
        leased = Blocked(self._now + circuit_breaker.PROBE_LEASE)
        if isinstance(self._own, Probe):
            taken[self.provider.account], self._own = self._own, leased
        for name in platforms:
            if isinstance(probe := self._platforms.get(name), Probe):
                taken[circuit_name(self.provider, name)] = probe
                self._platforms[name] = leased
        return taken

    def give_back(self) -> None:
        """Give back the probes that no delivery was for, so that another worker gets them."""
        own = {self.provider.account: self._own}
        platforms = {
            circuit_name(self.provider, name): one for name, one in self._platforms.items()
        }
        for name, permission in (own | platforms).items():
            if isinstance(permission, Probe):
                circuit_breaker.return_probe(name, probe=permission, now=self._now)


S = DeliveryStatus
Platforms = Collection[str]
"""A push's: android, ios, web; of a channel without devices the one that has no name."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A provider, and what of a batch goes to it now."""

    provider: Provider
    claims: Sequence[ClaimedDelivery]
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By circuit: this batch is one delivery that tries whether all is well again."""
    has_substitute: bool = False
    """Another provider takes what this one does not take."""
    held: Mapping[str, datetime] = field(default_factory=dict)
    """Platforms nothing goes to before then, though the provider is well."""


@dataclass(kw_only=True)
class _Share:
    """What of a batch goes to one provider."""

    entrance: CircuitGate
    tries: list[tuple[ClaimedDelivery, dict[str, Probe], dict[str, datetime]]] = field(
        default_factory=list
    )
    """Deliveries that go alone, with what they try and the platforms that are held then."""
    claims: list[ClaimedDelivery] = field(default_factory=list)

    def add(self, claimed: ClaimedDelivery, platforms: Platforms) -> None:
        """Let a delivery in."""
        held = self.entrance.held
        if probes := self.entrance.probes(platforms):
            self.tries.append((claimed, probes, held))
        else:
            self.claims.append(claimed)


def choose_routes(
    claims: Sequence[ClaimedDelivery],
    *,
    providers: Sequence[Provider],
    targets: Mapping[str, Sequence[SendTarget]],
    paused: Mapping[str, datetime],
    now: datetime,
) -> tuple[list[Route], list[Deferred]]:
    """Return what goes where now, and what has to wait, which uses up no attempt.

    ``providers`` are the channel's, at least one; ``targets`` are by the claim's reference.
    ``paused`` are the names of those that take nothing, as an operator wants it, and until when.
    """
    platforms = {c.reference: {t.platform for t in targets[c.reference]} for c in claims}
    scopes = {platform for some in platforms.values() for platform in some if platform}
    awake = [p for p in providers if p.name not in paused]
    circuits = [circuit_name(provider, platform) for provider in awake for platform in scopes]
    permissions: dict[str, Permission] = {
        **circuit_breaker.request_permissions([*(p.account for p in awake), *circuits], now=now),
        **{p.account: Blocked(paused[p.name]) for p in providers if p.name in paused},
    }
    shares = [_Share(entrance=CircuitGate(p, permissions, now=now)) for p in providers]
    parked: list[Deferred] = []
    for claimed in claims:
        own = platforms[claimed.reference]
        opens = [(share.entrance.opens(own), share) for share in _in_order(claimed, shares)]
        share = next((share for at, share in opens if at is None), None)
        if share is not None:
            share.add(claimed, own)
        else:
            until = min(at for at, _ in opens if at is not None)
            parked.append(_held_back(claimed, until, now))
    routes: list[Route] = []
    for place, share in enumerate(shares):
        behind = [other.entrance for other in shares[place + 1 :]]
        more, waiting = _routes(share, behind, platforms, targets, now)
        routes += more
        parked += waiting
    for share in shares:
        share.entrance.give_back()
    return routes, parked


def _in_order(claimed: ClaimedDelivery, shares: Sequence[_Share]) -> Sequence[_Share]:
    """Return the providers in their order, from behind the one that has just not taken this.

    Only one, if that one may have taken it. A provider that is set up no more counts for nothing.
    """
    names = [share.entrance.provider.name for share in shares]
    if claimed.doubtful_provider in names:
        return [shares[names.index(claimed.doubtful_provider)]]
    if claimed.passed_over not in names:
        return shares
    place = names.index(claimed.passed_over) + 1
    return [*shares[place:], *shares[:place]]


def _routes(
    share: _Share,
    behind: Sequence[CircuitGate],
    platforms: Mapping[str, Platforms],
    targets: Mapping[str, Sequence[SendTarget]],
    now: datetime,
) -> tuple[list[Route], list[Deferred]]:
    """Return a provider's routes, those that try something first, and what its rate holds up."""

    def has_substitute(claims: Sequence[ClaimedDelivery]) -> bool:
        wanted = [platforms[claimed.reference] for claimed in claims]
        return all(any(other.opens(own) is None for other in behind) for own in wanted)

    provider = share.entrance.provider
    routes = [
        Route(
            provider=provider,
            claims=[claimed],
            probes=probes,
            has_substitute=has_substitute([claimed]),
            held=held,
        )
        for claimed, probes, held in share.tries
    ]
    going, slowed = _within_rate(provider, share.claims, targets, now)
    if going:
        routes.append(
            Route(
                provider=provider,
                claims=going,
                has_substitute=has_substitute(going),
                held=share.entrance.held,
            )
        )
    return routes, slowed


def _within_rate(
    provider: Provider,
    claims: Sequence[ClaimedDelivery],
    targets: Mapping[str, Sequence[SendTarget]],
    now: datetime,
) -> tuple[list[ClaimedDelivery], list[Deferred]]:
    """Return what the provider's rate has room for, and what waits for its turn.

    Somebody with more devices than may go at once goes all the same, or would wait for ever.
    """
    if not claims:
        return [], []
    rate, burst = settings.PROVIDER_RATES.get(provider.name, (None, 1))
    wanted = list(itertools.accumulate(len(targets[claimed.reference]) for claimed in claims))
    grant = rate_limiter.take(provider.account, wanted[-1], rate=rate, burst=burst, now=now)
    count = max(bisect(wanted, grant.granted), min(grant.granted, 1))
    step = timedelta(seconds=1 / rate if rate else 0)
    late = [
        _slowed(claimed, now + grant.wait + place * step)
        for place, claimed in enumerate(claims[count:])
    ]
    return list(claims[:count]), late


def _held_back(claimed: ClaimedDelivery, until: datetime, now: datetime) -> Deferred:
    """Return the wait for a provider that takes nothing now, or the end of the patience."""
    decision = retry.defer_or_give_up(until=until, state=claimed.standing, now=now)
    failed = isinstance(decision, retry.GiveUp)
    return Deferred(
        claimed=claimed,
        status=S.FAILED if failed else S.PENDING,
        code=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The provider takes nothing at present.",
        next_attempt_at=None if failed else until,
    )


def _slowed(claimed: ClaimedDelivery, until: datetime) -> Deferred:
    return Deferred(
        claimed=claimed,
        status=S.PENDING,
        code=FailureCode.RATE_LIMITED,
        reason="The provider's rate is used up; it goes as soon as there is room.",
        next_attempt_at=until,
    )
