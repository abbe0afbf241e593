"""Learns by which identifiers WhatsApp reports a person, and joins what is stored under them.

An opt-out and a service window stand at each form of the person's number, since any of them may be
sent to. What arrived under an unknown user ID waits there until its number is known.
"""

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from domain.channels import IDENTITY_CHANNELS

from . import service_windows, suppressions, whatsapp_identities
from .models import SuppressionReason
from .suppressions import PERSONAL_REASONS, RECIPIENT_REASONS
from .whatsapp_identities import RETENTION, is_number

(_CHANNEL,) = IDENTITY_CHANNELS


def learn(phones: Mapping[str, str], *, now: datetime) -> int:
    """Remember numbers by identifier, which is a user ID or another form of the number.

    The opt-outs of a number go with the user ID that leaves it. Return how many were unknown or
    half forgotten. Idempotent. Raises PyMongoError.
    """
    changed = whatsapp_identities.outdated(phones, now=now)
    for identifier, (phone, previous) in sorted(changed.items()):
        if previous and previous != phone and not is_number(identifier):
            carry_over([(previous, phone)], now=now)
        # The link is written first, and an opt-out reads the links last: it stands at both forms
        # if it arrives now. The link counts as outdated until all is joined, so that a crash in
        # between loses nothing.
        whatsapp_identities.remember(identifier, phone, expires_at=now + RETENTION / 2)
        _join(phone, now)
        whatsapp_identities.remember(identifier, phone, expires_at=now + RETENTION)
    return len(changed)


def carry_over(changes: Iterable[tuple[str, str]], *, now: datetime) -> None:
    """Apply the opt-outs of earlier identifiers to those that took their places. Idempotent.

    The earlier ones keep theirs: an earlier number may be somebody's. Raises PyMongoError.
    """
    for previous, current in changes:
        known = whatsapp_identities.identifiers_of([previous])[previous]
        if current not in known:
            _copy(known, current, reasons=RECIPIENT_REASONS, now=now)


def _join(phone: str, now: datetime) -> None:
    known = whatsapp_identities.identifiers_of([phone])[phone]
    numbers = [identifier for identifier in known if is_number(identifier)]
    users = [identifier for identifier in known if not is_number(identifier)]
    if times := [
        at for identifier in known if (at := service_windows.last_inbound(identifier)) is not None
    ]:
        service_windows.record_inbound([(number, max(times)) for number in numbers], now=now)
    _copy(known, phone, reasons=PERSONAL_REASONS, now=now)
    # Nothing is sent to a user ID, so its number's records are enough. The number got them first.
    service_windows.delete(users)
    suppressions.remove_all(channel=_CHANNEL, addresses=users)


def _copy(
    sources: Iterable[str], address: str, *, reasons: Collection[SuppressionReason], now: datetime
) -> None:
    for source in sources:
        for found in suppressions.find_by_address(channel=_CHANNEL, address=source):
            if found["reason"] in reasons and suppressions.is_active(found, now=now):
                suppressions.suppress(
                    channel=_CHANNEL,
                    address=address,
                    reason=SuppressionReason(found["reason"]),
                    source=found["source"],
                    marketing_only=found["marketing_only"],
                    now=found["created_at"],
                    expires_at=found.get("expires_at"),
                )
