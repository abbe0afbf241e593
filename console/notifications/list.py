"""The list of notifications, and the base of the other lists of notifications."""

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.urls import URLPattern
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.time import utc_now
from notifications.models import Notification
from notifications.queries import ANY_STATUS
from recipients.masking import can_reveal_addresses, can_see_addresses

from ..texts.failure_codes import explain_cause
from ..texts.labels import cause_label, notification_state
from ..texts.staff_actions import CANCEL, RESEND, RETRY, STAFF_ACTIONS, StaffAction
from ..widgets import columns, names
from ..widgets.actions import permission_check, require_post
from ..widgets.formats import EMPTY
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.links import page_from
from ..widgets.lists import ReadOnlyAdmin, search_text
from ..widgets.reauthentication import require_reauthentication
from ..widgets.search import explain_refusal
from . import filters, page, search
from .actions import run_on_one, selected_action


class NotificationListAdmin(ReadOnlyAdmin):
    """Base of the lists of notifications. Staff change notifications by actions only."""

    has_bulk_operations = True
    search_fields = ("id",)
    search_help_text = "ID, recipient, email, phone, entity, or key"
    actions = ("retry_selected", "resend_selected", "cancel_selected")
    changelist_class = KeysetChangeList
    list_fullwidth = True
    client = columns.text_column("Client", "client_name")
    retry_selected = selected_action(RETRY, "retry")
    resend_selected = selected_action(RESEND, "resend_several")
    cancel_selected = selected_action(CANCEL, "cancel")
    has_retry_permission = permission_check("notifications.retry_notification")
    has_resend_several_permission = permission_check(
        "notifications.resend_notification", "notifications.resend_several"
    )
    has_cancel_permission = permission_check("notifications.cancel_notification")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the notifications without the fields that lists don't show."""
        return super().get_queryset(request).defer("content", "data", "error_history")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order. Search results are ordered by key, which begins with the time."""
        return ("-id",) if search_text(request) else self.ordering

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the notifications that a text identifies; see :mod:`.search`."""
        explain_refusal(request, text)
        ids = search.find_ids(text, user=request.user)
        if len(ids) >= search.MAX_RESULTS:
            messages.info(request, f"Showing the newest {search.MAX_RESULTS:,} matches.")
        return queryset.filter(pk__in=ids)

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the clients and types, and the right to see addresses."""
        clients = names.client_names({row.client_id for row in rows})
        types = names.type_names({row.type for row in rows})
        unmasked = can_see_addresses(request.user)
        for row in rows:
            row.type_name = types[row.type]
            row.client_name = clients[row.client_id]
            row.addresses_unmasked = unmasked

    @admin.display(description="Notification")
    def notification(self, row: Any) -> SafeString:
        """Return the type, the test chip, and the entity."""
        name = row.type_name
        if row.is_test:
            name = format_html("{} {}", name, columns.test_chip())
        if row.deleted_at is not None:
            name = format_html("{} {}", name, columns.deleted_chip())
        return columns.two_lines(name, row.entity_id or row.external_id)

    @admin.display(description="Recipient")
    def recipient_display(self, row: Any) -> SafeString:
        """Return the user ID and an address."""
        recipient = row.recipient
        shown = columns.address(recipient.email or recipient.phone, unmasked=row.addresses_unmasked)
        return columns.two_lines(row.user_id or recipient.name or EMPTY, shown)

    @admin.display(description="Status")
    def state(self, row: Any) -> SafeString:
        """Return the state of the notification as a chip."""
        return columns.chip(*notification_state(row.status, row.delivery, now=utc_now()))

    @admin.display(description="Channels")
    def channels_display(self, row: Any) -> SafeString:
        """Return an icon for each delivery."""
        return columns.channel_icons(row.delivery, now=utc_now())

    @admin.display(description="Cause")
    def failure_cause(self, row: Any) -> SafeString:
        """Return the failure codes and their meanings."""
        # Failed, or expired while an outage held it.
        failed = [d for d in row.delivery if d.status == "failed" or d.failed_at is not None]
        causes = {d.failure_code: d.failure_reason for d in failed}
        return columns.two_lines(
            ", ".join(cause_label(code) for code in causes),
            "; ".join(explain_cause(code, reason).meaning for code, reason in causes.items()),
        )


class SecondaryListAdmin(NotificationListAdmin):
    """A list of a proxy model. Its rows link to the notifications' pages."""

    has_view_permission = permission_check("notifications.view_notification")

    def change_view(self, request: HttpRequest, object_id: str, *_args: Any) -> HttpResponse:
        """Redirect to the notification's page."""
        kept = request.GET.get("_changelist_filters")
        return HttpResponseRedirect(page_from(self.opts.model_name, object_id, kept_filters=kept))


@admin.register(Notification)
class NotificationAdmin(NotificationListAdmin):
    """All notifications, newest first, and the page of one."""

    list_display = (
        "created",
        "notification",
        "recipient_display",
        "state",
        "channels_display",
        "client",
    )
    list_display_links = ("created", "notification")
    list_filter = (
        filters.StatusFilter,
        filters.ChannelFilter,
        filters.DeliveryStatusFilter,
        filters.CauseFilter,
        filters.TypeFilter,
        filters.CategoryFilter,
        filters.PriorityFilter,
        filters.ClientFilter,
        filters.SentByFilter,
        filters.AttemptsFilter,
        filters.DeletedFilter,
        filters.CreatedFilter,
    )
    ordering = ("-created_at", "-id")
    list_match = MappingProxyType({"status": ANY_STATUS})
    created = columns.time_column("Created", "created_at")

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions on one notification."""
        return [
            *(
                self.url(f"<path:object_id>/{a.name}/", self.action_view, a.name, action=a)
                for a in STAFF_ACTIONS
            ),
            self.url("<path:object_id>/reveal/", self.reveal_view, "reveal"),
            self.url("<path:object_id>/refresh/", self.refresh_view, "refresh"),
            self.url("<path:object_id>/email/", self.email_view, "email"),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one notification."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return page.show(self, request, object_id)

    def refresh_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return the parts of a notification's page that change."""
        return page.refresh(self, request, object_id)

    def email_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Return the previewed email of one notification."""
        return page.email(self, request, object_id)

    def reveal_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show one notification with unmasked addresses; POST only."""
        allowed = self.has_view_permission(request) and can_reveal_addresses(request.user)
        if refused := require_post(request, allowed=allowed) or require_reauthentication(request):
            return refused
        return page.show(self, request, object_id, is_revealed=True)

    def action_view(
        self, request: HttpRequest, object_id: str, action: StaffAction
    ) -> HttpResponseBase:
        """Run an action on one notification; POST only."""
        return run_on_one(self, request, object_id, action)
