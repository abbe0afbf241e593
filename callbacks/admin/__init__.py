"""The admin of callbacks."""

from .lists import CallbackAdmin
from .messages import CallbackMessageAdmin

__all__ = ["CallbackAdmin", "CallbackMessageAdmin"]
