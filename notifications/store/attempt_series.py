"""Reads the first of the ambiguous attempts of a delivery, which its repeats must equal."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from bson import ObjectId

from domain.channels import Channel
from domain.states import AttemptStatus

from .collections import attempts
from .references import AttemptReference

_AMBIGUOUS = (AttemptStatus.UNKNOWN.value, AttemptStatus.STARTED.value)
_FIELDS = ("notification_id", "channel", "provider", "status", "attempt_number", "attempted_at")


@dataclass(frozen=True, slots=True, kw_only=True)
class AmbiguousDelivery:
    """A delivery with an ambiguous attempt."""

    notification_id: ObjectId
    channel: Channel
    provider: str
    earlier_attempts: int
    """Attempts before the last reopening, which decide nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptSeries:
    """Attempts of which the provider may have accepted any: each repeats the first."""

    first: int
    """The number of the first attempt."""
    reference: str
    """Of the first attempt."""
    began_at: datetime


def find_series(
    deliveries: Collection[AmbiguousDelivery],
) -> Mapping[AmbiguousDelivery, AttemptSeries]:
    """Return the series of each delivery whose ambiguous attempt is on record.

    Raises PyMongoError.
    """
    if not deliveries:
        return {}
    wanted = {(d.notification_id, d.channel.value): d for d in deliveries}
    found = attempts().find({"notification_id": {"$in": [key[0] for key in wanted]}}, _FIELDS)
    series: dict[AmbiguousDelivery, AttemptSeries] = {}
    for record in sorted(found, key=lambda r: r["attempt_number"]):
        delivery = wanted.get((record["notification_id"], record["channel"]))
        if (
            delivery is not None
            and record["status"] in _AMBIGUOUS
            and record.get("provider") == delivery.provider
            and record["attempt_number"] > delivery.earlier_attempts
        ):
            first = record["attempt_number"]
            reference = AttemptReference(delivery.notification_id, delivery.channel, first)
            series.setdefault(
                delivery,
                AttemptSeries(
                    first=first, reference=str(reference), began_at=record["attempted_at"]
                ),
            )
    return series
