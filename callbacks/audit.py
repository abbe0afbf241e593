"""Audit log entries of callback endpoints and messages."""

from bson import ObjectId

from notifyproject.platform import audit

from .events import DisabledReason
from .models import Callback, CallbackMessage

DISABLED_MESSAGES = {
    DisabledReason.GONE: "Disabled: the receiver responded 410 (Gone).",
    DisabledReason.FAILING: "Disabled: no request succeeded for five days.",
    DisabledReason.STUCK: "Disabled: five workers in a row ended while they called it.",
}
"""By reason for which the service disables an endpoint."""


def record(client_id: ObjectId, message: str, *, by: ObjectId) -> None:
    """Record a change to a client's endpoint."""
    key = str(client_id)
    audit.record(by=by, model=Callback, object_id=key, name=key, message=message)


def record_replay(message_id: str, *, by: ObjectId) -> None:
    """Record that staff replayed a message."""
    audit.record(
        by=by, model=CallbackMessage, object_id=message_id, name=message_id, message="Sent again."
    )
