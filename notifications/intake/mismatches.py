"""Counts how often accepted data differed from its type's schema, by field.

A type in the mode ``warn`` is to become one in the mode ``reject`` once nothing differs any more.
The counts are in Valkey and may be lost: no acceptance waits for them or fails by them. A type
whose data fits its schema costs nothing.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from pymongo.errors import PyMongoError

from notifyproject.platform import valkey

from ..catalog import types
from ..validation import FieldProblem

WINDOW = timedelta(days=30)
"""Counts begin anew after this time, and with each other schema."""
MAX_FIELDS = 50
"""Fields that are counted for a schema: clients choose their names."""
MAX_POINTER = 200
"""Characters of a pointer that are counted."""
MAX_COUNT = 1e15
_COUNT = (Path(__file__).parent / "lua" / "count_mismatches.lua").read_text()
_INDEX = re.compile(r"/\d+(?=/|$)")


@dataclass(frozen=True, slots=True)
class Mismatches:
    """How often data did not fit its type's schema, by JSON Pointer, since a time."""

    counts: Mapping[str, int]
    since: datetime


def count(slug: str, found: Iterable[Sequence[FieldProblem]]) -> None:
    """Count where the data of messages differed from the schema of a type, without waiting."""
    try:
        kind = types.find_type(slug)
    except PyMongoError:
        # The message is stored: its response must not say that it isn't.
        return
    counts = Counter(
        place
        for of_message in found
        for place in {_INDEX.sub("/*", problem.pointer)[:MAX_POINTER] for problem in of_message}
    )
    if not counts or kind is None or kind.schema is None:
        return
    args: list[str | int] = [int(WINDOW.total_seconds()), MAX_FIELDS]
    for pointer, number in counts.items():
        args += [pointer, number]
    encoded = [arg.encode(errors="replace") if isinstance(arg, str) else arg for arg in args]
    try:
        valkey.run_later(_COUNT, keys=[_key(slug, kind.schema.text)], args=encoded)
    except valkey.Unavailable:
        return


def read(slug: str, schema: str, *, now: datetime) -> Mismatches | None:
    """Return what was counted of a type with this schema, None if nothing is known."""
    key = _key(slug, schema)
    try:
        with valkey.connection() as client, client.pipeline(transaction=True) as pipeline:
            pipeline.hgetall(key)
            pipeline.ttl(key)
            stored, seconds = pipeline.execute()
    except valkey.Unavailable:
        return None
    counts = {
        pointer.decode(errors="replace"): int(number)
        for pointer, text in stored.items()
        if (number := valkey.stored_number(text, most=MAX_COUNT)) is not None
    }
    if not counts:
        return None
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return Mismatches(dict(ordered), now - WINDOW + timedelta(seconds=max(seconds, 0)))


def _key(slug: str, schema: str) -> str:
    digest = hashlib.sha256(schema.encode(errors="surrogatepass")).hexdigest()[:32]
    return f"type:{slug}:{digest}:mismatches"
