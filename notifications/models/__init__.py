"""Documents of the notifications app, as Django models over MongoDB collections."""

from .broadcasts import Broadcast
from .bulk import BulkOperation, OperationResult
from .catalog import Design, NotificationType, TemplateVersion
from .files import AudienceFile, AudienceFilePart
from .notification import (
    Attachment,
    Content,
    Delivery,
    ErrorRecord,
    Notification,
    RecipientCopy,
)
from .policies import (
    CountryUnits,
    DailyUnits,
    Digest,
    Limit,
    LimitUses,
    ProviderState,
    RetentionPolicy,
)
from .records import (
    DeliveryAttempt,
    EarlyReceipt,
    Heartbeat,
    IdempotencyKey,
    InboxVisit,
    LoggedRequest,
    ProviderEvent,
    SentTestMessage,
    TestClock,
    WebhookLog,
)

__all__ = ["Broadcast"]
__all__ += ["BulkOperation", "OperationResult"]
__all__ += ["Design", "NotificationType", "TemplateVersion"]
__all__ += ["NotificationType", "TemplateVersion"]
__all__ += ["AudienceFile", "AudienceFilePart"]
__all__ += ["Attachment", "Content", "Delivery", "ErrorRecord", "Notification"]
__all__ += ["RecipientCopy"]
__all__ += [
    "CountryUnits",
    "DailyUnits",
    "Digest",
    "Limit",
    "LimitUses",
    "ProviderState",
    "RetentionPolicy",
]
__all__ += ["DeliveryAttempt", "EarlyReceipt", "Heartbeat", "IdempotencyKey", "InboxVisit"]
__all__ += ["LoggedRequest", "ProviderEvent", "SentTestMessage", "TestClock"]
__all__ += ["WebhookLog"]
