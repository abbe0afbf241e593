"""Makes an addressee of a row, and names the people in one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from domain.addresses import ADDRESS_KINDS, InvalidAddressError, with_country_code
from domain.tables.table import Row
from notifyproject.platform import encryption

from ..content.properties import value_of
from ..intake.addressees import Addressee
from ..intake.requests import NotificationRecipientRequest
from ..models.files import PERSON_LENGTH
from ..models.notification import USER_ID_LENGTH
from ..validation import ProblemCollector, check_storable
from .columns import DATA, IGNORED, PHONE, RECIPIENT_FIELDS, USER_ID, TypeData

PEOPLE = "audience file: {}"
"""What the digest of a person is bound to, with the field that names them."""
LENGTHS = {
    USER_ID: USER_ID_LENGTH,
    "email": 320,
    "phone": 32,
    "name": 200,
    "locale": 35,
    "timezone": 64,
}
"""Characters that a request takes of each field."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowMapping:
    """How the cells of a file's rows are read."""

    columns: Sequence[str]
    data: TypeData
    country: str | None = None

    def fields_of(self, cells: Sequence[str]) -> dict[str, str]:
        """Return the cells that aren't empty by what their columns are."""
        found = {
            target: cell
            for target, cell in zip(self.columns, cells, strict=False)
            if cell and target != IGNORED
        }
        if self.country is not None and PHONE in found:
            found[PHONE] = with_country_code(found[PHONE], country=self.country)
        return found


def addressee_of(row: Row, mapping: RowMapping) -> Addressee:
    """Return the recipient that a row names. Raises InvalidRequestError."""
    given = mapping.fields_of(row.cells)
    problems = ProblemCollector()
    for field, length in LENGTHS.items():
        if len(given.get(field, "")) > length:
            pointer = "/user_id" if field == USER_ID else f"/recipient/{field}"
            problems.add(pointer, "out_of_range", f"At most {length} characters.")
    data: dict[str, Any] = {
        name: value_of(cell, mapping.data.schema_of(name))
        for target, cell in given.items()
        if (name := target.removeprefix(DATA)) != target
    }
    check_storable({"data": data}, "", problems, in_data=False)
    problems.raise_if_any()
    return Addressee(
        key=str(row.number),
        user_id=given.get(USER_ID),
        recipient=msgspec.convert(
            {field: given[field] for field in RECIPIENT_FIELDS if field in given},
            NotificationRecipientRequest,
        ),
        data=data,
    )


def names_of(given: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each way in which a row names its person: the field, and what is equal for equals."""
    found = [(USER_ID, given[USER_ID])] if USER_ID in given else []
    return found + [
        (field, _folded(field, given[field])) for field in ADDRESS_KINDS if field in given
    ]


def person_digests(given: Mapping[str, str]) -> list[str]:
    """Return a keyed digest for each way in which a row names its person."""
    return [
        encryption.keyed_digest(name.encode(errors="replace"), associated_data=_bound(field))[
            :PERSON_LENGTH
        ]
        for field, name in names_of(given)
    ]


def digests_of_person(field: str, name: str) -> list[str]:
    """Return the digests by which rows may name a person, under each key."""
    folded = name if field == USER_ID else _folded(field, name)
    found = encryption.keyed_digests(folded.encode(errors="replace"), associated_data=_bound(field))
    return [digest[:PERSON_LENGTH] for digest in found]


def _bound(field: str) -> str:
    return PEOPLE.format(field)


def _folded(field: str, address: str) -> str:
    kind = ADDRESS_KINDS[field]
    try:
        return kind.fold(kind.normalize(address))
    except InvalidAddressError:
        return kind.fold(address)
