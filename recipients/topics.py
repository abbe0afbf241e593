"""Topics and their members. Writes are idempotent and raise PyMongoError."""

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from pymongo.errors import DuplicateKeyError

from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page

from .documents import TOPIC_MEMBERS, TopicMemberDocument

TOPIC = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}", re.ASCII)
BATCH = 1_000
MAX_TOPICS = 10_000  # Most memberships of one recipient that are returned
KEY_ORDER = (("_id", 1),)


def member_id(topic: str, user_id: str) -> str:
    """Return the ID of a membership. It is unique, because a topic contains no colon."""
    return f"{topic}:{user_id}"


def join(*, topic: str, user_id: str, now: datetime) -> TopicMemberDocument:
    """Add a user, registered or not, to a topic. Return the membership."""
    member: TopicMemberDocument = {
        "_id": member_id(topic, user_id),
        "topic": topic,
        "user_id": user_id,
        "created_at": now,
    }
    try:
        TOPIC_MEMBERS().insert_one(member)
    except DuplicateKeyError:
        return TOPIC_MEMBERS().find_one({"_id": member["_id"]}) or member
    return member


def leave(*, topic: str, user_id: str) -> bool:
    """End a membership. Return False if there was none."""
    member = {"_id": member_id(topic, user_id)}
    return TOPIC_MEMBERS().delete_one(member).deleted_count > 0


def leave_all(user_id: str) -> int:
    """End all memberships of a recipient. Return how many."""
    return TOPIC_MEMBERS().delete_many({"user_id": user_id}).deleted_count


def members(*, topic: str, limit: int, cursor: Cursor | None = None) -> Page[TopicMemberDocument]:
    """Return up to ``limit`` members of a topic, in the order of user IDs. Raises PyMongoError."""
    return paging.page(TOPIC_MEMBERS, {"topic": topic}, order=KEY_ORDER, limit=limit, cursor=cursor)


def names(*, after: str | None = None, limit: int) -> list[str]:
    """Return up to ``limit`` topics with members, in order, after ``after``. Raises PyMongoError.

    The index alone answers this, by one key of each topic. Only the page itself is held in memory
    and returned, however many topics there are.
    """
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {"topic": {"$gt": after or ""}}},
        {"$sort": {"topic": 1}},
        {"$group": {"_id": "$topic"}},
        {"$sort": {"_id": 1}},
        {"$limit": limit},
    ]
    found = collection(TOPIC_MEMBERS.name).aggregate(pipeline, hint="tpm_topic")
    return [topic["_id"] for topic in found]


def next_members(topic: str, *, after: str | None = None, limit: int = BATCH) -> list[str]:
    """Return up to ``limit`` user IDs of a topic's members, in order, after ``after``."""
    # A member who joins meanwhile before that position is omitted; none is returned twice.
    cursor = Cursor((member_id(topic, after),)) if after is not None else None
    return [
        member["user_id"] for member in members(topic=topic, limit=limit, cursor=cursor).documents
    ]


def sample_members(topic: str, *, among: int, limit: int) -> list[str]:
    """Return the user IDs of random members of a topic, of the first ``among`` ones."""
    pipeline: list[Mapping[str, Any]] = [
        {"$match": {"topic": topic}},
        {"$sort": {"_id": 1}},
        {"$limit": among},
        {"$sample": {"size": limit}},
        {"$project": {"user_id": 1}},
    ]
    return [member["user_id"] for member in collection(TOPIC_MEMBERS.name).aggregate(pipeline)]


def memberships_of(user_id: str) -> list[TopicMemberDocument]:
    """Return a recipient's memberships, ordered by topic. Raises PyMongoError."""
    found = TOPIC_MEMBERS().find({"user_id": user_id})
    return list(found.sort("_id", 1).limit(MAX_TOPICS))
