"""Counters of the parts of texts: one document for each client and day.

The parts of a text are reserved right before it is sent. They stay if a provider has or may have
accepted it; otherwise they are given back. Each attempt counts, because each is paid for. A worker
that is lost in between leaves its parts counted until the day ends: a client may send fewer, never
more.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from datetime import date, timedelta
from typing import Any

from bson import ObjectId
from pymongo import UpdateOne
from pymongo.errors import DuplicateKeyError

from domain.daily_units import UnitCaps, UnitUse, UsedUnits, end_of_day, select_fitting

from .collections import daily_units

TRIES = 10
"""Decisions about a client's texts while other workers change the counter."""
KEPT_AFTER = timedelta(days=1)
NOT_COUNTED: UsedUnits = UsedUnits()


def counter_id(client_id: ObjectId, day: date) -> str:
    """Return the ID of a client's counter. Those of a day are next to each other."""
    return f"{day.isoformat()}/{client_id}"


def reserve_units(
    wanted: Sequence[UnitUse], *, client_id: ObjectId, day: date, caps: UnitCaps
) -> list[str | None] | None:
    """Reserve the parts of a client's texts. Return why each is refused, or None for it.

    Return None for all if other workers change the counter all the time. Raises PyMongoError.
    """
    used = NOT_COUNTED
    for _ in range(TRIES):
        refusals, added = select_fitting(wanted, used=used, caps=caps)
        if not added.units or _add(added, client_id=client_id, day=day, caps=caps):
            return refusals
        used = _read(client_id, day)
    return None


def _add(added: UsedUnits, *, client_id: ObjectId, day: date, caps: UnitCaps) -> bool:
    """Count parts. Return False if they no longer fit."""
    wanted: dict[str, Any] = {"_id": counter_id(client_id, day)}
    if caps.units:
        wanted["units"] = {"$lte": max(caps.units - added.units, 0)}
    if caps.abroad and added.abroad:
        wanted["abroad"] = {"$lte": max(caps.abroad - added.abroad, 0)}
    change = {
        "$inc": {"units": added.units, "abroad": added.abroad},
        "$setOnInsert": {"client_id": client_id, "purge_at": end_of_day(day) + KEPT_AFTER},
    }
    try:
        daily_units().update_one(wanted, change, upsert=True)
    except DuplicateKeyError:
        # The counter exists and doesn't match.
        return False
    return True


def _read(client_id: ObjectId, day: date) -> UsedUnits:
    found = daily_units().find_one({"_id": counter_id(client_id, day)})
    return UsedUnits(found["units"], found["abroad"]) if found else NOT_COUNTED


def give_back_units(uses: Iterable[tuple[ObjectId, UnitUse]]) -> None:
    """Give back parts of texts that were certainly not sent, each with its client.

    Raises PyMongoError.
    """
    sums: dict[str, UsedUnits] = defaultdict(UsedUnits)
    for client_id, use in uses:
        name = counter_id(client_id, use.day)
        sums[name] = sums[name].plus(use)
    operations = [
        UpdateOne({"_id": name}, {"$inc": {"units": -total.units, "abroad": -total.abroad}})
        for name, total in sums.items()
    ]
    daily_units().bulk_write(operations, ordered=False)
