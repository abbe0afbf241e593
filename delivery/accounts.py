"""What may send each delivery of a batch: the providers of its channel, or its brand's accounts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from domain.channels import Channel
from domain.content import Look
from domain.wait_reasons import Hold, WaitReason
from notifications.catalog import designs
from notifications.content import looks
from notifications.content.engine import TemplateError
from notifications.store.claims import ClaimedDelivery, NotSent
from providers.contract import Provider
from providers.registry import can_send, get_provider, providers_for

from .eligibility import hold_or_end
from .runtime import Lanes

GONE = "Its brand is sent by {}, which isn't configured here."
NOT_CONFIGURED = "not configured here"
UNREADABLE = "The design of its brand can't be read, so that nobody knows what sends it."
NO_DESIGN = "its design can't be read"
MIN_DELAY, MAX_DELAY = timedelta(seconds=30), timedelta(minutes=15)
"""Delays before settings are looked at again, which only another release or a restart changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProviders:
    """The providers that may send each delivery of a batch, in the order of failover."""

    usual: tuple[Provider, ...]
    """Of deliveries whose brand names no account."""
    own: Mapping[str, tuple[Provider, ...]] = field(default_factory=dict)
    """Of the others, by reference."""
    gone: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The accounts of those for which there is none of them, by reference. Of a brand that can't be
    read, they aren't known."""

    def of(self, claimed: ClaimedDelivery) -> tuple[Provider, ...]:
        """Return the providers of a delivery."""
        return self.own.get(claimed.reference, self.usual) if self.own else self.usual

    def lanes(self, claims: Iterable[ClaimedDelivery]) -> Lanes:
        """Return the lists that send deliveries, each once."""
        if not self.own:
            return [self.usual]
        lists = {id(providers): providers for providers in map(self.of, claims)}
        return [providers for providers in lists.values() if providers]

    def __iter__(self) -> Iterator[Provider]:
        """Yield each provider once."""
        providers = [*self.usual, *(each for some in self.own.values() for each in some)]
        yield from {provider.name: provider for provider in providers}.values()


def providers_of(
    claims: Iterable[ClaimedDelivery], channel: Channel, *, usual: tuple[Provider, ...]
) -> BatchProviders:
    """Return what may send deliveries that aren't tests. Without brands, nothing is looked up.

    Deliveries with the same accounts have the same tuple.
    """
    own: dict[str, tuple[Provider, ...]] = {}
    gone: dict[str, Sequence[str]] = {}
    accounts: dict[Look, tuple[str, ...] | None] = {}
    known: dict[tuple[str, ...], tuple[Provider, ...]] = {}
    for claimed in claims:
        look = claimed.content.look
        if look is None or look.brand is None:
            continue
        if look not in accounts:
            accounts[look] = _accounts_of(look, channel)
        names = accounts[look]
        if names == ():
            continue
        names = names or ()
        if names not in known:
            known[names] = tuple(get_provider(name) for name in names if can_send(name, channel))
        own[claimed.reference] = known[names]
        if not known[names]:
            gone[claimed.reference] = names
    return BatchProviders(usual=usual, own=own, gone=gone)


def find_sender(
    name: str, *, look: Look | None, channel: Channel, is_test: bool
) -> Provider | None:
    """Return an account if it is one of those that send a message with a look, None if not."""
    names = () if is_test else _accounts_of(look, channel)
    if names == ():
        usual = providers_for(channel, test=is_test)
        return next((provider for provider in usual if provider.name == name), None)
    is_own = name in (names or ()) and can_send(name, channel)
    return get_provider(name) if is_own else None


def _accounts_of(look: Look | None, channel: Channel) -> tuple[str, ...] | None:
    """Return the accounts that a brand names, None if its design can't be read."""
    try:
        return tuple(looks.accounts_of(look, channel))
    except TemplateError:
        return () if channel.is_inbox else None


def brand_providers(channel: Channel, *, known: Iterable[str] = ()) -> list[Provider]:
    """Return the accounts that brands name now, beside the channel's own providers.

    ``known`` are names of others, such as of paused accounts, which accepted messages still need.
    """
    listed = {provider.name for provider in providers_for(channel)}
    names = {
        name
        for brand in designs.current().brands.values()
        for name in brand.get("accounts", {}).get(channel.value, ())
    }
    names = names.union(known) - listed
    return [get_provider(name) for name in sorted(names) if can_send(name, channel)]


def hold_without_account(
    claims: Sequence[ClaimedDelivery], providers: BatchProviders, *, now: datetime
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the deliveries that have a provider, and the others, which wait for their accounts.

    No other account sends them, which may be another company's.
    """
    if not providers.gone:
        return list(claims), []
    ready = [claimed for claimed in claims if claimed.reference not in providers.gone]
    waiting = [claimed for claimed in claims if claimed.reference in providers.gone]
    return ready, [
        _hold_without_account(claimed, providers.gone[claimed.reference], now=now)
        for claimed in waiting
    ]


def _hold_without_account(
    claimed: ClaimedDelivery, accounts: Sequence[str], *, now: datetime
) -> NotSent:
    if not accounts:
        return hold_brand(claimed, UNREADABLE, NO_DESIGN, now=now)
    reason = GONE.format(", ".join(accounts))
    return hold_brand(claimed, reason, NOT_CONFIGURED, provider=accounts[0], now=now)


def hold_brand(
    claimed: ClaimedDelivery, reason: str, detail: str, *, provider: str = "", now: datetime
) -> NotSent:
    """Hold a delivery until its brand can send it, at growing intervals, or end it at last.

    ``provider`` is the account that is missing, if it is one.
    """
    until = now + min(max(claimed.held_for, MIN_DELAY), MAX_DELAY)
    hold = Hold(reason=WaitReason.PROVIDER_UNAVAILABLE, provider=provider, since=now, detail=detail)
    return hold_or_end(claimed, hold, reason, until=until)
