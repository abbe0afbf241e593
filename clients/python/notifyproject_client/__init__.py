"""A client of the notification service.

``Notifier`` sends; whatever else the API does is in ``notifyproject_client.rest``, generated from
its description.
"""

from .failures import NotificationError, NotificationRefused, ServiceUnavailable
from .notifier import Notifier
from .pace import Pace
from .rest.models.content_request import ContentRequest
from .rest.models.local_time import LocalTime
from .rest.models.notification_request import NotificationRequest
from .rest.models.notification_view import NotificationView
from .rest.models.problem_view import ProblemView
from .rest.models.recipient_request import RecipientRequest

__all__ = [
    "ContentRequest",
    "LocalTime",
    "NotificationError",
    "NotificationRefused",
    "NotificationRequest",
    "NotificationView",
    "Notifier",
    "Pace",
    "ProblemView",
    "RecipientRequest",
    "ServiceUnavailable",
]
