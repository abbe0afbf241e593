"""Audiences of broadcasts, and their recipients in pages."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

from domain.states import AudienceKind
from notifications.documents.broadcasts import BroadcastDocument
from recipients import queries as recipients
from recipients import topics
from recipients.documents import RECIPIENTS, TOPIC_MEMBERS

COUNT_CAP = 100_000  # Larger topics aren't counted: it takes too long
_random = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Audience:
    """The recipients of a broadcast."""

    kind: AudienceKind
    topic: str | None = None
    user_ids: Sequence[str] | None = None  # Sorted, without duplicates


def audience_of(document: BroadcastDocument) -> Audience:
    """Return the audience of a broadcast."""
    return Audience(
        kind=AudienceKind(document["audience"]),
        topic=document.get("topic"),
        user_ids=document.get("user_ids"),
    )


def next_user_ids(audience: Audience, *, after: str | None, limit: int) -> list[str]:
    """Return up to ``limit`` user IDs after ``after``. Fewer than ``limit`` are the last."""
    if audience.topic is not None:
        return topics.next_members(audience.topic, after=after, limit=limit)
    if audience.user_ids is None:
        return recipients.next_user_ids(after=after, limit=limit)
    start = 0 if after is None else bisect_right(audience.user_ids, after)
    return list(audience.user_ids[start : start + limit])


def sample_user_ids(audience: Audience, *, limit: int) -> list[str]:
    """Return the user IDs of random recipients of an audience. Raises PyMongoError.

    Of a large topic, only the first COUNT_CAP members are chosen from.
    """
    if audience.user_ids is not None:
        size = min(limit, len(audience.user_ids))
        return _random.sample(audience.user_ids, size)
    if audience.topic is not None:
        return topics.sample_members(audience.topic, among=COUNT_CAP, limit=limit)
    return recipients.sample_user_ids(limit=limit)


def count_audience(audience: Audience) -> int | None:
    """Return the approximate audience size, or None for a large topic. Raises PyMongoError."""
    # For all recipients, the collection's estimate also counts recipients being erased.
    if audience.user_ids is not None:
        return len(audience.user_ids)
    if audience.topic is None:
        return RECIPIENTS().estimated_document_count()
    count = TOPIC_MEMBERS().count_documents(
        {"topic": audience.topic}, limit=COUNT_CAP + 1, hint="tpm_topic"
    )
    return count if count <= COUNT_CAP else None
