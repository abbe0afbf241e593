"""Reading an audience in the order of its user ids, page by page."""

from bisect import bisect_right

from notifyproject.db.collections import collection
from recipients import queries as recipients
from recipients import topics

from .documents import Audience

COUNT_CAP = 100_000
"""A topic with more members is not counted when it is asked for: it takes too long."""


def next_ids(audience: Audience, *, after: str | None, limit: int) -> list[str]:
    """Return the next user ids behind ``after``; fewer than ``limit`` are the last.

    Raises PyMongoError.
    """
    if audience.topic is not None:
        return topics.stream(audience.topic, after=after, limit=limit)
    if audience.user_ids is None:
        return recipients.stream(after=after, limit=limit)
    start = 0 if after is None else bisect_right(audience.user_ids, after)
    return list(audience.user_ids[start : start + limit])


def size(audience: Audience) -> int | None:
    """Return about how many people there are; None if they are too many to be counted.

    Everybody is estimated from the collection's own figures: those who are being erased are among
    them. Raises PyMongoError.
    """
    if audience.user_ids is not None:
        return len(audience.user_ids)
    if audience.topic is None:
        return collection("recipients").estimated_document_count()
    count = collection("topic_members").count_documents(
        {"topic": audience.topic}, limit=COUNT_CAP + 1, hint="tpm_topic"
    )
    return count if count <= COUNT_CAP else None
