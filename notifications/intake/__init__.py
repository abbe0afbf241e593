"""Taking in a request: check it, fill its gaps, store it, hint at it."""

from .accepting import Acceptance, accept
from .preparing import Caller
from .previewing import ChannelPreview, Preview, preview
from .problems import AlreadyNotified, FieldProblem, InvalidRequest, KeyReused
from .requests import ContentRequest, LocalTime, NotificationRequest, RecipientRequest

__all__ = [
    "Acceptance",
    "AlreadyNotified",
    "Caller",
    "ChannelPreview",
    "ContentRequest",
    "FieldProblem",
    "InvalidRequest",
    "KeyReused",
    "LocalTime",
    "NotificationRequest",
    "Preview",
    "RecipientRequest",
    "accept",
    "preview",
]
