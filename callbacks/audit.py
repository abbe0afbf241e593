"""What becomes of callbacks, in the same log as what staff do."""

from bson import ObjectId

from notifyproject.platform import audit

from .events import DisabledReason
from .models import Callback, CallbackMessage

DISABLED_MESSAGES = {
    DisabledReason.GONE: "Switched off: its receiver answered 410, that it is gone.",
    DisabledReason.FAILING: "Switched off: nothing has come through for five days.",
}


def record_disabled(client_id: ObjectId, reason: DisabledReason) -> None:
    """Write down that the service has switched a callback off: it stands under the app's id."""
    record(client_id, DISABLED_MESSAGES[reason], by=client_id)


def record(client_id: ObjectId, message: str, *, by: ObjectId) -> None:
    """Write down what was done to a callback, by whom."""
    _add_entry(Callback, str(client_id), message, by)


def record_replay(message_id: str, *, by: ObjectId) -> None:
    """Write down that a member of staff sent a message again."""
    _add_entry(CallbackMessage, message_id, "Sent again.", by)


def _add_entry(
    model: type[Callback | CallbackMessage], object_id: str, message: str, by: ObjectId
) -> None:
    audit.record(by=by, model=model, object_id=object_id, name=object_id, message=message)
