"""Shows the message of one row as a broadcast would send it, and finds rows worth a look."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from bson import ObjectId

from notifications.documents.files import AudienceFileDocument

from ..intake import preview as messages
from ..intake.preview import CHANNEL_NOT_CHOSEN, ChannelPreview, Preview
from ..intake.requests import Caller, NotificationRequest
from ..validation import InvalidRequestError
from . import repository
from .columns import DATA, EMAIL, PHONE, USER_ID
from .downloads import read_rows, said
from .enumeration import mapping_of
from .rows import addressee_of

LOCALE = "locale"


@dataclass(frozen=True, slots=True, kw_only=True)
class RowPreview:
    """A row, with its message or the reason why it has none."""

    number: int
    user_id: str | None
    address: str | None
    """Whom the row names, as the file has it."""
    problem: str = ""
    message: Preview | None = None

    @property
    def channels(self) -> Sequence[ChannelPreview]:
        """The channels of the message."""
        found = self.message.channels if self.message is not None else ()
        return [channel for channel in found if channel.not_sent_reason != CHANNEL_NOT_CHOSEN]


@dataclass(frozen=True, slots=True, kw_only=True)
class NotableRows:
    """Numbers of good rows whose messages differ most. None if the file has none."""

    first: int | None = None
    longest: int | None = None
    shortest: int | None = None
    without_language: int | None = None
    """Only of a file with a column for it."""


def preview_row(
    document: AudienceFileDocument,
    number: int,
    *,
    shared: NotificationRequest,
    caller: Caller,
    shows_registry: bool,
    now: datetime,
) -> RowPreview | None:
    """Return a row of a checked file with its message, or None without this row.

    ``shared`` is what all recipients share. Raises PyMongoError.
    """
    mapping = mapping_of(document)
    for row, findings in read_rows(document, start=number):
        if row.number > number:
            break
        given = mapping.fields_of(row.cells)
        named: dict[str, Any] = {
            "number": number,
            "user_id": given.get(USER_ID),
            "address": given.get(EMAIL) or given.get(PHONE),
        }
        if findings:
            return RowPreview(**named, problem=said(findings))
        try:
            shown = messages.preview(
                addressee_of(row, mapping).request_of(shared),
                caller=caller,
                shows_registry=shows_registry,
                shows_secrets=False,
                now=now,
            )
        except InvalidRequestError as refusal:
            problem = " ".join(each.detail for each in refusal.problems)
            return RowPreview(**named, problem=problem)
        return RowPreview(**named, message=shown)
    return None


@lru_cache(maxsize=256)
def notable_rows(file_id: ObjectId, check_number: int) -> NotableRows:
    """Return the good rows that are worth a look. Raises PyMongoError."""
    document = repository.get(file_id)
    if document is None or document["check_number"] != check_number:
        return NotableRows()
    columns = document.get("columns", [])
    texts = [index for index, target in enumerate(columns) if target.startswith(DATA)]
    locale = columns.index(LOCALE) if LOCALE in columns else None
    sizes: dict[int, int] = {}
    without: int | None = None
    for row, findings in read_rows(document):
        if findings:
            continue
        sizes[row.number] = sum(len(row.cells[index]) for index in texts)
        if without is None and locale is not None and not row.cells[locale]:
            without = row.number
    if not sizes:
        return NotableRows()
    return NotableRows(
        first=min(sizes),
        longest=max(sizes, key=sizes.__getitem__),
        shortest=min(sizes, key=sizes.__getitem__),
        without_language=without,
    )
