"""The audit log that the console shows: one line for each action of staff or of a client."""

from collections.abc import Iterable, Mapping
from enum import StrEnum
from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

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
    *, by: Any, model: type[Model], object_id: str, name: str, message: str, flag: int = CHANGE
) -> None:
    """Record an action on an object. Raises DatabaseError.

    ``by`` is the ID of the staff user or client. Never pass an address in ``name`` or ``message``.
    """
    LogEntry.objects.create(
        user_id=by,
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr=name[:MAX_NAME],
        action_flag=flag,
        change_message=message,
    )


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
