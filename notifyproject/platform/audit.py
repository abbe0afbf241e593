"""The audit log that the console shows: one line for each action of staff or of a client."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from bson import ObjectId
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model
from django.utils import timezone

from notifyproject.db.collections import collection

MAX_NAME = 200


class Unaudited(StrEnum):
    """Reason why a writing operation of the API leaves no audit entry. Operations declare it."""

    CREATES = "the stored document itself names its client, time, and request"
    MARKS = "reading marks, heartbeats, and receipts: frequent, and they configure nothing"
    NOTHING = "it stores nothing that outlasts the request"


def describe_change(
    before: Mapping[str, Any] | None, after: Mapping[str, Any], *, fields: Iterable[str]
) -> str | None:
    """Return the names of the fields that changed; None if none did.

    Only names, because values can be addresses. ``before`` None: the object is new.
    """
    if before is None:
        return "Created."
    changed = [name for name in fields if before.get(name) != after.get(name)]
    return f"Changed: {', '.join(changed)}." if changed else None


def record(
    *,
    by: Any,
    model: type[Model],
    object_id: str,
    name: str,
    message: str,
    flag: int = CHANGE,
    part_of: str | None = None,
) -> None:
    """Record an action on an object. Raises PyMongoError.

    ``by`` is the ID of the staff user or client. ``part_of`` is the ID of a bulk operation: the
    list of the audit log shows the operation's own entry instead of one for each object. Never pass
    an address in ``name`` or ``message``.
    """
    entry = {
        "action_time": timezone.now(),
        "user_id": by,
        "content_type_id": ContentType.objects.get_for_model(model).pk,
        "object_id": object_id,
        "object_repr": name[:MAX_NAME],
        "action_flag": flag,
        "change_message": message,
    }
    if part_of is not None:
        entry["part_of"] = part_of
    collection(LogEntry._meta.db_table).insert_one(entry)


def find_entries(text: str, *, cap: int) -> list[ObjectId]:
    """Return the IDs of the newest entries about objects with this ID or name."""
    found: set[ObjectId] = set()
    for path in ("object_id", "object_repr"):
        rows = collection(LogEntry._meta.db_table).find({path: text}, {"_id": 1})
        found |= {row["_id"] for row in rows.sort("_id", -1).limit(cap)}
    return sorted(found, reverse=True)[:cap]


def record_client_action(
    client: Any, *, model: type[Model], object_id: str, message: str, flag: int = CHANGE
) -> None:
    """Record that a client acted on an object; the message gets the client's name."""
    record(
        by=client.id,
        model=model,
        object_id=object_id,
        name=object_id,
        message=f"By client {client.name}: {message}",
        flag=flag,
    )
