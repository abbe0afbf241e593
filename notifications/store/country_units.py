"""Counters of the parts of texts to a country, in ten minutes and in a day, by provider."""

from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime, time, timedelta

from pymongo import UpdateOne

from domain.country_units import HISTORY, SentUnits, slot_of
from notifications.documents.policies import CountryUnitsDocument

from .collections import country_units

KEPT_SLOT = HISTORY + timedelta(hours=2)
KEPT_DAY = timedelta(days=40)
"""Longer than the month that the console sums up."""


def count_sent(sent: Sequence[SentUnits], *, now: datetime) -> None:
    """Count parts that were sent. Raises PyMongoError."""
    units: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for text in sent:
        key = (text.country, text.provider)
        units[key] += text.units
        asked[key] += text.units if text.is_asked else 0
    operations = [
        upsert({"units": count, "asked": asked[key]}, *key, now=now)
        for key, count in units.items()
        for upsert in (_in_slot, _in_day)
    ]
    if operations:
        country_units().bulk_write(operations, ordered=False)


def record_block(*, country: str, provider: str, now: datetime) -> None:
    """Record that a provider blocks numbers of a country for pumping. Raises PyMongoError."""
    change = {"units": 0, "asked": 0, "blocks": 1}
    country_units().bulk_write([_in_slot(change, country, provider, now=now)])


def slots_since(since: datetime, *, now: datetime) -> list[CountryUnitsDocument]:
    """Return the counters of ten minutes from that of a time on. Raises PyMongoError."""
    # All are kept equally long, so the index by which they are removed finds them.
    first, last = slot_of(since) + KEPT_SLOT, slot_of(now) + KEPT_SLOT
    wanted = {"purge_at": {"$gte": first, "$lte": last}, "is_day": False}
    return list(country_units().find(wanted))


def asked_units(country: str, *, since: datetime, until: datetime) -> list[int]:
    """Return the asked parts of each ten minutes to a country. Raises PyMongoError."""
    sums: Counter[datetime] = Counter()
    wanted = {
        "_id": {"$gt": f"{country}/", "$lt": f"{country}0"},
        "is_day": False,
        "purge_at": {"$gte": since + KEPT_SLOT, "$lt": until + KEPT_SLOT},
    }
    for document in country_units().find(wanted):
        sums[document["purge_at"]] += document["asked"]
    return list(sums.values())


def days_since(since: datetime, *, provider: str) -> list[CountryUnitsDocument]:
    """Return a provider's counters of a day and of those after it. Raises PyMongoError."""
    wanted = {
        "purge_at": {"$gte": _day_of(since) + KEPT_DAY},
        "provider": provider,
        "is_day": True,
    }
    return list(country_units().find(wanted))


def day_of(document: CountryUnitsDocument) -> datetime:
    """Return the midnight at which the day of a counter began."""
    return document["purge_at"] - KEPT_DAY


def _in_slot(change: dict[str, int], country: str, provider: str, *, now: datetime) -> UpdateOne:
    at = slot_of(now)
    return _upsert(change, country, provider, f"{at:%Y-%m-%dT%H:%M}", at + KEPT_SLOT, is_day=False)


def _in_day(change: dict[str, int], country: str, provider: str, *, now: datetime) -> UpdateOne:
    at = _day_of(now)
    return _upsert(change, country, provider, f"{at:%Y-%m-%d}", at + KEPT_DAY, is_day=True)


def _upsert(
    change: dict[str, int],
    country: str,
    provider: str,
    name: str,
    purge_at: datetime,
    *,
    is_day: bool,
) -> UpdateOne:
    first = {"country": country, "provider": provider, "is_day": is_day, "purge_at": purge_at}
    return UpdateOne(
        {"_id": f"{country}/{provider}/{name}"},
        {"$inc": change, "$setOnInsert": first},
        upsert=True,
    )


def _day_of(now: datetime) -> datetime:
    return datetime.combine(now.astimezone(UTC).date(), time.min, UTC)
