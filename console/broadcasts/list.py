"""The list of broadcasts."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.states import BroadcastStatus
from notifications.models import Broadcast

from ..notifications.filters import ClientFilter, CreatedFilter
from ..texts.labels import BROADCAST_LABELS, broadcast_state
from ..widgets import columns, names
from ..widgets.filters import choice_filter
from ..widgets.lists import ReadOnlyAdmin
from . import actions, approval, page
from .actions import BroadcastAction
from .approval import Decision
from .labels import audience_label

BroadcastStatusFilter = choice_filter(
    "status",
    ((status.value, BROADCAST_LABELS[status][0]) for status in BroadcastStatus),
    is_unindexed=True,
)


@admin.register(Broadcast)
class BroadcastAdmin(ReadOnlyAdmin):
    """The broadcasts, newest first, with their progress."""

    list_display = (
        "created",
        "broadcast",
        "audience_display",
        "status_display",
        "progress",
        "client",
    )
    list_display_links = ("created", "broadcast")
    empty_title = "No broadcasts"
    list_before_template = "console/broadcasts/list_before.html"
    empty_text = (
        "A client creates one by the API: one request for an audience of any size. Staff send to "
        "the rows of a file."
    )
    list_filter = (BroadcastStatusFilter, ClientFilter, CreatedFilter)
    ordering = ("-created_at", "-id")
    list_fullwidth = True
    created = columns.time_column("Created", "created_at")
    client = columns.text_column("Client", "client_name")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the broadcasts without the fields that the list doesn't show."""
        return super().get_queryset(request).defer("user_ids", "request")

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the types and the clients."""
        types = names.type_names({row.type for row in rows})
        clients = names.client_names({row.client_id for row in rows})
        for row in rows:
            row.type_name, row.client_name = types[row.type], clients[row.client_id]

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions."""
        return [
            self.url(f"<path:object_id>/{a.name}/", self.action_view, a.name, action=a)
            for a in actions.BROADCAST_ACTIONS
        ] + [
            *(
                self.url(f"<path:object_id>/{d.name}/", self.decision_view, d.name, decision=d)
                for d in approval.DECISIONS
            ),
            self.url("<path:object_id>/email/", self.email_view, "email"),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one broadcast."""
        return page.show(self, request, object_id)

    def action_view(
        self, request: HttpRequest, object_id: str, action: BroadcastAction
    ) -> HttpResponse:
        """Run an action on one broadcast; POST only."""
        return actions.run_action(self, request, object_id, action)

    def decision_view(
        self, request: HttpRequest, object_id: str, decision: Decision
    ) -> HttpResponse:
        """Approve, reject, or override one broadcast; POST only."""
        return approval.decide(self, request, object_id, decision)

    def email_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Return the email that awaits an approval, for a frame of the page."""
        return approval.email(self, request, object_id)

    @admin.display(description="Broadcast")
    def broadcast(self, row: Any) -> SafeString | str:
        """Return the name or the type, and the test chip."""
        name = str(row.name or row.type_name)
        return format_html("{} {}", name, columns.test_chip()) if row.is_test else name

    @admin.display(description="Audience")
    def audience_display(self, row: Any) -> str:
        """Return the label of the audience."""
        return audience_label(row.audience, row.topic)

    @admin.display(description="Status")
    def status_display(self, row: Any) -> SafeString:
        """Return the state as a chip."""
        return columns.chip(*broadcast_state(row.status, is_throttled=row.is_waiting))

    @admin.display(description="Progress")
    def progress(self, row: Any) -> str:
        """Return the number of notifications and the estimated size of the audience."""
        total = f" / ~{row.audience_size:,}" if row.audience_size is not None else ""
        return f"{row.accepted:,}{total}"
