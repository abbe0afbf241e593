"""The states of a callback and of a message to it. Pure."""

from enum import StrEnum


class CallbackState(StrEnum):
    """Whether a callback is called."""

    ACTIVE = "active"
    DISABLED = "disabled"


class DisabledReason(StrEnum):
    """Why a callback is not called any more."""

    GONE = "gone"
    """Its receiver answered 410."""
    FAILING = "failing"
    """Nothing came through for five days."""
    BY_OPERATOR = "by_operator"


class CallbackStatus(StrEnum):
    """Where one message to an app stands."""

    PENDING = "pending"
    DELIVERED = "delivered"
    """The receiver answered with a status from 200 to 299."""
    FAILED = "failed"
    """It is not tried again unless somebody asks."""
