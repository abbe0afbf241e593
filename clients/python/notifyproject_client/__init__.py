"""The Python client of the notification service.

``Notifier`` sends notifications. ``notifyproject_client.rest`` has functions for all operations of
the API, generated from the OpenAPI document.
"""

from .errors import NotificationError, NotificationRejectedError, ServiceUnavailableError
from .notifier import Notifier
from .rest.models.content_request import ContentRequest
from .rest.models.local_time import LocalTime
from .rest.models.notification_recipient_request import NotificationRecipientRequest
from .rest.models.notification_request import NotificationRequest
from .rest.models.notification_view import NotificationView
from .rest.models.problem_view import ProblemView
from .retry import RetryPolicy

__all__ = [
    "ContentRequest",
    "LocalTime",
    "NotificationError",
    "NotificationRecipientRequest",
    "NotificationRejectedError",
    "NotificationRequest",
    "NotificationView",
    "Notifier",
    "ProblemView",
    "RetryPolicy",
    "ServiceUnavailableError",
]
