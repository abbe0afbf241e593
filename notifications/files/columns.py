"""What the columns of a file are: an address, another field of the recipient, or data. Pure."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..content.properties import DataProperty
from ..validation import FieldProblem

USER_ID, EMAIL, PHONE = "user_id", "email", "phone"
ADDRESSES = (USER_ID, EMAIL, PHONE)
RECIPIENT_FIELDS = (EMAIL, PHONE, "name", "locale", "timezone")
FIELDS = (USER_ID, *RECIPIENT_FIELDS)
DATA = "data."
"""Begins the target of a column that is data, such as ``data.amount``."""
IGNORED = ""
PROBLEM = "problem"
"""The last column of a download of wrong rows."""
SAMPLE = 100
"""Rows from which a column without a known name is guessed."""
_MOST = 0.8
_ALIASES = {
    "userid": USER_ID,
    "email": EMAIL,
    "emailaddress": EMAIL,
    "mail": EMAIL,
    "phone": PHONE,
    "phonenumber": PHONE,
    "mobile": PHONE,
    "mobilenumber": PHONE,
    "mobilephone": PHONE,
    "telephone": PHONE,
    "name": "name",
    "fullname": "name",
    "locale": "locale",
    "language": "locale",
    "timezone": "timezone",
}
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
_PHONE = re.compile(r"\+\d[\d ().-]{6,20}", re.ASCII)
_UNNAMED = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeData:
    """What a type's data may be."""

    properties: Mapping[str, DataProperty]
    required: frozenset[str]
    is_open: bool
    """Other variables may be given, too."""

    def schema_of(self, name: str) -> Mapping[str, Any]:
        """Return the schema of a property; an empty one if nothing is said of it."""
        known = self.properties.get(name)
        return known.schema if known is not None else {}


def _plain(name: str) -> str:
    """Return a name without case, blanks, underscores, and punctuation."""
    return _UNNAMED.sub("", name).casefold()


def own_header(header: Sequence[str], *, data: TypeData) -> Sequence[str]:
    """Return a header without the column that a download of wrong rows adds.

    Corrected and uploaded again, a file has the columns that it had.
    """
    is_added = len(header) > 1 and header[-1] == PROBLEM and PROBLEM not in data.properties
    return header[:-1] if is_added else header


def fitted(known: Sequence[str] | None, header: Sequence[str]) -> list[str] | None:
    """Return the columns of an earlier file for one with the same own header."""
    if known is None:
        return None
    return [*known, *[IGNORED] * len(header)][: len(header)]


def guess(header: Sequence[str], rows: Iterable[Sequence[str]], *, data: TypeData) -> list[str]:
    """Return what each column is, by its name or, for an address, by its first rows."""
    by_name = {_plain(name): f"{DATA}{name}" for name in data.properties}
    found: list[str] = []
    for name in header:
        known = _ALIASES.get(_plain(name), IGNORED)
        own = by_name.get(_plain(name), IGNORED)
        # A variable `name` of the type is more than the name of the recipient.
        target = known if known in ADDRESSES else own or known
        found.append(IGNORED if target in found else target)
    if not set(found) & set(ADDRESSES):
        _guess_address(found, list(rows)[:SAMPLE])
    return found


def _guess_address(found: list[str], rows: Sequence[Sequence[str]]) -> None:
    for target, form in ((EMAIL, _EMAIL), (PHONE, _PHONE)):
        for index, known in enumerate(found):
            cells = [row[index] for row in rows if row[index]]
            matching = sum(form.fullmatch(cell) is not None for cell in cells)
            if known == IGNORED and cells and matching >= _MOST * len(cells):
                found[index] = target
                return


def problems_of(
    columns: Sequence[str], *, width: int, data: TypeData, pointer: str = "/columns"
) -> list[FieldProblem]:
    """Return why columns don't fit a type, each in a sentence."""
    problems: list[FieldProblem] = []
    if len(columns) != width:
        detail = f"Expected one value for each of the {width} columns, in their order."
        return [FieldProblem(pointer, "wrong_length", detail)]
    problems += unknown_targets(columns, data=data, pointer=pointer)
    counts = Counter(target for target in columns if target != IGNORED)
    problems += [
        FieldProblem(f"{pointer}/{index}", "duplicate", f"Two columns can't both be {target}.")
        for index, target in enumerate(columns)
        if counts[target] > 1
    ]
    if not set(columns) & set(ADDRESSES):
        detail = "No column names the recipients. One must be user_id, email, or phone."
        problems.append(FieldProblem(pointer, "no_address", detail))
    missing = sorted(name for name in data.required if f"{DATA}{name}" not in counts)
    if missing:
        detail = f"The type requires {', '.join(missing)}, which no column is."
        problems.append(FieldProblem(pointer, "missing_column", detail))
    return problems


def unknown_targets(
    columns: Sequence[str], *, data: TypeData, pointer: str = "/columns"
) -> list[FieldProblem]:
    """Return a problem for each column that is nothing which a message can have."""
    named = ", ".join([*FIELDS, *(f"{DATA}{name}" for name in data.properties)])
    return [
        FieldProblem(f"{pointer}/{index}", "unknown_target", f"A column is one of {named}.")
        for index, target in enumerate(columns)
        if target not in (IGNORED, *FIELDS) and not _is_data(target, data)
    ]


def _is_data(target: str, data: TypeData) -> bool:
    name = target.removeprefix(DATA)
    if name == target or not name:
        return False
    return name in data.properties or (data.is_open and name.isidentifier())
