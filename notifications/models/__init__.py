"""The documents of the heart, as Django models over MongoDB collections."""

from .notification import (
    Attachment,
    Claim,
    Content,
    Delivery,
    ErrorRecord,
    Notification,
    RecipientCopy,
)
from .records import (
    DeliveryAttempt,
    EarlyReceipt,
    Heartbeat,
    IdempotencyKey,
    InboxVisit,
    ProviderEvent,
    WebhookLog,
)
from .templates import TemplateVersion
from .types import NotificationType

__all__ = [
    "Attachment",
    "Claim",
    "Content",
    "Delivery",
    "DeliveryAttempt",
    "EarlyReceipt",
    "ErrorRecord",
    "Heartbeat",
    "IdempotencyKey",
    "InboxVisit",
    "Notification",
    "NotificationType",
    "ProviderEvent",
    "RecipientCopy",
    "TemplateVersion",
    "WebhookLog",
]
