"""The documents of the heart, as Django models over MongoDB collections."""

from .broadcasts import Broadcast
from .notification import (
    Attachment,
    Claim,
    Content,
    Delivery,
    ErrorRecord,
    Notification,
    RecipientCopy,
)
from .operations import BulkOperation, OperationResult
from .provider_states import ProviderState
from .records import (
    DeliveryAttempt,
    EarlyReceipt,
    Heartbeat,
    IdempotencyKey,
    InboxVisit,
    ProviderEvent,
    WebhookLog,
)
from .retention import RetentionPolicy
from .templates import TemplateVersion
from .types import NotificationType

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
