"""How many parts of texts a client may send in a day, and which texts fit into that. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitUse:
    """The parts of one text, which count on one day."""

    units: int
    is_abroad: bool
    day: date


@dataclass(frozen=True, slots=True)
class UsedUnits:
    """The parts that a client has used on one day."""

    units: int = 0
    abroad: int = 0
    """Those of them that went abroad."""

    def plus(self, use: UnitUse) -> "UsedUnits":
        """Return the parts with those of one more text."""
        return UsedUnits(self.units + use.units, self.abroad + (use.units if use.is_abroad else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnitCaps:
    """The most parts of one client and day. 0: no cap."""

    units: int
    abroad: int

    def __bool__(self) -> bool:
        return bool(self.units or self.abroad)

    def refusal(self, use: UnitUse, *, used: UsedUnits) -> str | None:
        """Return why a text doesn't fit, as a sentence, or None.

        The first text of a day always fits. Otherwise one that is longer than a whole cap would
        wait forever.
        """
        checks = [(self.units, used.units, "")]
        if use.is_abroad:
            checks.append((self.abroad, used.abroad, " abroad"))
        for cap, count, where in checks:
            if cap and count and count + use.units > cap:
                return (
                    f"{count:,} of {cap:,} parts{where} are used today, and the text has "
                    f"{use.units}."
                )
        return None


def select_fitting(
    wanted: Sequence[UnitUse], *, used: UsedUnits, caps: UnitCaps
) -> tuple[list[str | None], UsedUnits]:
    """Return why each text doesn't fit, or None, and what those that fit use together."""
    refusals, added = [], UsedUnits()
    for use in wanted:
        refusal = caps.refusal(
            use, used=UsedUnits(used.units + added.units, used.abroad + added.abroad)
        )
        refusals.append(refusal)
        if refusal is None:
            added = added.plus(use)
    return refusals, added


def day_of(now: datetime) -> date:
    """Return the day in UTC."""
    return now.astimezone(UTC).date()


def end_of_day(day: date) -> datetime:
    """Return the midnight in UTC at which a day ends."""
    return datetime.combine(day + timedelta(days=1), time.min, UTC)
