"""What staff did, in one line each: the audit log that the console shows."""

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

MAX_NAME = 200


def record(
    *, by: Any, model: type[Model], object_id: str, name: str, message: str, flag: int = CHANGE
) -> None:
    """Write down that a member of staff (``by``, the key) did something to one object.

    ``name`` is what the object is called, ``message`` a whole sentence; neither holds an address.
    ``flag``: ADDITION, CHANGE or DELETION of ``django.contrib.admin.models``. Raises DatabaseError.
    """
    LogEntry.objects.create(
        user_id=by,
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr=name[:MAX_NAME],
        action_flag=flag,
        change_message=message,
    )
