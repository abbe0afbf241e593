"""Documents of notifications, as Django models over MongoDB collections."""

from .broadcasts import Broadcast
from .bulk import BulkOperation, OperationResult
from .catalog import NotificationType, TemplateVersion
from .notification import (
    Attachment,
    Claim,
    Content,
    Delivery,
    ErrorRecord,
    Notification,
    RecipientCopy,
)
from .policies import ProviderState, RetentionPolicy
from .records import (
    DeliveryAttempt,
    EarlyReceipt,
    Heartbeat,
    IdempotencyKey,
    InboxVisit,
    ProviderEvent,
    WebhookLog,
)

__all__ = [
    "Attachment",
    "Broadcast",
    "BulkOperation",
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
    "OperationResult",
    "ProviderEvent",
    "ProviderState",
    "RecipientCopy",
    "RetentionPolicy",
    "TemplateVersion",
    "WebhookLog",
]
