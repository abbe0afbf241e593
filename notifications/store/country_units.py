"""Counters of the parts of texts to a country in ten minutes, by provider."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from pymongo import UpdateOne

from domain.country_units import HISTORY, SentUnits, slot_of
from notifications.documents.policies import CountryUnitsDocument

from .collections import country_units

KEPT_SLOT = HISTORY + timedelta(hours=2)


def count_sent(sent: Sequence[SentUnits], *, now: datetime) -> None:
    """Count parts that were sent. Raises PyMongoError."""
    units: Counter[tuple[str, str]] = Counter()
    asked: Counter[tuple[str, str]] = Counter()
    for text in sent:
        key = (text.country, text.provider)
        units[key] += text.units
        asked[key] += text.units if text.is_asked else 0
    operations = [
        _in_slot({"units": count, "asked": asked[key]}, *key, now=now)
        for key, count in units.items()
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
    return list(country_units().find({"purge_at": {"$gte": first, "$lte": last}}))


def began_at(slot: CountryUnitsDocument) -> datetime:
    """Return when the ten minutes of a counter began."""
    return slot["purge_at"] - KEPT_SLOT


def asked_units(country: str, *, since: datetime, until: datetime) -> list[int]:
    """Return the asked parts of each ten minutes to a country. Raises PyMongoError."""
    sums: Counter[datetime] = Counter()
    wanted = {
        "_id": {"$gt": f"{country}/", "$lt": f"{country}0"},
        "purge_at": {"$gte": since + KEPT_SLOT, "$lt": until + KEPT_SLOT},
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
