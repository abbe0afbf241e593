"""The documents of the heart, as Django models over MongoDB collections."""

from .notification import (
    Claim,
    Content,
    Delivery,
    ErrorRecord,
    Notification,
    RecipientCopy,
)
from .records import DeliveryAttempt, Heartbeat, IdempotencyKey, ProviderEvent, WebhookLog
from .types import NotificationType

__all__ = [
    "Claim",
    "Content",
    "Delivery",
    "DeliveryAttempt",
    "ErrorRecord",
    "Heartbeat",
    "IdempotencyKey",
    "Notification",
    "NotificationType",
    "ProviderEvent",
    "RecipientCopy",
    "WebhookLog",
]
