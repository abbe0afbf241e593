"""Saved views: lists of the console with filters, under a name. Counts them, and times alerts.

The console compiles a view's filters into a condition, with which it is counted here.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import pymongo
from bson import ObjectId
from pymongo import ReturnDocument

from notifyproject.db.collections import collection
from notifyproject.db.stored_match import load_match

from .documents import ALERT_RULES, SAVED_VIEWS, AlertRuleDocument, SavedViewDocument

COUNT_CAP = 1_000
MAX_VIEWS = 20
"""Most views of one member of staff, and as many that are shared."""
ALERT_COUNT_SECONDS = 2.0
"""Time limit of a count for an alert. After it, the alert stays as it is."""
FORGOTTEN_AFTER = timedelta(minutes=5)
"""How long the time of a rule goes on without a check."""
_IN_MENU = (("position", 1), ("_id", 1))


def own(user_id: ObjectId) -> list[SavedViewDocument]:
    """Return the views of a member of staff that aren't shared, in the order of the menu."""
    found = SAVED_VIEWS().find({"owner_id": user_id, "is_shared": False}).sort(_IN_MENU)
    return list(found.hint("svw_owner").limit(MAX_VIEWS))


def shared() -> list[SavedViewDocument]:
    """Return the shared views, in the order of the menu."""
    found = SAVED_VIEWS().find({"is_shared": True}).sort(_IN_MENU)
    return list(found.hint("svw_shared").limit(MAX_VIEWS))


def get(view_id: ObjectId) -> SavedViewDocument | None:
    """Return a view, or None if it doesn't exist."""
    return SAVED_VIEWS().find_one({"_id": view_id})


def arrange(view_ids: Collection[ObjectId]) -> None:
    """Store the order of views in the menu."""
    for position, view_id in enumerate(view_ids):
        SAVED_VIEWS().update_one({"_id": view_id}, {"$set": {"position": position}})


def store_condition(view_id: ObjectId, *, match: str | None, index: str | None) -> None:
    """Store what a view's filters mean in this version."""
    SAVED_VIEWS().update_one({"_id": view_id}, {"$set": {"match": match, "index": index}})


def delete(view_ids: Collection[ObjectId]) -> list[AlertRuleDocument]:
    """Delete views, and first their alert rules: no rule is left without its view.

    Return the rules.
    """
    rules = list(ALERT_RULES().find({"view_id": {"$in": list(view_ids)}}))
    ALERT_RULES().delete_many({"view_id": {"$in": list(view_ids)}})
    SAVED_VIEWS().delete_many({"_id": {"$in": list(view_ids)}})
    return rules


def delete_of(user_id: ObjectId) -> None:
    """Delete the views of an account that is deleted. Those that it has shared stay."""
    SAVED_VIEWS().delete_many({"owner_id": user_id, "is_shared": False})


def has_rule(view_id: ObjectId) -> bool:
    """Return whether there is an alert rule about a view."""
    return ALERT_RULES().find_one({"view_id": view_id}, {"_id": 1}) is not None


def count(view: SavedViewDocument, *, limit: int, seconds: float, now: datetime) -> int:
    """Count up to ``limit`` objects of a view. Raises PyMongoError, also after ``seconds``."""
    if (match := view.get("match")) is None:
        raise ValueError("the view can't be counted")
    hint: dict[str, Any] = {"hint": index} if (index := view.get("index")) else {}
    with pymongo.timeout(seconds):
        found = collection(view["source"])
        return found.count_documents(load_match(match, now=now), limit=limit, **hint)


def exceeded_since(rule_id: ObjectId, *, window: timedelta, now: datetime) -> datetime:
    """Record that a rule's limit is exceeded now. Return since when it has been.

    Without checks for a while, it begins anew, unless the rule's time was over by then.
    """
    lasted = {"$subtract": ["$exceeded_at", "$exceeded_since"]}
    milliseconds = int(window.total_seconds() * 1_000)
    known = {
        "$or": [
            {"$gte": ["$exceeded_at", now - FORGOTTEN_AFTER]},
            {"$gte": [lasted, milliseconds]},
        ]
    }
    found = ALERT_RULES().find_one_and_update(
        {"_id": rule_id},
        [
            {
                "$set": {
                    "exceeded_since": {"$cond": [known, "$exceeded_since", now]},
                    "exceeded_at": now,
                }
            }
        ],
        return_document=ReturnDocument.AFTER,
    )
    since = found.get("exceeded_since") if found is not None else None
    return now if since is None else since


def forget_exceeded(rule_id: ObjectId) -> None:
    """Record that a rule's limit isn't exceeded."""
    ALERT_RULES().update_one(
        {"_id": rule_id, "exceeded_since": {"$ne": None}},
        {"$unset": {"exceeded_since": "", "exceeded_at": ""}},
    )
