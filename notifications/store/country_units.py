"""Counters of the parts of texts to a country, by provider: in ten minutes, and in a day."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from pymongo import UpdateOne

from domain.country_units import HISTORY, SentUnits, slot_of
from domain.daily_units import day_of
from notifications.documents.policies import CountryUnitsDocument

from .collections import country_units

KEPT_SLOT = HISTORY + timedelta(hours=2)
KEPT_DAY = timedelta(days=40)
"""Days are summed by month."""
_SLOTS: Mapping[str, Any] = {"day": None}
"""Tells ten minutes from days."""
_DAYS = "days"
"""The beginning of the IDs of days, by which those of one provider are found in their order."""


def count_sent(sent: Sequence[SentUnits], *, now: datetime) -> None:
    """Count parts that were sent. Raises PyMongoError."""
    units: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for text in sent:
        key = (text.country, text.provider)
        units[key] += text.units
        asked[key] += text.units if text.is_asked else 0
    operations = [
        operation
        for key, count in units.items()
        for operation in (
            _in_slot({"units": count, "asked": asked[key]}, *key, now=now),
            _in_day(count, *key, now=now),
        )
    ]
    if operations:
        country_units().bulk_write(operations, ordered=False)


def record_blocks(texts: Mapping[str, int], *, provider: str, now: datetime) -> None:
    """Count the texts to each country that a provider blocked for pumping. Raises PyMongoError."""
    operations = [
        _in_slot({"units": 0, "asked": 0, "blocks": count}, country, provider, now=now)
        for country, count in texts.items()
    ]
    if operations:
        country_units().bulk_write(operations, ordered=False)


def slots_since(since: datetime, *, now: datetime) -> list[CountryUnitsDocument]:
    """Return the counters of ten minutes from that of a time on. Raises PyMongoError."""
    # All are kept equally long, so the index by which they are removed finds them.
    first, last = slot_of(since) + KEPT_SLOT, slot_of(now) + KEPT_SLOT
    return list(country_units().find({"purge_at": {"$gte": first, "$lte": last}, **_SLOTS}))


def days_since(first: date, *, provider: str) -> Mapping[date, Mapping[str, int]]:
    """Return the parts by country of each day from one on that has any. Raises PyMongoError."""
    found: dict[date, dict[str, int]] = defaultdict(dict)
    wanted = {"_id": {"$gte": _day_id(provider, first), "$lt": f"{_DAYS}/{provider}0"}}
    for document in country_units().find(wanted):
        found[date.fromisoformat(document["day"])][document["country"]] = document["units"]
    return found


def began_at(slot: CountryUnitsDocument) -> datetime:
    """Return when the ten minutes of a counter began."""
    return slot["purge_at"] - KEPT_SLOT


def asked_units(country: str, *, since: datetime, until: datetime) -> list[int]:
    """Return the asked parts of each ten minutes to a country. Raises PyMongoError."""
    sums: Counter[datetime] = Counter()
    wanted = {
        "_id": {"$gt": f"{country}/", "$lt": f"{country}0"},
        "purge_at": {"$gte": since + KEPT_SLOT, "$lt": until + KEPT_SLOT},
        **_SLOTS,
    }
    for document in country_units().find(wanted):
        sums[document["purge_at"]] += document["asked"]
    return list(sums.values())


def _in_slot(change: dict[str, int], country: str, provider: str, *, now: datetime) -> UpdateOne:
    at = slot_of(now)
    first = {"country": country, "provider": provider, "purge_at": at + KEPT_SLOT}
    return UpdateOne(
        {"_id": f"{country}/{provider}/{at:%Y-%m-%dT%H:%M}"},
        {"$inc": change, "$setOnInsert": first},
        upsert=True,
    )


def _in_day(units: int, country: str, provider: str, *, now: datetime) -> UpdateOne:
    day = day_of(now)
    first = {
        "country": country,
        "provider": provider,
        "day": day.isoformat(),
        "purge_at": now + KEPT_DAY,
    }
    return UpdateOne(
        {"_id": f"{_day_id(provider, day)}/{country}"},
        {"$inc": {"units": units}, "$setOnInsert": first},
        upsert=True,
    )


def _day_id(provider: str, day: date) -> str:
    return f"{_DAYS}/{provider}/{day.isoformat()}"
