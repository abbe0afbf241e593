"""What becomes of callbacks, in the same log as what staff do."""

from bson import ObjectId
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType

from .events import DisabledReason
from .models import Callback, CallbackMessage

DISABLED_MESSAGES = {
    DisabledReason.GONE: "Switched off: its receiver answered 410, that it is gone.",
    DisabledReason.FAILING: "Switched off: nothing has come through for five days.",
}


def record_disabled(client_id: ObjectId, reason: DisabledReason) -> None:
    """Write down that the service has switched a callback off: it stands under the app's id."""
    record(client_id, DISABLED_MESSAGES[reason], by=client_id)


def record_by_app(client_id: ObjectId, name: str, message: str) -> None:
    """Write down what an app did to its own callback: the log names it by id, the text by name."""
    record(client_id, f"By the app {name}: {message}", by=client_id)


def record(client_id: ObjectId, message: str, *, by: ObjectId) -> None:
    """Write down what was done to a callback, by whom."""
    _add_entry(Callback, str(client_id), message, by)


def record_replay(message_id: str, *, by: ObjectId) -> None:
    """Write down that a member of staff sent a message again."""
    _add_entry(CallbackMessage, message_id, "Sent again.", by)


def _add_entry(
    model: type[Callback | CallbackMessage], object_id: str, message: str, by: ObjectId
) -> None:
    LogEntry.objects.create(
        user_id=by,
        content_type=ContentType.objects.get_for_model(model),
        object_id=object_id,
        object_repr=object_id[:200],
        action_flag=CHANGE,
        change_message=message,
    )
