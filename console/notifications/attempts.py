"""The list of attempts."""

from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from domain.states import AttemptStatus
from notifications.models import DeliveryAttempt
from notifyproject.db.collections import collection
from recipients.masking import can_see_addresses, mask_text

from ..widgets.columns import chip, notification_column, time_column, two_lines
from ..widgets.filters import ChoiceFilter, time_filter
from ..widgets.formats import EMPTY, latency
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.labels import ATTEMPT_LABELS, CHANNELS, attempt_state, code_label, provider_label
from ..widgets.lists import ListOnlyAdmin, search_text
from .filters import CauseFilter, ChannelFilter

ATTEMPTS_CAP = 500
"""Maximum attempts of one notification in a search."""


class AttemptStatusFilter(ChoiceFilter):
    """Filter by status."""

    title = "status"
    parameter_name = "status"
    options = tuple((status.value, ATTEMPT_LABELS[status][0]) for status in AttemptStatus)
    is_unindexed = True


class AttemptChannelFilter(ChoiceFilter):
    """Filter by channel."""

    title = "channel"
    parameter_name = "channel"
    options = ChannelFilter.options
    is_unindexed = True


class AttemptErrorFilter(ChoiceFilter):
    """Filter by error code."""

    title = "error"
    parameter_name = "error_code"
    options = CauseFilter.options
    is_unindexed = True


@admin.register(DeliveryAttempt)
class DeliveryAttemptAdmin(ListOnlyAdmin):
    """The attempts to send a message by a provider, newest first."""

    list_display = (
        "started",
        "channel_display",
        "result",
        "provider_display",
        "duration",
        "error",
        "notification",
    )
    list_filter = (
        AttemptChannelFilter,
        AttemptStatusFilter,
        AttemptErrorFilter,
        time_filter("attempted", "attempted_at"),
    )
    changelist_class = KeysetChangeList
    search_fields = ("id",)
    search_help_text = "Notification or attempt ID"
    ordering = ("-attempted_at", "-id")
    list_fullwidth = True
    started = time_column("Started", "attempted_at")
    notification = notification_column()

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the attempts without their responses."""
        return super().get_queryset(request).defer("platform_response")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order; search results are read by key."""
        return ("-id",) if search_text(request) else self.ordering

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the attempts of one notification, or one attempt."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if not ObjectId.is_valid(text):
            return queryset.filter(pk=text), False
        rows = collection("delivery_attempts").find(
            {"notification_id": ObjectId(text)}, {"_id": 1}, limit=ATTEMPTS_CAP
        )
        return queryset.filter(pk__in=[row["_id"] for row in rows]), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Mask addresses in the messages unless the user may see them."""
        if not can_see_addresses(request.user):
            for row in rows:
                row.error_message = mask_text(row.error_message or "")

    @admin.display(description="Channel")
    def channel_display(self, row: Any) -> str:
        """Return the channel and the number of the attempt."""
        return f"{CHANNELS.get(row.channel, row.channel)} · attempt {row.attempt_number}"

    @admin.display(description="Status")
    def result(self, row: Any) -> SafeString:
        """Return the status as a chip."""
        return chip(*attempt_state(row.status))

    @admin.display(description="Provider")
    def provider_display(self, row: Any) -> str:
        """Return the label of the provider."""
        return provider_label(row.provider) or EMPTY

    @admin.display(description="Duration")
    def duration(self, row: Any) -> str:
        """Return the duration of the provider's call."""
        return latency(None if row.duration_ms is None else row.duration_ms / 1000)

    @admin.display(description="Error")
    def error(self, row: Any) -> SafeString | str:
        """Return the error code and message."""
        if not row.error_code:
            return EMPTY
        return two_lines(code_label(row.error_code), row.error_message)
