"""Attempts: every try to hand a message to a provider, to read only."""

from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from notifications.models import DeliveryAttempt
from notifyproject.db.collections import collection
from recipients.masking import can_see_addresses, mask_text

from ..widgets import columns
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.labels import CHANNELS, code_label
from ..widgets.lists import BoundedChangeList, ReadOnlyAdmin, search_text
from . import filters
from .actions import DETAIL
from .summary import provider_name

ATTEMPTS_CAP = 500
"""The attempts of one notification that a search lists."""
_STATUS_COLORS = {
    "started": "info",
    "sent": "success",
    "failed": "danger",
    "unknown": "warning",
    "expired": "calm",
}


@admin.register(DeliveryAttempt)
class DeliveryAttemptAdmin(ReadOnlyAdmin):
    """Every try to hand a message to a provider, newest first."""

    list_display = (
        "started",
        "channel_display",
        "result",
        "provider_display",
        "duration",
        "error",
        "notification",
    )
    list_display_links = None
    list_filter = (
        filters.AttemptChannelFilter,
        filters.AttemptStatusFilter,
        filters.AttemptErrorFilter,
        filters.AttemptedFilter,
    )
    search_fields = ("id",)
    search_help_text = "Id of a notification or of an attempt"
    ordering = ("-attempted_at", "-id")
    list_fullwidth = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look; one attempt is looked at on its notification's page."""
        return obj is None and super().has_view_permission(request)

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: one whose pages are not counted."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return attempts without what lists do not show."""
        return super().get_queryset(request).defer("platform_response")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order: what a search found is read by key."""
        return ("-id",) if search_text(request) else self.ordering

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return one notification's attempts, or one attempt."""
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
        """Mask the rows' messages for those who may not see addresses."""
        if not can_see_addresses(request.user):
            for row in rows:
                row.error_message = mask_text(row.error_message or "")

    @admin.display(description="Began (UTC)")
    def started(self, row: Any) -> SafeString | str:
        """When it began."""
        return columns.timestamp(row.attempted_at)

    @admin.display(description="Channel")
    def channel_display(self, row: Any) -> str:
        """Its channel, and which try it was."""
        return f"{CHANNELS.get(row.channel, row.channel)} · try {row.attempt_number}"

    @admin.display(description="Result")
    def result(self, row: Any) -> SafeString:
        """What became of it."""
        return columns.chip(code_label(row.status), _STATUS_COLORS.get(row.status, "calm"))

    @admin.display(description="Provider")
    def provider_display(self, row: Any) -> str:
        """Who was to send it."""
        return provider_name(row.provider) or columns.EMPTY

    @admin.display(description="Took")
    def duration(self, row: Any) -> str:
        """How long the provider took."""
        return f"{row.duration_ms:,} ms" if row.duration_ms is not None else columns.EMPTY

    @admin.display(description="Error")
    def error(self, row: Any) -> SafeString | str:
        """What went wrong."""
        if not row.error_code:
            return columns.EMPTY
        return columns.two_lines(code_label(row.error_code), row.error_message)

    @admin.display(description="Notification")
    def notification(self, row: Any) -> SafeString:
        """The notification it belongs to."""
        url = reverse(DETAIL, args=[row.notification_id])
        return format_html('<a class="text-link" href="{}">{}</a>', url, row.notification_id)
