"""Audiences of broadcasts, and their recipients in pages."""

import random
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bson import ObjectId

from domain.states import AudienceKind
from notifications.documents.broadcasts import BroadcastDocument
from recipients import queries as recipients
from recipients import topics
from recipients.documents import RECIPIENTS, TOPIC_MEMBERS

from ..files import enumeration as files
from ..intake.addressees import Addressee, users
from ..validation import InvalidRequestError

COUNT_CAP = 100_000  # Larger topics aren't counted: it takes too long
_random = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The recipients of a broadcast."""

    kind: AudienceKind
    topic: str | None = None
    user_ids: Sequence[str] | None = None  # Sorted, without duplicates
    file_id: ObjectId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AudiencePage:
    """Some recipients of an audience, in its order."""

    addressees: Sequence[Addressee]
    refused: Mapping[str, InvalidRequestError] = field(default_factory=dict)
    """Recipients of whom no message can be made, by their keys."""
    cursor: str | None
    """Where the next page begins; None: as this one."""
    is_last: bool
    check: Callable[[], None] = lambda: None
    """Called right before the page is stored. Raises RowsErasedError if it must be read again."""


def audience_of(document: BroadcastDocument) -> Audience:
    """Return the audience of a broadcast."""
    return Audience(
        kind=AudienceKind(document["audience"]),
        topic=document.get("topic"),
        user_ids=document.get("user_ids"),
        file_id=document.get("file_id"),
    )


def next_page(audience: Audience, *, after: str | None, limit: int) -> AudiencePage:
    """Return the recipients after a cursor: up to ``limit``, or those of a part of a file.

    Raises FileRemovedError if the file's rows were removed meanwhile, and PyMongoError.
    """
    if audience.file_id is not None:
        number = 0 if after is None else int(after) + 1
        page = files.read_good_rows(audience.file_id, part=number)
        return AudiencePage(
            addressees=page.addressees,
            refused=page.refused,
            cursor=str(number),
            is_last=page.is_last,
            check=page.check,
        )
    user_ids = _next_user_ids(audience, after=after, limit=limit)
    return AudiencePage(
        addressees=users(user_ids),
        cursor=user_ids[-1] if user_ids else None,
        is_last=len(user_ids) < limit,
    )


def _next_user_ids(audience: Audience, *, after: str | None, limit: int) -> list[str]:
    if audience.topic is not None:
        return topics.next_members(audience.topic, after=after, limit=limit)
    if audience.user_ids is None:
        return recipients.next_user_ids(after=after, limit=limit)
    start = 0 if after is None else bisect_right(audience.user_ids, after)
    return list(audience.user_ids[start : start + limit])


def sample(audience: Audience, *, limit: int) -> list[Addressee]:
    """Return random recipients of an audience. Raises PyMongoError and FileRemovedError.

    Of a large topic, only the first COUNT_CAP members are chosen from, and of a file those of one
    part.
    """
    if audience.file_id is not None:
        return files.sample_good_rows(audience.file_id, limit=limit)
    if audience.user_ids is not None:
        size = min(limit, len(audience.user_ids))
        return users(_random.sample(audience.user_ids, size))
    if audience.topic is not None:
        return users(topics.sample_members(audience.topic, among=COUNT_CAP, limit=limit))
    return users(recipients.sample_user_ids(limit=limit))


def count_audience(audience: Audience) -> int | None:
    """Return the approximate audience size, or None for a large topic. Raises PyMongoError."""
    # For all recipients, the collection's estimate also counts recipients being erased.
    if audience.file_id is not None:
        return files.count_good_rows(audience.file_id)
    if audience.user_ids is not None:
        return len(audience.user_ids)
    if audience.topic is None:
        return RECIPIENTS().estimated_document_count()
    count = TOPIC_MEMBERS().count_documents(
        {"topic": audience.topic}, limit=COUNT_CAP + 1, hint="tpm_topic"
    )
    return count if count <= COUNT_CAP else None
