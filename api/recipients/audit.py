"""What apps do to people for good, in the same log as what staff do."""

from typing import Any

from django.contrib.admin.models import CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType

from recipients.models import Recipient, Suppression


def record_erasure(request: Any, user_id: str, message: str) -> None:
    """Write down which app erased a person."""
    _record(request, Recipient, user_id, DELETION, message)


def record_export(request: Any, user_id: str) -> None:
    """Write down which app was told everything about a person."""
    _record(request, Recipient, user_id, CHANGE, "Exported.")


def record_lifting(request: Any, suppression_id: str, message: str) -> None:
    """Write down which app lifted a suppression."""
    _record(request, Suppression, suppression_id, DELETION, message)


def _record(request: Any, model: Any, object_id: str, flag: int, message: str) -> None:
    """Add an entry: the log names who did it by id, and that is the app's; the text names the app.

    No address is in it.
    """
    LogEntry.objects.create(
        user_id=request.user.id,
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr=object_id[:200],
        action_flag=flag,
        change_message=f"By the app {request.user.name}: {message}",
    )
