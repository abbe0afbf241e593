"""The good rows of a checked file, part by part, as a broadcast reads them."""

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from bson import ObjectId

from notifications.documents.files import AUDIENCE_FILES, AudienceFileDocument

from ..actions.actions import InvalidStateError
from ..intake.addressees import Addressee
from ..validation import InvalidRequestError
from . import parts, type_data
from .rows import RowMapping, addressee_of

_random = random.SystemRandom()


class FileRemovedError(InvalidStateError):
    """The rows of a file are removed: by its client, or a week after the upload."""

    def __init__(self) -> None:
        super().__init__("The rows of the file are removed.")


class RowsErasedError(Exception):
    """Somebody was erased from rows, or these were removed, since they were read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPage:
    """The good rows of one part of a file."""

    addressees: Sequence[Addressee]
    refused: Mapping[str, InvalidRequestError]
    """Rows that the type doesn't take any more, by their keys."""
    is_last: bool
    check: Callable[[], None]
    """Raises RowsErasedError if it must be read again."""


def mapping_of(document: AudienceFileDocument) -> RowMapping:
    """Return how the rows of a stored file are read."""
    return RowMapping(
        columns=document.get("columns", []),
        data=type_data.read(document["type"]),
        country=document.get("country"),
    )


def read_good_rows(file_id: ObjectId, *, part: int) -> RowPage:
    """Return the good rows of a part. Raises FileRemovedError."""
    document = _find(file_id)
    found = parts.read_rows(file_id, part)
    if found is None:
        raise FileRemovedError
    findings = parts.findings_for(found, document["check_number"])
    if findings is None:
        raise FileRemovedError
    mapping = mapping_of(document)
    addressees: list[Addressee] = []
    refused: dict[str, InvalidRequestError] = {}
    for row in found.rows:
        if (key := str(row.number)) in findings:
            continue
        try:
            addressees.append(addressee_of(row, mapping))
        except InvalidRequestError as refusal:
            refused[key] = refusal
    return RowPage(
        addressees=addressees,
        refused=refused,
        is_last=part + 1 >= document.get("parts", 0),
        check=partial(_check_people, file_id, part, found.people),
    )


def _check_people(file_id: ObjectId, part: int, count: int) -> None:
    if not parts.has_people(file_id, part, count=count):
        raise RowsErasedError


def sample_good_rows(file_id: ObjectId, *, limit: int) -> list[Addressee]:
    """Return random good rows, all of one part. Raises FileRemovedError."""
    count = _find(file_id).get("parts", 0)
    for number in _random.sample(range(count), count):
        if found := read_good_rows(file_id, part=number).addressees:
            return _random.sample(found, min(limit, len(found)))
    return []


def first_good_row(file_id: ObjectId) -> Addressee | None:
    """Return the first good row, or None without one. Raises FileRemovedError."""
    for number in range(_find(file_id).get("parts", 0)):
        if found := read_good_rows(file_id, part=number).addressees:
            return found[0]
    return None


def count_good_rows(file_id: ObjectId) -> int | None:
    """Return how many rows a broadcast would send, or None for an unknown file."""
    document = AUDIENCE_FILES().find_one({"_id": file_id}, {"good": 1})
    return None if document is None else document["good"]


def _find(file_id: ObjectId) -> AudienceFileDocument:
    document = AUDIENCE_FILES().find_one({"_id": file_id})
    if document is None:
        raise FileRemovedError
    return document
