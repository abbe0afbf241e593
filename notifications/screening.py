"""What of a batch may be sent now: asked of people's wishes and addresses as they stand today.

A notification may have been scheduled weeks ago: who has muted it or complained since gets none.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime

from domain.states import Priority
from recipients import queries as recipients
from recipients.queries import KnownRecipient, Suppressed

from . import gate, types
from .store import Claimed, Parked

MUTED = "the person has muted it since"


def screen(
    claims: Sequence[Claimed], *, now: datetime, has_provider: bool
) -> tuple[list[Claimed], list[Parked]]:
    """Return what is to be sent now, and what is not with the reason."""
    people = recipients.known(c.user_id for c in claims if c.user_id)
    addresses = {
        (c.channel.value, address) for c in claims if (address := c.recipient.address(c.channel))
    }
    suppressed = recipients.suppressed(addresses, now=now)
    ready: list[Claimed] = []
    parked: list[Parked] = []
    for claimed in claims:
        person = people.get(claimed.user_id or "")
        reason = gate.check(
            claimed,
            now=now,
            quiet=gate.quiet_hours(
                person.quiet_hours if person else None,
                own_zone=person.timezone if person else None,
                sent_zone=claimed.recipient.timezone,
                whose=claimed.user_id,
            ),
            suppression=_suppression(claimed, suppressed) or _mute(claimed, person),
            has_provider=has_provider,
        )
        if reason is None:
            ready.append(claimed)
        else:
            parked.append(reason)
    return ready, parked


def _suppression(claimed: Claimed, suppressed: Mapping[tuple[str, str], Suppressed]) -> str | None:
    address = claimed.recipient.address(claimed.channel)
    found = suppressed.get((claimed.channel.value, address or ""))
    if found is None or not gate.applies(claimed, marketing_only=found.marketing_only):
        return None
    return found.reason


def _mute(claimed: Claimed, person: KnownRecipient | None) -> str | None:
    """Return why a person's wish holds this back; a critical type nobody mutes."""
    kind = types.find(claimed.type)
    if person is None or (kind is not None and kind.priority is Priority.CRITICAL):
        return None
    wish = person.wish(type_slug=claimed.type, category=claimed.category.value)
    is_muted = wish.muted or claimed.channel.value in wish.muted_channels
    return MUTED if is_muted else None
