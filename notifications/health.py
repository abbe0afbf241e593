"""How well each provider is, as its circuits say, and what a batch's results tell them."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta

from domain.errors import FailureCode, ProviderError, ProviderUnavailableError, TransientError
from providers.contract import Provider, SendResult

from . import breaker, limits
from .breaker import Blocked, Permission, Probe
from .outcomes import Result

TROUBLES = frozenset(
    {
        FailureCode.PROVIDER_ERROR,
        FailureCode.CONNECTION_FAILED,
        FailureCode.CONNECTION_LOST,
        FailureCode.TIMEOUT,
    }
)
"""What speaks against a provider's health; its rate limit does not."""
SAYS_NOTHING = frozenset(
    {
        FailureCode.CHANNEL_UNAVAILABLE,
        FailureCode.INTERNAL_ERROR,
        FailureCode.ATTACHMENT_UNAVAILABLE,
    }
)
"""Outages are reported apart; a defect of ours, or a file that is missing, says nothing of it."""


PROVEN_FOR = timedelta(minutes=1)
"""So long after it took something, a provider is trusted to take more of it."""
_accepted_at: dict[str, datetime] = {}
"""When an account has taken something from this process last."""


class Entrance:
    """One provider's circuits, as a batch goes through them one delivery after the other.

    Where a circuit wants a probe, the first delivery that can use it is that, and goes alone.
    """

    def __init__(
        self, provider: Provider, permissions: Mapping[str, Permission], *, now: datetime
    ) -> None:
        prefix = scope_of(provider, "")
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
        leased = Blocked(self._now + breaker.PROBE_LEASE)
        if isinstance(self._own, Probe):
            taken[self.provider.account], self._own = self._own, leased
        for name in platforms:
            if isinstance(probe := self._platforms.get(name), Probe):
                taken[scope_of(self.provider, name)] = probe
                self._platforms[name] = leased
        return taken

    def give_back(self) -> None:
        """Give back the probes that no delivery was for, so that another worker gets them."""
        own = {self.provider.account: self._own}
        platforms = {scope_of(self.provider, name): one for name, one in self._platforms.items()}
        for name, permission in (own | platforms).items():
            if isinstance(permission, Probe):
                breaker.give_back(name, probe=permission, now=self._now)


def report(
    provider: Provider,
    results: Sequence[Result],
    *,
    probes: Mapping[str, Probe],
    now: datetime,
) -> None:
    """Tell the provider's circuits and its rate what came of a batch."""
    account = provider.account
    if any(isinstance(result.outcome, SendResult) for result in results):
        _accepted_at[account] = now
    errors = [r.outcome for r in results if isinstance(r.outcome, ProviderError)]
    outages = {e.scope: e for e in errors if isinstance(e, ProviderUnavailableError)}
    for scope, error in outages.items():
        name = account if scope is None else scope_of(provider, scope)
        breaker.trip(name, now=now, retry_after=error.retry_after, reason=error.reason)
    slowed = [
        e for e in errors if isinstance(e, TransientError) and e.code is FailureCode.RATE_LIMITED
    ]
    if slowed:
        waits = [e.retry_after for e in slowed if e.retry_after]
        limits.slow_down(account, retry_after=max(waits, default=None), now=now)
    _count(account, results, probes, now)
    for name in probes.keys() - {account}:
        platform = name.removeprefix(scope_of(provider, ""))
        _count(name, [r for r in results if r.platform == platform], probes, now)


def is_proven(provider: Provider, *, now: datetime) -> bool:
    """Return whether a provider has taken something from this process of late."""
    at = _accepted_at.get(provider.account)
    return at is not None and timedelta(0) <= now - at <= PROVEN_FOR


def _count(
    name: str, results: Sequence[Result], probes: Mapping[str, Probe], now: datetime
) -> None:
    """Tell a circuit how many went well: an answer about the message is as good as any."""
    errors = [r.outcome for r in results if isinstance(r.outcome, ProviderError)]
    troubles = [e for e in errors if isinstance(e, TransientError) and e.code in TROUBLES]
    silent = [e for e in errors if e.code in SAYS_NOTHING]
    breaker.record(
        name,
        successes=len(results) - len(troubles) - len(silent),
        failures=len(troubles),
        probe=probes.get(name),
        now=now,
        reason=troubles[0].reason if troubles else "",
    )


def scope_of(provider: Provider, platform: str) -> str:
    """Return the name of the circuit of one platform at a provider."""
    return f"{provider.account}:{platform}"
