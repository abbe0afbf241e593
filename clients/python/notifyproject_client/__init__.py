"""The Python client of the notification service.

``Notifier`` and ``AsyncNotifier`` send notifications, ``verify_callback`` checks what the service
sends back, and ``notifyproject_client.rest`` has functions for all operations of the API, generated
from the OpenAPI document.
"""

from .callbacks import verify_callback
from .errors import (
    InvalidCallbackError,
    NotificationError,
    NotificationRejectedError,
    ServiceUnavailableError,
)
from .notifier import AsyncNotifier, Notifier
from .requests import NotificationFields
from .rest.models.accepted_notification_view import AcceptedNotificationView
from .rest.models.content_request import ContentRequest
from .rest.models.local_time import LocalTime
from .rest.models.notification_recipient_request import NotificationRecipientRequest
from .rest.models.notification_request import NotificationRequest
from .rest.models.notification_view import NotificationView
from .rest.models.problem_view import ProblemView
from .retry import RetryPolicy

__all__ = [
    "AcceptedNotificationView",
    "AsyncNotifier",
    "ContentRequest",
    "InvalidCallbackError",
    "LocalTime",
    "NotificationError",
    "NotificationFields",
    "NotificationRecipientRequest",
    "NotificationRejectedError",
    "NotificationRequest",
    "NotificationView",
    "Notifier",
    "ProblemView",
    "RetryPolicy",
    "ServiceUnavailableError",
    "verify_callback",
]
