"""How the lists of notifications can be narrowed."""

from collections.abc import Mapping, Sequence
from typing import Any

from bson import ObjectId
from django.http import HttpRequest

from access.models import APIClient
from domain.errors import FailureCode
from domain.states import AttemptStatus, Category, DeliveryStatus, NotificationStatus, Priority
from notifications.models import NotificationType
from notifyproject.db.fields import choices

from ..widgets.filters import ChoiceFilter, TimeFilter
from ..widgets.labels import CHANNELS, DELIVERY_LABELS, STATUS_LABELS, code_label
from .summary import PROVIDER_LABELS

S = DeliveryStatus
NO_PROVIDER = "none"
"""Stands for the provider of what never came to one."""
_UNFINISHED = frozenset(
    {
        NotificationStatus.CREATED,
        NotificationStatus.QUEUED,
        NotificationStatus.PROCESSING,
        NotificationStatus.RETRYING,
    }
)
OVERALL_STATUSES: Mapping[DeliveryStatus, frozenset[NotificationStatus]] = {
    S.PENDING: _UNFINISHED,
    S.SENDING: frozenset({NotificationStatus.PROCESSING, NotificationStatus.RETRYING}),
    S.UNKNOWN: frozenset({NotificationStatus.PROCESSING, NotificationStatus.RETRYING}),
    S.SENT: _UNFINISHED | {NotificationStatus.SENT, NotificationStatus.PARTIALLY_DELIVERED},
    S.DELIVERED: _UNFINISHED
    | {
        NotificationStatus.SENT,
        NotificationStatus.DELIVERED,
        NotificationStatus.PARTIALLY_DELIVERED,
    },
    S.READ: _UNFINISHED
    | {
        NotificationStatus.SENT,
        NotificationStatus.DELIVERED,
        NotificationStatus.PARTIALLY_DELIVERED,
    },
    S.FAILED: _UNFINISHED | {NotificationStatus.FAILED, NotificationStatus.PARTIALLY_DELIVERED},
    S.EXPIRED: _UNFINISHED
    | {
        NotificationStatus.FAILED,
        NotificationStatus.EXPIRED,
        NotificationStatus.PARTIALLY_DELIVERED,
    },
}
"""The overall statuses a notification can have when one of its deliveries has this one.

They let the index on the overall status serve a filter on the deliveries'.
"""


class StatusFilter(ChoiceFilter):
    """By overall status."""

    title = "status"
    parameter_name = "status"
    options = tuple((status.value, words) for status, words in STATUS_LABELS.items())


class ChannelFilter(ChoiceFilter):
    """By channel."""

    title = "channel"
    parameter_name = "channel"
    options = tuple((channel.value, words) for channel, words in CHANNELS.items())
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return that one of the deliveries is on the channel."""
        return {"delivery": {"$elemMatch": {"channel": word}}}


class DeliveryStatusFilter(ChoiceFilter):
    """By the status of a delivery: of the chosen channel, or of any."""

    title = "channel's status"
    parameter_name = "delivery_status"
    options = tuple((status.value, words) for status, words in DELIVERY_LABELS.items())

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.channel = request.GET.get(str(ChannelFilter.parameter_name), "")
        super().__init__(request, *args)
        # Any overall status goes with these: no index helps.
        self.is_unindexed = self.value() in (S.CANCELLED, S.SUPPRESSED)

    def condition(self, word: str) -> dict[str, Any]:
        """Return that one delivery has the status, and on the chosen channel."""
        wanted = {"status": word} | ({"channel": self.channel} if self.channel else {})
        condition: dict[str, Any] = {"delivery": {"$elemMatch": wanted}}
        if overall := OVERALL_STATUSES.get(DeliveryStatus(word)):
            condition["status"] = {"$in": sorted(status.value for status in overall)}
        return condition


class TypeFilter(ChoiceFilter):
    """By registered type."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the registered types, the inactive ones too."""
        return [(kind.slug, kind.name) for kind in NotificationType.objects.only("slug", "name")]


class CategoryFilter(ChoiceFilter):
    """By category."""

    title = "category"
    parameter_name = "category"
    options = tuple(choices(Category))
    is_unindexed = True


class PriorityFilter(ChoiceFilter):
    """By priority."""

    title = "priority"
    parameter_name = "priority"
    options = tuple(choices(Priority))
    is_unindexed = True


class ClientFilter(ChoiceFilter):
    """By the API client that asked."""

    title = "client"
    parameter_name = "client"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the clients."""
        return [(str(client.pk), client.name) for client in APIClient.objects.only("name")]

    def condition(self, word: str) -> dict[str, Any]:
        """Return that this client asked."""
        return {"client_id": ObjectId(word)}


class CreatedFilter(TimeFilter):
    """By when it was accepted."""

    title = "created"
    parameter_name = "created"
    path = "created_at"


class FailedFilter(TimeFilter):
    """By when it failed, on the channel that failed last."""

    title = "failed"
    parameter_name = "failed"
    path = "failed_at"


class FailedChannelFilter(ChannelFilter):
    """By the channel that failed."""

    def condition(self, word: str) -> dict[str, Any]:
        """Return that the delivery on the channel failed."""
        return {"delivery": {"$elemMatch": {"channel": word, "status": S.FAILED.value}}}


class CauseFilter(ChoiceFilter):
    """By the cause of the failure: of the chosen channel, or of any."""

    title = "cause"
    parameter_name = "code"
    options = tuple((code.value, code_label(code)) for code in FailureCode)
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel")
        super().__init__(request, *args)

    def condition(self, word: str) -> dict[str, Any]:
        """Return that a delivery failed for this cause, and on the chosen channel."""
        return {"delivery": {"$elemMatch": {**self.other_conditions, "failure_code": word}}}


class ProviderFilter(ChoiceFilter):
    """By who was to send what failed: of the chosen channel and cause, or of any."""

    title = "provider"
    parameter_name = "provider"
    options = (
        *((name, label) for name, label in PROVIDER_LABELS.items()),
        (NO_PROVIDER, "Never came to one"),
    )
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel", "code")
        super().__init__(request, *args)

    def condition(self, word: str) -> dict[str, Any]:
        """Return that a delivery failed at this provider, on the channel and for the cause."""
        provider = None if word == NO_PROVIDER else word
        return {"delivery": {"$elemMatch": {**self.other_conditions, "provider": provider}}}


class AttemptsFilter(ChoiceFilter):
    """By how often a channel that failed was tried."""

    title = "attempts"
    parameter_name = "attempts"
    options = (("0", "None"), ("1", "One"), ("2", "Two"), ("3", "Three"), ("more", "More"))
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return that a delivery failed after so many attempts."""
        count: Any = {"$gt": 3} if word == "more" else int(word)
        return {"delivery": {"$elemMatch": {"status": S.FAILED.value, "attempt_count": count}}}


def _failed_delivery(request: HttpRequest, *parameters: str) -> dict[str, Any]:
    """Return what holds for a delivery that failed, as far as these parameters narrow it."""
    paths = {"channel": "channel", "code": "failure_code"}
    chosen = {paths[name]: word for name in parameters if (word := request.GET.get(name))}
    return {"status": S.FAILED.value, **chosen}


class AttemptStatusFilter(ChoiceFilter):
    """By what became of the attempt."""

    title = "result"
    parameter_name = "status"
    options = tuple(choices(AttemptStatus))
    is_unindexed = True


class AttemptChannelFilter(ChoiceFilter):
    """By the attempt's channel."""

    title = "channel"
    parameter_name = "channel"
    options = ChannelFilter.options
    is_unindexed = True


class AttemptErrorFilter(ChoiceFilter):
    """By the attempt's error."""

    title = "error"
    parameter_name = "error_code"
    options = CauseFilter.options
    is_unindexed = True


class AttemptedFilter(TimeFilter):
    """By when the attempt began."""

    title = "attempted"
    parameter_name = "attempted"
    path = "attempted_at"


class ReceivedFilter(TimeFilter):
    """By when the call came in."""

    title = "received"
    parameter_name = "received"
    path = "received_at"
