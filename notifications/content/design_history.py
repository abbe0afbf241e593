"""Who changed which brand, layout, or partial, and when: what the stored designs say of it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from ..catalog.designs import Design, Kind, key_of
from ..documents.catalog import DESIGNS, DesignDocument
from .design_changes import Outcome

_WITHOUT_TEXTS = {"changed_in": 1, "created_at": 1, "created_by": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemChange:
    """What a design did to one item."""

    kind: Kind
    name: str
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Edition:
    """A stored design without its texts: who made it, when, and what it changed."""

    number: int
    created_at: datetime
    created_by: str
    changes: Sequence[ItemChange]


def list_editions(*, below: int | None = None, limit: int) -> list[Edition]:
    """Return the designs below a number, the newest first. Raises PyMongoError."""
    numbers = {} if below is None else {"_id": {"$lt": below}}
    # One more, with which the last one is compared.
    found = DESIGNS().find(numbers, _WITHOUT_TEXTS).sort("_id", -1).limit(limit + 1)
    documents = [*found]
    before = [each["changed_in"] for each in documents[1:]] + [{}]
    return [
        _edition(document, earlier)
        for document, earlier in zip(documents[:limit], before, strict=False)
    ]


def find_edition(number: int) -> Edition | None:
    """Return a design without its texts, None if it isn't stored. Raises PyMongoError."""
    found = list_editions(below=number + 1, limit=1)
    return found[0] if found and found[0].number == number else None


def editions_of(design: Design, kind: Kind, name: str, *, limit: int) -> list[Edition]:
    """Return the designs that made an item what it is, the newest first. Raises PyMongoError.

    They end where the item was created, or after ``limit``.
    """
    found: list[Edition] = []
    key = key_of(kind, name)
    number = design.changed_in.get(key)
    while number is not None and len(found) < limit:
        rows = [*DESIGNS().find({"_id": {"$in": [number, number - 1]}}, _WITHOUT_TEXTS)]
        by_number = {row["_id"]: row for row in rows}
        earlier = by_number[number - 1]["changed_in"] if number - 1 in by_number else {}
        found.append(_edition(by_number[number], earlier))
        number = earlier.get(key)
    return found


def last_editions(design: Design) -> Mapping[str, Edition]:
    """Return the design that made each item what it is, by the item's key. Its changes aren't read.

    Raises PyMongoError.
    """
    numbers = sorted(set(design.changed_in.values()))
    editions = {
        document["_id"]: _edition(document, document["changed_in"])
        for document in DESIGNS().find({"_id": {"$in": numbers}}, _WITHOUT_TEXTS)
    }
    return {key: editions[number] for key, number in design.changed_in.items()}


def _edition(document: DesignDocument, before: Mapping[str, int]) -> Edition:
    return Edition(
        number=document["_id"],
        created_at=document["created_at"],
        created_by=document["created_by"],
        changes=[*_changes(before, document["changed_in"])],
    )


def _changes(before: Mapping[str, int], now: Mapping[str, int]) -> Iterator[ItemChange]:
    for key in sorted(before.keys() | now.keys()):
        if before.get(key) == now.get(key):
            continue
        kind, _, name = key.partition("/")
        if key not in now:
            outcome = Outcome.REMOVED
        else:
            outcome = Outcome.CHANGED if key in before else Outcome.CREATED
        yield ItemChange(kind=Kind(kind), name=name, outcome=outcome)
