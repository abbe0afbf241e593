"""The audit log that the console shows: one line for each action of staff or of a client."""

from typing import Any

from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Model

MAX_NAME = 200


def record(
    *, by: Any, model: type[Model], object_id: str, name: str, message: str, flag: int = CHANGE
) -> None:
    """Record that ``by``, a staff user's or client's key, acted on an object. Raises DatabaseError.

    Neither ``name`` nor ``message`` holds an address.
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
