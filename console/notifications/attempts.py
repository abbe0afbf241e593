"""The list of attempts."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from domain.states import AttemptStatus
from notifications.models import DeliveryAttempt
from providers.labels import PROVIDERS
from recipients.masking import can_see_addresses, mask_text

from ..texts.labels import ATTEMPT_LABELS, CHANNELS, code_label
from ..widgets.columns import chip, label_column, notification_column, time_column, two_lines
from ..widgets.filters import choice_filter, time_filter
from ..widgets.formats import EMPTY, latency
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.lists import ListOnlyAdmin, find_by_notification, search_text
from .filters import CAUSE_OPTIONS, CHANNEL_OPTIONS

ATTEMPTS_CAP = 500  # Maximum attempts of one notification in a search


AttemptStatusFilter = choice_filter(
    "status",
    ((status.value, ATTEMPT_LABELS[status][0]) for status in AttemptStatus),
    is_unindexed=True,
)
AttemptChannelFilter = choice_filter("channel", CHANNEL_OPTIONS, is_unindexed=True)
AttemptErrorFilter = choice_filter(
    "error", CAUSE_OPTIONS, parameter="error_code", is_unindexed=True
)


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
    provider_display = label_column("Provider", "provider", PROVIDERS)

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the attempts without their responses."""
        return super().get_queryset(request).defer("platform_response")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order. Search results are ordered by key."""
        return ("-id",) if search_text(request) else self.ordering

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the attempt with this ID, or the attempts of the notification with this ID."""
        return find_by_notification(queryset, text, cap=ATTEMPTS_CAP)

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
        return chip(*ATTEMPT_LABELS[AttemptStatus(row.status)])

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
