"""Holds texts of clients that have used their parts of the day, right before a send."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime

import structlog
from bson import ObjectId
from pymongo.errors import PyMongoError

from domain.daily_units import UnitUse, day_of, end_of_day
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.catalog.texts import is_abroad, unit_caps
from notifications.store import daily_units
from notifications.store.claims import ClaimedDelivery, NotSent

from .limits import CONTESTED_DELAY, COUNTER_RETRY_DELAY
from .rendering import RenderedMessage

log = structlog.get_logger(__name__)
S = DeliveryStatus
UNCOUNTED = "The client's parts of the day can't be counted."


def hold_over_caps(
    claims: Sequence[ClaimedDelivery],
    messages: Mapping[ObjectId, RenderedMessage],
    *,
    now: datetime,
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the texts that may be sent, and those that wait for the next day.

    Nothing is exempt, neither codes nor what ignores limits: inflated traffic asks for codes. Test
    messages cost nothing.
    """
    caps = unit_caps()
    if not caps:
        return list(claims), []
    day = day_of(now)
    by_client: dict[ObjectId, list[tuple[ClaimedDelivery, UnitUse]]] = defaultdict(list)
    allowed: dict[str, ClaimedDelivery] = {}
    held: list[NotSent] = []
    for claimed in sorted(claims, key=lambda claimed: claimed.first_due_at):
        units = messages[claimed.notification_id].message.units
        if claimed.is_test or not units:
            allowed[claimed.reference] = claimed
            continue
        abroad = is_abroad(claimed.recipient.address(claimed.channel))
        use = UnitUse(units=units, is_abroad=abroad, day=day)
        by_client[claimed.client_id].append((claimed, use))
    # One after the other: a client's counter, or its failure, holds up nobody else's texts.
    for client_id, texts in by_client.items():
        uses = [use for _, use in texts]
        try:
            refusals = daily_units.reserve_units(uses, client_id=client_id, day=day, caps=caps)
        except PyMongoError as error:
            reason = type(error).__name__
            log.warning("units_not_counted", client=str(client_id), reason=reason)
            held += [_wait(claimed, UNCOUNTED, now + COUNTER_RETRY_DELAY) for claimed, _ in texts]
            continue
        if refusals is None:
            held += [_wait(claimed, UNCOUNTED, now + CONTESTED_DELAY) for claimed, _ in texts]
            continue
        for (claimed, use), refusal in zip(texts, refusals, strict=True):
            if refusal is None:
                allowed[claimed.reference] = replace(claimed, unit_use=use)
            else:
                held.append(_wait(claimed, refusal, end_of_day(day)))
    # In the order of the batch, since a rate may let only the first of them go.
    ordered = [allowed[claimed.reference] for claimed in claims if claimed.reference in allowed]
    return ordered, held


def _wait(claimed: ClaimedDelivery, reason: str, until: datetime) -> NotSent:
    code = FailureCode.OVER_DAILY_UNITS
    if claimed.expires_at is not None and until >= claimed.expires_at:
        return NotSent(claimed, S.EXPIRED, code, f"Expires before the next try. {reason}")
    return NotSent(claimed, S.PENDING, code, reason, until)


def give_back_units(unsent: Sequence[ClaimedDelivery]) -> None:
    """Give back the parts of texts whose current attempt no provider can have accepted."""
    uses = [(claimed.client_id, claimed.unit_use) for claimed in unsent if claimed.unit_use]
    if not uses:
        return
    try:
        daily_units.give_back_units(uses)
    except PyMongoError as error:
        # The parts count until the day ends: the client may send fewer, never more.
        log.warning("units_kept", reason=type(error).__name__, texts=len(uses))
