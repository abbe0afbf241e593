"""Audit log entries, which the console shows."""

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

MAX_NAME = 200


def record(
    *, by: Any, model: type[Model], object_id: str, name: str, message: str, flag: int = CHANGE
) -> None:
    """Record an action of a staff member, given by key, on one object. Raises DatabaseError.

    ``name`` is the object's name and ``message`` a sentence. Neither contains an address.
    ``flag`` is ADDITION, CHANGE, or DELETION of ``django.contrib.admin.models``.
    """
    LogEntry.objects.create(
        user_id=by,
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr=name[:MAX_NAME],
        action_flag=flag,
        change_message=message,
    )
