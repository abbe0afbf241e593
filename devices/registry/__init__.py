"""The only writer of devices: every change is one atomic write of one device, or of a batch."""

from ..models import Document
from .registering import (
    MAX_DEVICES,
    SEEN_EVERY,
    Contended,
    Registration,
    heartbeat,
    register,
    remove,
    replace_token,
    set_preferences,
    update,
)
from .standing import MAX_SUSPICIONS, Evidence, alive, deactivate, reactivate, suspect

__all__ = [
    "MAX_DEVICES",
    "MAX_SUSPICIONS",
    "SEEN_EVERY",
    "Contended",
    "Document",
    "Evidence",
    "Registration",
    "alive",
    "deactivate",
    "heartbeat",
    "reactivate",
    "register",
    "remove",
    "replace_token",
    "set_preferences",
    "suspect",
    "update",
]
