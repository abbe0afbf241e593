"""The list of broadcasts, and the page about one."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from access.models import APIClient
from domain.states import BroadcastStatus
from notifications.models import Broadcast
from notifyproject.db.fields import choices

from ..notifications import filters
from ..widgets import columns, names
from ..widgets.filters import ChoiceFilter
from ..widgets.labels import code_label
from ..widgets.lists import ReadOnlyAdmin
from . import actions, page
from .actions import BroadcastAction
from .labels import COLORS, audience_label


class BroadcastStatusFilter(ChoiceFilter):
    """By where it stands."""

    title = "status"
    parameter_name = "status"
    options = tuple(choices(BroadcastStatus))
    is_unindexed = True


@admin.register(Broadcast)
class BroadcastAdmin(ReadOnlyAdmin):
    """Every message to many people, newest first, and how far it has come."""

    list_display = (
        "requested",
        "broadcast",
        "audience_display",
        "status_display",
        "progress",
        "client",
    )
    list_display_links = ("requested", "broadcast")
    empty_title = "No broadcast yet"
    empty_words = "An app begins one by the API: one request, for an audience of any size."
    list_filter = (BroadcastStatusFilter, filters.ClientFilter, filters.CreatedFilter)
    ordering = ("-created_at", "-id")
    list_fullwidth = True

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return broadcasts without what lists do not show."""
        return super().get_queryset(request).defer("user_ids", "request")

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Give each row the names of its type and its client, in one read each."""
        types = names.type_names({row.type for row in rows})
        clients = APIClient.objects.only("name").in_bulk({row.client_id for row in rows})
        for row in rows:
            client = clients.get(row.client_id)
            row.type_name = types[row.type]
            row.client_name = client.name if client else str(row.client_id)

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those that hold up or call off one broadcast."""
        own = [
            path(
                f"<path:object_id>/{action.name}/",
                self.admin_site.admin_view(self.action_view),
                {"action": action},
                name=f"notifications_broadcast_{action.name}",
            )
            for action in actions.BROADCAST_ACTIONS
        ]
        return own + super().get_urls()

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one broadcast."""
        return page.show(self, request, object_id)

    def action_view(
        self, request: HttpRequest, object_id: str, action: BroadcastAction
    ) -> HttpResponse:
        """Do something to one broadcast; POST only."""
        return actions.run_action(self, request, object_id, action)

    @admin.display(description="Asked for (UTC)")
    def requested(self, row: Any) -> SafeString | str:
        """When it was asked for."""
        return columns.timestamp(row.created_at)

    @admin.display(description="Broadcast")
    def broadcast(self, row: Any) -> SafeString | str:
        """Its type, and whether it is a test."""
        if row.is_test:
            return format_html("{} {}", row.type_name, columns.test_chip())
        return str(row.type_name)

    @admin.display(description="Audience")
    def audience_display(self, row: Any) -> str:
        """Whom it is for."""
        return audience_label(row.audience, row.topic)

    @admin.display(description="Status")
    def status_display(self, row: Any) -> SafeString:
        """Where it stands."""
        status = BroadcastStatus(row.status)
        label = "Waits for room" if row.is_waiting else code_label(status)
        return columns.chip(label, COLORS[status])

    @admin.display(description="Accepted")
    def progress(self, row: Any) -> str:
        """How many have a notification, of about how many."""
        total = f" of about {row.audience_size:,}" if row.audience_size is not None else ""
        return f"{row.accepted:,}{total}"

    @admin.display(description="Client")
    def client(self, row: Any) -> str:
        """The app that asked."""
        return str(row.client_name)
