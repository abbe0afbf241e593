"""Where claimed deliveries go: one address each, or every device of a person that wants it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from devices import preferences as wishes
from devices import queries as devices
from domain import retry
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus, Priority
from notifications.catalog import types
from notifications.store import ClaimedDelivery, Deferred, DeviceHistory, device_histories
from recipients import service_windows

from . import eligibility

S = DeliveryStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class SendTarget:
    """One address in the channel's own form."""

    address: str = field(repr=False)
    device_id: str | None = None
    platform: str = ""
    """Push: android, ios or web."""
    window_open: bool = True
    """WhatsApp: the person has written within a day, so free text may be sent."""


AWAITING_DEVICE = "One of the person's devices may have it: its report is waited for."
UNREPORTED = "Nobody can tell whether one device has it, and no other can be reached."
Aimed = Mapping[str, tuple[SendTarget, ...]]
"""At least one target for each claim, by its reference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTargets:
    """Where a batch goes."""

    targets: Aimed
    asleep: Mapping[str, datetime] = field(default_factory=dict)
    """Devices in their quiet hours are left out: when the first of a claim's wakes up."""
    parked: Sequence[Deferred] = ()
    """What has nowhere to go now, or at all."""


def resolve_targets(
    claims: Sequence[ClaimedDelivery], *, channel: Channel, now: datetime
) -> ResolvedTargets:
    """Return where each claim goes, and what has nowhere to go now, or at all."""
    if channel is Channel.PUSH:
        return _at_devices(claims, now)
    if channel is Channel.WHATSAPP:
        return ResolvedTargets(targets=_at_phones(claims, now))
    return ResolvedTargets(targets={c.reference: (address_of(c),) for c in claims})


def address_of(claimed: ClaimedDelivery) -> SendTarget:
    """Return the one address of a channel that has no devices; in-app goes to the user's id."""
    return SendTarget(address=claimed.recipient.address(claimed.channel) or claimed.user_id or "")


def _at_phones(claims: Sequence[ClaimedDelivery], now: datetime) -> Aimed:
    """Return the phones, and whether each has written to us within a day."""
    written = service_windows.open_windows([c.recipient.phone or "" for c in claims], now=now)
    return {
        c.reference: (replace(address_of(c), window_open=c.recipient.phone in written),)
        for c in claims
    }


def _at_devices(claims: Sequence[ClaimedDelivery], now: datetime) -> ResolvedTargets:
    known = devices.find_push_targets(
        user_ids=[c.user_id for c in claims if c.user_id and not c.recipient.device_ids],
        device_ids=[one for c in claims for one in c.recipient.device_ids],
    )
    logs = device_histories(claims)
    aimed: dict[str, tuple[SendTarget, ...]] = {}
    asleep: dict[str, datetime] = {}
    parked: list[Deferred] = []
    for claimed in claims:
        found = known.for_notification(user_id=claimed.user_id, device_ids=claimed.recipient.device_ids)
        past = logs.get(claimed.notification_id, DeviceHistory())
        awaited = _awaited(claimed, past, now)
        closed = past.closed | awaited.keys()
        willing = [d for d in found if d.device_id not in closed and _wants(d, claimed)]
        quiet = {d.device_id: at for d in willing if (at := _quiet_until(d, claimed, now))}
        awake = [device for device in willing if device.device_id not in quiet]
        if awake:
            aimed[claimed.reference] = tuple(map(_target, awake))
            if quiet:
                asleep[claimed.reference] = min(quiet.values())
        else:
            wakes = min(quiet.values(), default=None)
            if awaited and not past.have:
                parked.append(_in_doubt(claimed, max(awaited.values()), wakes=wakes, now=now))
            else:
                parked.append(_nowhere(claimed, found, past, wakes=wakes))
    return ResolvedTargets(targets=aimed, asleep=asleep, parked=parked)


def _target(device: devices.PushTarget) -> SendTarget:
    return SendTarget(
        address=device.token, device_id=device.device_id, platform=device.platform.value
    )


def _awaited(
    claimed: ClaimedDelivery, past: DeviceHistory, now: datetime
) -> Mapping[str, datetime]:
    """Return the devices that may have it and get no second copy now, by when each should report.

    Others are tried meanwhile. If only devices in doubt are left, the whole push is unknown, and
    its type decides the same for it.
    """
    if not claimed.doubtful_targets:
        return {}
    wait = retry.UNKNOWN_WAIT[claimed.priority]
    reported_by = {
        device_id: since + wait
        for device_id, since in past.doubtful.items()
        if device_id in claimed.doubtful_targets
    }
    kind = types.find_type(claimed.type)
    policy = kind.on_unknown if kind else retry.UnknownPolicy.FAIL
    decision = retry.decide_unknown(policy=policy, state=claimed.standing, now=now)
    if isinstance(decision, retry.GiveUp):
        return reported_by
    return {device_id: at for device_id, at in reported_by.items() if at > now}


def _in_doubt(
    claimed: ClaimedDelivery, reported_by: datetime, *, wakes: datetime | None, now: datetime
) -> Deferred:
    """Return what becomes of a push that one device may have and no other is to get now."""
    if reported_by > now:
        at = min(reported_by, wakes or reported_by)
        waiting = _parked(claimed, S.PENDING, FailureCode.OUTCOME_UNKNOWN, AWAITING_DEVICE)
        return replace(waiting, next_attempt_at=at)
    if wakes is not None:
        return eligibility.defer_until_quiet_hours_end(claimed, until=wakes)
    return _parked(claimed, S.FAILED, FailureCode.OUTCOME_UNKNOWN, UNREPORTED)


def _nowhere(
    claimed: ClaimedDelivery,
    found: Sequence[devices.PushTarget],
    past: DeviceHistory,
    *,
    wakes: datetime | None,
) -> Deferred:
    """Return what becomes of a push that no device is to get now."""
    if past.have:
        reason = "The devices that are left have it, or cannot get it."
        return _parked(claimed, S.SENT, FailureCode.NO_ADDRESS, reason)
    if wakes is not None:
        return eligibility.defer_until_quiet_hours_end(claimed, until=wakes)
    if any(device.device_id not in past.closed for device in found):
        reason = "The person's devices do not want this kind of message."
        return _parked(claimed, S.SUPPRESSED, FailureCode.OPTED_OUT, reason)
    refusals = [past.refused[d.device_id] for d in found if d.device_id in past.refused]
    if refusals:
        return _parked(claimed, S.FAILED, refusals[0].code, refusals[0].reason)
    return _parked(claimed, S.FAILED, FailureCode.NO_ADDRESS, "There is no active device for it.")


def _wants(device: devices.PushTarget, claimed: ClaimedDelivery) -> bool:
    return wishes.allows(
        device.preferences,
        category=claimed.category.value,
        type_slug=claimed.type,
        priority=claimed.priority.value,
    )


def _quiet_until(
    device: devices.PushTarget, claimed: ClaimedDelivery, now: datetime
) -> datetime | None:
    if claimed.priority is Priority.CRITICAL:
        return None
    quiet = eligibility.quiet_hours(
        device.preferences.quiet_hours,
        own_zone=device.timezone,
        sent_zone=claimed.recipient.timezone,
        whose=claimed.user_id,
    )
    return quiet.until(now) if quiet else None


def _parked(
    claimed: ClaimedDelivery, status: DeliveryStatus, code: FailureCode, reason: str
) -> Deferred:
    return Deferred(claimed=claimed, status=status, code=code, reason=reason)
