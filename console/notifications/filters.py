"""Filters of the lists of notifications."""

from collections.abc import Mapping, Sequence
from typing import Any

from bson import ObjectId
from django.http import HttpRequest

from access.models import APIClient
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus, NotificationStatus, Priority
from notifications.models import NotificationType
from notifyproject.db.fields import choices

from ..widgets.filters import ChoiceFilter, choice_filter, time_filter
from ..widgets.labels import CHANNELS, DELIVERY_LABELS, PROVIDERS, STATUS_LABELS, code_label

S = DeliveryStatus
NO_PROVIDER = "none"
"""Choice for deliveries without a provider."""
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
"""Overall statuses that a notification can have if a delivery has this status.

With them, the index on the overall status serves a filter on the deliveries' status.
"""


StatusFilter = choice_filter(
    "status", ((status.value, words) for status, (words, _) in STATUS_LABELS.items())
)


class ChannelFilter(ChoiceFilter):
    """Filter by channel."""

    title = "channel"
    parameter_name = "channel"
    options = tuple((channel.value, words) for channel, words in CHANNELS.items())
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {"delivery": {"$elemMatch": {"channel": word}}}


class DeliveryStatusFilter(ChoiceFilter):
    """Filter by the status of a delivery: of the chosen channel, or of any."""

    title = "delivery status"
    parameter_name = "delivery_status"
    options = tuple((status.value, words) for status, (words, _) in DELIVERY_LABELS.items())

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.channel = request.GET.get(str(ChannelFilter.parameter_name), "")
        super().__init__(request, *args)
        # Any overall status is possible with these, so no index helps.
        self.is_unindexed = self.value() in (S.CANCELLED, S.SUPPRESSED)

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        wanted = {"status": word} | ({"channel": self.channel} if self.channel else {})
        condition: dict[str, Any] = {"delivery": {"$elemMatch": wanted}}
        if overall := OVERALL_STATUSES.get(DeliveryStatus(word)):
            condition["status"] = {"$in": sorted(status.value for status in overall)}
        return condition


class TypeFilter(ChoiceFilter):
    """Filter by type."""

    title = "type"
    parameter_name = "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the registered types, also inactive ones."""
        return [(kind.slug, kind.name) for kind in NotificationType.objects.only("slug", "name")]


CategoryFilter = choice_filter("category", choices(Category), is_unindexed=True)


class PriorityFilter(ChoiceFilter):
    """Filter by priority."""

    title = "priority"
    parameter_name = "priority"
    options = tuple(choices(Priority))
    is_unindexed = True


class ClientFilter(ChoiceFilter):
    """Filter by API client."""

    title = "client"
    parameter_name = "client"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the clients."""
        return [(str(client.pk), client.name) for client in APIClient.objects.only("name")]

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {"client_id": ObjectId(word)}


CreatedFilter = time_filter("created", "created_at")
FailedFilter = time_filter("failed", "failed_at")


class FailedChannelFilter(ChannelFilter):
    """Filter by the failed channel."""

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {"delivery": {"$elemMatch": {"channel": word, "status": S.FAILED.value}}}


class CauseFilter(ChoiceFilter):
    """Filter by failure code: of the chosen channel, or of any."""

    title = "cause"
    parameter_name = "code"
    options = tuple((code.value, code_label(code)) for code in FailureCode)
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel")
        super().__init__(request, *args)

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return {"delivery": {"$elemMatch": {**self.other_conditions, "failure_code": word}}}


class ProviderFilter(ChoiceFilter):
    """Filter by the provider of a failed delivery: of the chosen channel and cause, or of any."""

    title = "provider"
    parameter_name = "provider"
    options = (*PROVIDERS.items(), (NO_PROVIDER, "None"))
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel", "code")
        super().__init__(request, *args)

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        provider = None if word == NO_PROVIDER else word
        return {"delivery": {"$elemMatch": {**self.other_conditions, "provider": provider}}}


class AttemptsFilter(ChoiceFilter):
    """Filter by the number of attempts of a failed delivery."""

    title = "attempts"
    parameter_name = "attempts"
    options = (("0", "None"), ("1", "1"), ("2", "2"), ("3", "3"), ("more", "4+"))
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        count: Any = {"$gt": 3} if word == "more" else int(word)
        return {"delivery": {"$elemMatch": {"status": S.FAILED.value, "attempt_count": count}}}


def _failed_delivery(request: HttpRequest, *parameters: str) -> dict[str, Any]:
    """Return the condition on a failed delivery, narrowed by these parameters."""
    paths = {"channel": "channel", "code": "failure_code"}
    chosen = {paths[name]: word for name in parameters if (word := request.GET.get(name))}
    return {"status": S.FAILED.value, **chosen}
