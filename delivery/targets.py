"""Resolves each delivery to its address, or to the devices that accept it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial

from devices import preferences as device_preferences
from devices import queries as devices
from domain import retry
from domain.channels import Channel
from domain.errors import MUTED_BY_DEVICES, NO_DEVICE, FailureCode
from domain.states import DeliveryStatus, Priority
from notifications.catalog import types
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.device_attempts import DeviceHistory, device_histories
from providers.contract import Provider, SelectiveProvider, SendTarget, accepted_targets
from recipients import service_windows

from . import eligibility, rooms

S = DeliveryStatus
AWAITING_DEVICE = "Outcome unknown for one device; awaiting its receipt."
UNREPORTED = "Outcome unknown for one device; no other device is reachable."


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTargets:
    """The targets of a batch."""

    targets: Mapping[str, tuple[SendTarget, ...]]
    """By delivery reference; at least one target each."""
    in_quiet_hours: Mapping[str, datetime] = field(default_factory=dict)
    """By delivery reference: when quiet hours end on the first of the devices left out."""
    not_sent: Sequence[NotSent] = ()


def resolve_targets(
    claims: Sequence[ClaimedDelivery],
    *,
    channel: Channel,
    providers: Sequence[Provider],
    now: datetime,
) -> ResolvedTargets:
    """Return the targets of each claim, and what to do with each claim that has no target now."""
    resolved = _resolve(claims, channel, now)
    if not any(isinstance(provider, SelectiveProvider) for provider in providers):
        return resolved
    return _only_accepted(resolved, {claimed.reference: claimed for claimed in claims}, providers)


def _only_accepted(
    resolved: ResolvedTargets,
    claims: Mapping[str, ClaimedDelivery],
    providers: Sequence[Provider],
) -> ResolvedTargets:
    """Leave out the targets that no provider accepts. A delivery without any other one fails."""
    targets: dict[str, tuple[SendTarget, ...]] = {}
    for reference, some in resolved.targets.items():
        accepted = {t for provider in providers for t in accepted_targets(provider, some)}
        targets[reference] = tuple(target for target in some if target in accepted)
    return replace(
        resolved,
        targets={reference: some for reference, some in targets.items() if some},
        not_sent=[
            *resolved.not_sent,
            *(
                eligibility.without_provider(claims[reference])
                for reference, some in targets.items()
                if not some
            ),
        ],
    )


def _resolve(claims: Sequence[ClaimedDelivery], channel: Channel, now: datetime) -> ResolvedTargets:
    if channel.has_devices:
        return _resolve_devices(claims, now)
    if not channel.is_personal:
        found = {claimed.reference: rooms.resolve(claimed, now=now) for claimed in claims}
        return ResolvedTargets(
            targets={
                reference: (target,)
                for reference, target in found.items()
                if isinstance(target, SendTarget)
            },
            not_sent=[unsent for unsent in found.values() if isinstance(unsent, NotSent)],
        )
    targets = {c.reference: address_of(c) for c in claims}
    if channel.spec.has_service_window:
        addresses = [target.address for target in targets.values()]
        windows = service_windows.open_windows(addresses, now=now)
        targets = {
            reference: replace(target, window_open=target.address in windows)
            for reference, target in targets.items()
        }
    return ResolvedTargets(targets={reference: (target,) for reference, target in targets.items()})


def address_of(claimed: ClaimedDelivery) -> SendTarget:
    """Return the delivery's address as a target. For in-app, the address is the user ID."""
    return SendTarget(address=claimed.recipient.address(claimed.channel) or claimed.user_id or "")


def _resolve_devices(claims: Sequence[ClaimedDelivery], now: datetime) -> ResolvedTargets:
    known = devices.find_push_targets(
        user_ids=[c.user_id for c in claims if c.user_id and not c.recipient.device_ids],
        device_ids=[device_id for c in claims for device_id in c.recipient.device_ids],
    )
    histories = device_histories(claims)
    resolved: dict[str, tuple[SendTarget, ...]] = {}
    in_quiet_hours: dict[str, datetime] = {}
    not_sent: list[NotSent] = []
    for claimed in claims:
        found = known.for_notification(
            user_id=claimed.user_id, device_ids=claimed.recipient.device_ids
        )
        history = histories.get(claimed.notification_id, DeviceHistory())
        awaited = _awaited(claimed, history, now)
        closed = history.excluded | awaited.keys()
        accepts = partial(
            device_preferences.allows,
            category=claimed.category.value,
            type_slug=claimed.type,
            priority=claimed.priority.value,
            is_locked=eligibility.is_locked(claimed),
        )
        reached = history.reached | awaited.keys()
        accepting = [
            device
            for device in found
            if device.device_id not in closed
            and reached.isdisjoint(_earlier_of(device, found))
            and accepts(device.preferences)
        ]
        quiet = {d.device_id: at for d in accepting if (at := _quiet_until(d, claimed, now))}
        available = [device for device in accepting if device.device_id not in quiet]
        if available:
            resolved[claimed.reference] = tuple(
                SendTarget(
                    # A browser's endpoint stays encrypted until the provider needs it.
                    address=d.token or d.device_id,
                    device_id=d.device_id,
                    platform=d.platform.value,
                    subscription=d.subscription,
                    last_attempt=history.last_attempts.get(d.device_id, 0),
                )
                for d in available
            )
            if quiet:
                in_quiet_hours[claimed.reference] = min(quiet.values())
        else:
            quiet_hours_end = min(quiet.values(), default=None)
            not_sent.append(
                _defer_ambiguous(claimed, max(awaited.values()), quiet_hours_end, now)
                if awaited and not history.delivered
                else _end_or_defer_without_target(claimed, found, history, quiet_hours_end)
            )
    return ResolvedTargets(targets=resolved, in_quiet_hours=in_quiet_hours, not_sent=not_sent)


def _earlier_of(device: devices.PushTarget, found: Sequence[devices.PushTarget]) -> set[str]:
    """Return the devices of a device's earlier tokens, unless they are registered again."""
    return {*device.earlier_ids} - {target.device_id for target in found}


def _awaited(
    claimed: ClaimedDelivery, history: DeviceHistory, now: datetime
) -> Mapping[str, datetime]:
    """Return devices with an unknown outcome that must not get a duplicate now, with deadlines."""
    if not claimed.ambiguous_targets:
        return {}
    wait = retry.UNKNOWN_WAIT[claimed.priority]
    receipt_deadlines = {
        device_id: since + wait
        for device_id, since in history.ambiguous.items()
        if device_id in claimed.ambiguous_targets
    }
    type_config = types.find_type(claimed.type)
    policy = type_config.on_unknown if type_config else retry.UnknownPolicy.FAIL
    decision = retry.decide_unknown(policy=policy, state=claimed.retry_state, now=now)
    if isinstance(decision, retry.GiveUp):
        return receipt_deadlines
    return {device_id: at for device_id, at in receipt_deadlines.items() if at > now}


def _defer_ambiguous(
    claimed: ClaimedDelivery,
    receipt_deadline: datetime,
    quiet_hours_end: datetime | None,
    now: datetime,
) -> NotSent:
    if receipt_deadline > now:
        at = min(receipt_deadline, quiet_hours_end or receipt_deadline)
        return NotSent(claimed, S.PENDING, FailureCode.OUTCOME_UNKNOWN, AWAITING_DEVICE, at)
    if quiet_hours_end is not None:
        return eligibility.defer_until_quiet_hours_end(claimed, until=quiet_hours_end)
    return NotSent(claimed, S.FAILED, FailureCode.OUTCOME_UNKNOWN, UNREPORTED)


def _end_or_defer_without_target(
    claimed: ClaimedDelivery,
    found: Sequence[devices.PushTarget],
    history: DeviceHistory,
    quiet_hours_end: datetime | None,
) -> NotSent:
    if history.delivered:
        reason = "The remaining devices already have it or can't receive it."
        return NotSent(claimed, S.SENT, FailureCode.NO_ADDRESS, reason)
    if quiet_hours_end is not None:
        return eligibility.defer_until_quiet_hours_end(claimed, until=quiet_hours_end)
    left = (device for device in found if device.device_id not in history.excluded)
    if any(history.reached.isdisjoint(_earlier_of(device, found)) for device in left):
        return NotSent(claimed, S.SUPPRESSED, FailureCode.OPTED_OUT, MUTED_BY_DEVICES)
    # Only refused devices are left: one with a rejected token is deactivated and not found.
    if refusal := next(iter(history.refused.values()), None):
        return NotSent(claimed, S.FAILED, refusal.code, refusal.reason)
    return NotSent(claimed, S.SUPPRESSED, FailureCode.NO_ADDRESS, NO_DEVICE)


def _quiet_until(
    device: devices.PushTarget, claimed: ClaimedDelivery, now: datetime
) -> datetime | None:
    if claimed.priority is Priority.CRITICAL or eligibility.is_locked(claimed):
        return None
    quiet = eligibility.parse_quiet_hours(
        device.preferences.quiet_hours,
        own_zone=device.timezone,
        notification_zone=claimed.recipient.timezone,
    )
    return quiet.until(now) if quiet else None
