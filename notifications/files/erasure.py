"""Removes a person's rows from the files that are stored."""

from collections.abc import Iterable
from datetime import datetime

from domain.channels import Channel

from . import parts, repository
from .columns import USER_ID
from .enumeration import mapping_of
from .rows import digests_of_person, person_digests

_BATCH = 50


def erase(*, user_id: str, addresses: Iterable[tuple[Channel, str]], now: datetime) -> bool:
    """Remove the rows of a person. Return False if somebody may still have them.

    That is a worker that reads or checks a file, in whose rows nobody is found until then, and one
    that sends a page which it read before. Raises PyMongoError.
    """
    people = digests_of_person(USER_ID, user_id)
    for channel, address in addresses:
        if (kind := channel.spec.address) is not None:
            people += digests_of_person(kind.field, address)
    wanted, files = set(people), set()
    while found := parts.parts_with(people, limit=_BATCH):
        for document in found:
            stored = repository.get(document["file_id"])
            mapping = mapping_of(stored) if stored is not None else None
            kept = [
                row
                for row in parts.rows_of(document).rows
                if mapping is not None
                and wanted.isdisjoint(person_digests(mapping.fields_of(row.cells)))
            ]
            parts.replace_rows(document, kept, without=people)
            files.add(document["file_id"])
    return not repository.has_unread(until=now) and not repository.are_sent(files, at=now)
