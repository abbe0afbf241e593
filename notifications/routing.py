"""Which provider each delivery of a batch goes to: by order, health and rate.

A channel's providers stand in an order, and the first that takes anything is used. A provider that
did not take a message is passed over for it at once, if another one does; what has waited begins
with the first again. What a provider may have taken, in a send whose outcome is unknown, is given
to no other.
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
from providers.contract import Provider

from . import breaker, limits
from .breaker import Blocked, Permission, Probe
from .health import Entrance, scope_of
from .store import Claimed, Parked
from .targets import Target

S = DeliveryStatus
Platforms = Collection[str]
"""A push's: android, ios, web; of a channel without devices the one that has no name."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A provider, and what of a batch goes to it now."""

    provider: Provider
    claims: Sequence[Claimed]
    probes: Mapping[str, Probe] = field(default_factory=dict)
    """By circuit: this batch is one delivery that tries whether all is well again."""
    has_substitute: bool = False
    """Another provider takes what this one does not take."""
    held: Mapping[str, datetime] = field(default_factory=dict)
    """Platforms nothing goes to before then, though the provider is well."""


@dataclass(kw_only=True)
class _Share:
    """What of a batch goes to one provider."""

    entrance: Entrance
    tries: list[tuple[Claimed, dict[str, Probe], dict[str, datetime]]] = field(default_factory=list)
    """Deliveries that go alone, with what they try and the platforms that are held then."""
    claims: list[Claimed] = field(default_factory=list)

    def add(self, claimed: Claimed, platforms: Platforms) -> None:
        """Let a delivery in."""
        held = self.entrance.held
        if probes := self.entrance.probes(platforms):
            self.tries.append((claimed, probes, held))
        else:
            self.claims.append(claimed)


def choose(
    claims: Sequence[Claimed],
    *,
    providers: Sequence[Provider],
    targets: Mapping[str, Sequence[Target]],
    paused: Mapping[str, datetime],
    now: datetime,
) -> tuple[list[Route], list[Parked]]:
    """Return what goes where now, and what has to wait, which uses up no attempt.

    ``providers`` are the channel's, at least one; ``targets`` are by the claim's reference.
    ``paused`` are the names of those that take nothing, as an operator wants it, and until when.
    """
    platforms = {c.reference: {t.platform for t in targets[c.reference]} for c in claims}
    scopes = {platform for some in platforms.values() for platform in some if platform}
    awake = [p for p in providers if p.name not in paused]
    circuits = [scope_of(provider, platform) for provider in awake for platform in scopes]
    permissions: dict[str, Permission] = {
        **breaker.ask([*(p.account for p in awake), *circuits], now=now),
        **{p.account: Blocked(paused[p.name]) for p in providers if p.name in paused},
    }
    shares = [_Share(entrance=Entrance(p, permissions, now=now)) for p in providers]
    parked: list[Parked] = []
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


def _in_order(claimed: Claimed, shares: Sequence[_Share]) -> Sequence[_Share]:
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
    behind: Sequence[Entrance],
    platforms: Mapping[str, Platforms],
    targets: Mapping[str, Sequence[Target]],
    now: datetime,
) -> tuple[list[Route], list[Parked]]:
    """Return a provider's routes, those that try something first, and what its rate holds up."""

    def has_substitute(claims: Sequence[Claimed]) -> bool:
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
    claims: Sequence[Claimed],
    targets: Mapping[str, Sequence[Target]],
    now: datetime,
) -> tuple[list[Claimed], list[Parked]]:
    """Return what the provider's rate has room for, and what waits for its turn.

    Somebody with more devices than may go at once goes all the same, or would wait for ever.
    """
    if not claims:
        return [], []
    rate, burst = settings.PROVIDER_RATES.get(provider.name, (None, 1))
    wanted = list(itertools.accumulate(len(targets[claimed.reference]) for claimed in claims))
    grant = limits.take(provider.account, wanted[-1], rate=rate, burst=burst, now=now)
    count = max(bisect(wanted, grant.granted), min(grant.granted, 1))
    step = timedelta(seconds=1 / rate if rate else 0)
    late = [
        _slowed(claimed, now + grant.wait + place * step)
        for place, claimed in enumerate(claims[count:])
    ]
    return list(claims[:count]), late


def _held_back(claimed: Claimed, until: datetime, now: datetime) -> Parked:
    """Return the wait for a provider that takes nothing now, or the end of the patience."""
    decision = retry.defer_or_give_up(until=until, standing=claimed.standing, now=now)
    failed = isinstance(decision, retry.GiveUp)
    return Parked(
        claimed=claimed,
        status=S.FAILED if failed else S.PENDING,
        code=FailureCode.CHANNEL_UNAVAILABLE,
        reason="The provider takes nothing at present.",
        next_attempt_at=None if failed else until,
    )


def _slowed(claimed: Claimed, until: datetime) -> Parked:
    return Parked(
        claimed=claimed,
        status=S.PENDING,
        code=FailureCode.RATE_LIMITED,
        reason="The provider's rate is used up; it goes as soon as there is room.",
        next_attempt_at=until,
    )
