"""What may send each delivery of a batch: the providers of its channel, or its brand's accounts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from domain.channels import Channel
from domain.errors import FailureCode
from domain.wait_reasons import Hold, WaitReason
from notifications.catalog import designs
from notifications.content import looks
from notifications.content.engine import TemplateError
from notifications.store.claims import ClaimedDelivery, NotSent
from providers.contract import Provider
from providers.registry import can_send, get_provider, providers_for

from .eligibility import defer_or_fail

GONE = "Its brand is sent by {}, which isn't configured here."
NOT_CONFIGURED = "not configured here"
MIN_DELAY, MAX_DELAY = timedelta(seconds=30), timedelta(minutes=15)
"""Delays before settings are looked at again, which only another release or a restart changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchProviders:
    """The providers that may send each delivery of a batch, in the order of failover."""

    usual: tuple[Provider, ...]
    """Of deliveries whose brand names no account."""
    own: Mapping[str, tuple[Provider, ...]] = field(default_factory=dict)
    """Of the others, by reference."""
    gone: Mapping[str, str] = field(default_factory=dict)
    """The accounts of those for which there is none of them, by reference."""

    def of(self, claimed: ClaimedDelivery) -> tuple[Provider, ...]:
        """Return the providers of a delivery."""
        return self.own.get(claimed.reference, self.usual) if self.own else self.usual

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
    gone: dict[str, str] = {}
    known: dict[tuple[str, ...], tuple[Provider, ...]] = {}
    for claimed in claims:
        if claimed.content.look is None or claimed.content.look.brand is None:
            continue
        try:
            names = tuple(looks.accounts_of(claimed.content.look, channel))
        except TemplateError:
            # It can't be rendered either, and fails with this reason.
            continue
        if not names:
            continue
        if names not in known:
            known[names] = tuple(get_provider(name) for name in names if can_send(name, channel))
        own[claimed.reference] = known[names]
        if not known[names]:
            gone[claimed.reference] = ", ".join(names)
    return BatchProviders(usual=usual, own=own, gone=gone)


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
        wait_for_settings(
            claimed,
            GONE.format(providers.gone[claimed.reference]),
            provider=providers.gone[claimed.reference].partition(",")[0],
            now=now,
        )
        for claimed in waiting
    ]


def wait_for_settings(
    claimed: ClaimedDelivery, reason: str, *, provider: str | None = None, now: datetime
) -> NotSent:
    """Hold a delivery until the settings let it be sent, at growing intervals, or end it at last.

    ``provider`` is the account that is missing.
    """
    until = now + min(max(claimed.held_for, MIN_DELAY), MAX_DELAY)
    found = defer_or_fail(claimed, FailureCode.CHANNEL_UNAVAILABLE, reason, until=until)
    if provider is None:
        return found
    hold = Hold(
        reason=WaitReason.PROVIDER_UNAVAILABLE, provider=provider, since=now, detail=NOT_CONFIGURED
    )
    return replace(found, hold=hold)
