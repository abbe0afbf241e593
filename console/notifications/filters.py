"""Filters of the lists of notifications."""

from collections.abc import Mapping
from typing import Any

from bson import ObjectId
from django.http import HttpRequest

from access.clients import registry
from access.models import APIClient, StaffUser
from domain.errors import FailureCode
from domain.states import Category, DeliveryStatus, NotificationStatus, Priority
from notifications.models import NotificationType
from notifications.store.search_keys import INACTIVE_KEY, source_key
from notifyproject.db.fields import choices
from providers.labels import PROVIDERS

from ..texts.labels import (
    CHANNELS,
    DELIVERY_LABELS,
    STATUS_LABELS,
    cause_label,
    code_label,
    options_of,
)
from ..widgets.filters import ChoiceFilter, choice_filter, time_filter

N, S = NotificationStatus, DeliveryStatus
NO_PROVIDER = "-"  # Choice for deliveries without a provider, which no account may be called
_UNFINISHED = frozenset({N.CREATED, N.QUEUED, N.PROCESSING, N.RETRYING})
OVERALL_STATUSES: Mapping[DeliveryStatus, frozenset[NotificationStatus]] = {
    S.PENDING: _UNFINISHED,
    S.SENDING: frozenset({N.PROCESSING, N.RETRYING}),
    S.UNKNOWN: frozenset({N.PROCESSING, N.RETRYING}),
    S.SENT: _UNFINISHED | {N.SENT, N.PARTIALLY_DELIVERED},
    S.DELIVERED: _UNFINISHED | {N.SENT, N.DELIVERED, N.PARTIALLY_DELIVERED},
    S.READ: _UNFINISHED | {N.SENT, N.DELIVERED, N.PARTIALLY_DELIVERED},
    S.FAILED: _UNFINISHED | {N.FAILED, N.PARTIALLY_DELIVERED},
    S.EXPIRED: _UNFINISHED | {N.FAILED, N.EXPIRED, N.PARTIALLY_DELIVERED},
}
"""Overall statuses that a notification with a delivery in this status can have.

A filter by delivery status includes them, so that the index on the overall status serves it.
"""


_DELETED: Mapping[str, dict[str, Any]] = {
    "no": {"is_active": True},
    "yes": {"search_keys": INACTIVE_KEY},
}
CHANNEL_OPTIONS = options_of(CHANNELS)
CAUSE_OPTIONS = tuple((code.value, code_label(code)) for code in FailureCode)
_NO_FAILURES = frozenset(
    {
        FailureCode.QUIET_HOURS,
        FailureCode.OVER_LIMIT,
        FailureCode.OVER_DAILY_UNITS,
        FailureCode.IN_DIGEST,
        FailureCode.NOT_NEEDED,
        FailureCode.CANCELLED,
        FailureCode.SUPPRESSED,
        FailureCode.OPTED_OUT,
    }
)
"""Codes with which deliveries wait, or end without a failure."""
FAILURE_OPTIONS = tuple(
    (code.value, cause_label(code)) for code in FailureCode if code not in _NO_FAILURES
)
HAS_FAILED = {"failed_at": {"$ne": None}}
"""Condition on a delivery that failed, or expired while an outage held it."""


def _sent_by(user_id: str) -> dict[str, Any]:
    """Return the MongoDB condition that a member of staff sent it from the console."""
    client_id = registry.find_client(registry.CONSOLE_CLIENT)
    return {"search_keys": source_key(client_id, user_id)} if client_id else {"_id": None}


def any_delivery(**fields: Any) -> dict[str, Any]:
    """Return the MongoDB condition that a single delivery has all these values."""
    return {"delivery": {"$elemMatch": fields}}


def type_options() -> list[tuple[str, str]]:
    """Return the slugs and names of the types."""
    return [(kind.slug, kind.name) for kind in NotificationType.objects.only("slug", "name")]


StatusFilter = choice_filter("status", options_of(STATUS_LABELS))
ChannelFilter = choice_filter(
    "channel",
    CHANNEL_OPTIONS,
    is_unindexed=True,
    condition=lambda value: any_delivery(channel=value),
)
FailedChannelFilter = choice_filter(
    "channel",
    CHANNEL_OPTIONS,
    is_unindexed=True,
    condition=lambda value: any_delivery(channel=value, **HAS_FAILED),
)
TypeFilter = choice_filter("type", type_options)
CategoryFilter = choice_filter("category", choices(Category), is_unindexed=True)
PriorityFilter = choice_filter("priority", choices(Priority), is_unindexed=True)
ClientFilter = choice_filter(
    "client",
    lambda: [(str(client.pk), client.name) for client in APIClient.objects.only("name")],
    condition=lambda value: {"client_id": ObjectId(value)},
)
SentByFilter = choice_filter(
    "sent by",
    lambda: [(str(user.pk), user.get_username()) for user in StaffUser.objects.only("username")],
    parameter="sent_by",
    condition=_sent_by,
)
AttemptsFilter = choice_filter(
    "attempts",
    (("0", "None"), ("1", "1"), ("2", "2"), ("3", "3"), ("more", "4+")),
    is_unindexed=True,
    condition=lambda value: any_delivery(
        attempt_count={"$gt": 3} if value == "more" else int(value), **HAS_FAILED
    ),
)
DeletedFilter = choice_filter(
    "deleted",
    (("no", "Not deleted"), ("yes", "Deleted or erased")),
    condition=lambda value: _DELETED[value],
)
CreatedFilter = time_filter("created", "created_at")
FailedFilter = time_filter("failed", "failed_at")


class DeliveryStatusFilter(ChoiceFilter):
    """Filter by the delivery status of the chosen channel or, without a choice, of any channel."""

    title = "delivery status"
    parameter_name = "delivery_status"
    options = options_of(DELIVERY_LABELS)

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.channel = request.GET.get("channel", "")
        super().__init__(request, *args)
        # These occur with any overall status, so no index helps.
        self.is_unindexed = self.value() in (S.CANCELLED, S.SUPPRESSED)

    def condition(self, value: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        channel = {"channel": self.channel} if self.channel else {}
        condition = any_delivery(status=value, **channel)
        if overall := OVERALL_STATUSES.get(DeliveryStatus(value)):
            condition["status"] = {"$in": sorted(status.value for status in overall)}
        return condition


class CauseFilter(ChoiceFilter):
    """Filter by the failure code of the chosen channel or, without a choice, of any channel."""

    title = "cause"
    parameter_name = "code"
    options = FAILURE_OPTIONS
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel")
        super().__init__(request, *args)

    def condition(self, value: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        return any_delivery(**self.other_conditions, failure_code=value)


class ProviderFilter(ChoiceFilter):
    """Filter by the provider of a delivery that failed with the chosen channel and cause."""

    title = "provider"
    parameter_name = "provider"
    options = (*PROVIDERS.items(), (NO_PROVIDER, "None"))
    is_unindexed = True

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        self.other_conditions = _failed_delivery(request, "channel", "code")
        super().__init__(request, *args)

    def condition(self, value: str) -> dict[str, Any]:
        """Return the MongoDB condition for a choice."""
        provider = None if value == NO_PROVIDER else value
        return any_delivery(**self.other_conditions, provider=provider)


def _failed_delivery(request: HttpRequest, *parameters: str) -> dict[str, Any]:
    paths = {"channel": "channel", "code": "failure_code"}
    chosen = {paths[name]: value for name in parameters if (value := request.GET.get(name))}
    return {**HAS_FAILED, **chosen}
