"""Repeats of ambiguous attempts at a provider that takes each key once.

Such a repeat can't reach a recipient twice, so the type's policy for unknown outcomes doesn't
apply while the provider remembers the key of the first attempt.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from domain import retry
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.catalog import types
from notifications.store.attempt_series import AmbiguousDelivery, AttemptSeries, find_series
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.recovery import UnknownOutcome
from providers.contract import IdempotentProvider, Provider

from .accounts import BatchProviders, find_sender

MARGIN = timedelta(minutes=1)
"""Time before the end of a window in which no request of a repeat begins: a request takes up to
15 s, and the clocks of two workers differ."""
FORGOTTEN = "The provider no longer remembers the first attempt."
GONE = "Nothing is sent any more by the account of the first attempt."


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """What an attempt repeats, and until when its request may begin."""

    series: AttemptSeries
    until: datetime


def find_repeats(
    claims: Sequence[ClaimedDelivery], *, providers: BatchProviders, now: datetime
) -> tuple[Mapping[str, Repeat], list[NotSent]]:
    """Return what claims repeat, by reference, and those that a repeat would now double.

    Without an ambiguous attempt at an idempotent provider, nothing is read.
    """
    windows = _windows(providers)
    unrepeatable = _of_gone_accounts(claims, providers)
    by_delivery = {
        _delivery(claimed): claimed
        for claimed in claims
        if windows
        and not claimed.channel.has_devices
        and claimed.ambiguous_provider in windows
        and _is_sent_by(claimed, providers)
    }
    found = find_series(by_delivery.keys())
    repeats: dict[str, Repeat] = {}
    for delivery, claimed in by_delivery.items():
        series = found.get(delivery)
        until = _end_of(series, windows[delivery.provider]) if series is not None else now
        if series is not None and now < until:
            repeats[claimed.reference] = Repeat(series=series, until=until)
        elif policy_of(claimed.type) is retry.UnknownPolicy.FAIL:
            code = FailureCode.OUTCOME_UNKNOWN
            unrepeatable.append(NotSent(claimed, DeliveryStatus.FAILED, code, FORGOTTEN))
    return repeats, unrepeatable


def repeatable(outcomes: Sequence[UnknownOutcome], *, now: datetime) -> set[UnknownOutcome]:
    """Return the unknown outcomes that a repeat resolves without a duplicate."""
    windows = {
        outcome: sender.idempotency
        for outcome in outcomes
        if not outcome.channel.has_devices
        and isinstance(sender := _sender_of(outcome), IdempotentProvider)
    }
    by_delivery = {
        AmbiguousDelivery(
            notification_id=outcome.notification_id,
            channel=outcome.channel,
            provider=outcome.provider,
            earlier_attempts=outcome.attempt_count - outcome.retry_state.attempt_count,
        ): outcome
        for outcome in windows
    }
    return {
        outcome
        for delivery, series in find_series(by_delivery.keys()).items()
        if now < _end_of(series, windows[outcome := by_delivery[delivery]])
    }


def _sender_of(outcome: UnknownOutcome) -> Provider | None:
    """Return the account of an attempt if it is still one of those that send its message."""
    return find_sender(
        outcome.provider, look=outcome.look, channel=outcome.channel, is_test=outcome.is_test
    )


def policy_of(type_slug: str) -> retry.UnknownPolicy:
    """Return a type's policy for unknown outcomes. Without the type, a duplicate is worse."""
    kind = types.find_type(type_slug)
    return kind.on_unknown if kind else retry.UnknownPolicy.FAIL


def _windows(providers: Iterable[Provider]) -> dict[str, timedelta]:
    return {p.name: p.idempotency for p in providers if isinstance(p, IdempotentProvider)}


def _of_gone_accounts(
    claims: Sequence[ClaimedDelivery], providers: BatchProviders
) -> list[NotSent]:
    """Return the repeats of accounts that are no longer among the providers.

    Another account takes the message for a new one, which only the type may allow.
    """
    return [
        NotSent(claimed, DeliveryStatus.FAILED, FailureCode.OUTCOME_UNKNOWN, GONE)
        for claimed in claims
        if claimed.ambiguous_provider
        and not _is_sent_by(claimed, providers)
        and not claimed.channel.has_devices
        and policy_of(claimed.type) is retry.UnknownPolicy.FAIL
    ]


def _is_sent_by(claimed: ClaimedDelivery, providers: BatchProviders) -> bool:
    """Return whether the account of an ambiguous attempt still sends a delivery."""
    return any(each.name == claimed.ambiguous_provider for each in providers.of(claimed))


def _delivery(claimed: ClaimedDelivery) -> AmbiguousDelivery:
    return AmbiguousDelivery(
        notification_id=claimed.notification_id,
        channel=claimed.channel,
        provider=claimed.ambiguous_provider or "",
        earlier_attempts=claimed.earlier_attempts,
    )


def _end_of(series: AttemptSeries, window: timedelta) -> datetime:
    return series.began_at + window - MARGIN
