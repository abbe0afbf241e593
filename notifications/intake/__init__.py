"""Taking in a request: check it, fill its gaps, store it, hint at it."""

from .accepting import Acceptance, accept
from .bulk import MAX_ITEMS, BulkAcceptance, accept_all
from .preparing import Caller
from .previewing import ChannelPreview, Preview, preview
from .problems import (
    AlreadyNotified,
    FieldProblem,
    InvalidRequest,
    KeyReused,
    Overloaded,
    RepeatedItem,
)
from .requests import ContentRequest, LocalTime, NotificationRequest, RecipientRequest

__all__ = [
    "MAX_ITEMS",
    "Acceptance",
    "AlreadyNotified",
    "BulkAcceptance",
    "Caller",
    "ChannelPreview",
    "ContentRequest",
    "FieldProblem",
    "InvalidRequest",
    "KeyReused",
    "LocalTime",
    "NotificationRequest",
    "Overloaded",
    "Preview",
    "RecipientRequest",
    "RepeatedItem",
    "accept",
    "accept_all",
    "preview",
]
