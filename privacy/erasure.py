"""Erases a recipient. docs/decisions/0010-recipient-registry.md says what stays and why."""

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

import structlog

from access.clients import inbox_tokens
from devices import queries as devices
from devices import registration as devices_registration
from domain.channels import Channel, addresses_in
from notifications.files import erasure as files
from notifications.store import digests, limit_uses, removal
from notifications.store.removal import Erasable
from recipients import (
    registration,
    service_windows,
    suppressions,
    topics,
    whatsapp_identities,
)

log = structlog.get_logger(__name__)
BATCH = 500
MAX_SECONDS = 6.0
"""Default time budget of a call: half of a request's database deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Erasure:
    """What one call erased."""

    notifications: int
    devices: int
    topics: int
    was_registered: bool
    is_complete: bool
    """False if the time budget ended first; another call continues."""

    @property
    def has_found_anything(self) -> bool:
        """Whether there was anything to erase."""
        return self.was_registered or any((self.notifications, self.devices, self.topics))


def erase(
    user_id: str,
    *,
    now: datetime,
    seconds: float | None = None,
    timer: Callable[[], float] = time.monotonic,
) -> Erasure:
    """Erase a recipient for up to ``seconds``. If that is too short, another call continues.

    The registration is erased last, so that another call can continue from it. Raises PyMongoError.
    """
    until = timer() + (MAX_SECONDS if seconds is None else seconds)
    registered = registration.begin_erasure(user_id, now=now)
    if registered is not None or removal.erasable(user_id=user_id, limit=1):
        inbox_tokens.revoke_everywhere(user_id=user_id)
    addresses = _all_forms(addresses_in(registered) if registered else [])
    device_count, count, is_complete = 0, 0, False
    while found := devices.page(user_id=user_id, limit=devices.MAX_PAGE).documents:
        device_count += sum(
            devices_registration.remove(device_id=device["_id"]) for device in found
        )
    topic_count = topics.leave_all(user_id)
    limit_uses.erase_counters(user_id=user_id)
    # Before the notifications: a worker that closes a digest meanwhile erases its carrier itself.
    digests.erase_digests(user_id=user_id, now=now)
    # Also before them: a broadcast may make a notification of a row that is left. While a file is
    # read or checked, its rows can't be searched, and a later call does.
    are_rows_erased = files.erase(user_id=user_id, addresses=addresses, now=now)
    for batch in _batches(user_id, addresses):
        # Addresses come first: once the notifications are erased, nothing refers to them.
        # Those of the registration come last, since an identity leads to their other forms.
        named = {pair for person in batch for pair in person.addresses}
        _erase_addresses(_all_forms(named.difference(addresses)))
        count += removal.erase(batch, user_id=user_id, now=now)
        if timer() >= until:
            break
    else:
        if are_rows_erased:
            _erase_addresses(addresses)
            registration.finish_erasure(user_id)
            is_complete = True
    log.info("recipient_erased", user_id=user_id, notifications=count, is_complete=is_complete)
    return Erasure(
        notifications=count,
        devices=device_count,
        topics=topic_count,
        was_registered=registered is not None,
        is_complete=is_complete,
    )


def _batches(user_id: str, addresses: Iterable[tuple[Channel, str]]) -> Iterator[list[Erasable]]:
    last: Erasable | None = None
    while batch := removal.erasable(user_id=user_id, limit=BATCH, after=last):
        last = batch[-1]
        yield batch
    for channel, address in addresses:
        while batch := removal.erasable_at(channel, address, limit=BATCH):
            yield batch


def _all_forms(pairs: Iterable[tuple[Channel, str]]) -> list[tuple[Channel, str]]:
    """Add what else a provider calls the person of an address: its other forms, and user IDs."""
    given = list(pairs)
    named = [(channel, address) for channel, address in given if channel.spec.has_identities]
    found = whatsapp_identities.identifiers_of([address for _, address in named])
    others = [(channel, name) for channel, address in named for name in found[address]]
    return list(dict.fromkeys((*given, *others)))


def _erase_addresses(pairs: Iterable[tuple[Channel, str]]) -> None:
    """Erase addresses outside of notifications. Their suppressions stay, anonymized."""
    given = list(pairs)
    known = [(channel.value, address) for channel, address in given]
    suppressions.anonymize(known)
    phones = [address for channel, address in given if channel.spec.has_identities]
    service_windows.delete(phones)
    whatsapp_identities.delete(phones)
    for channel, address in known:
        suppressions.clear_soft_bounces(channel=channel, address=address)
