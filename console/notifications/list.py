"""The list of all notifications, and what every list of notifications shares."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.safestring import SafeString

from access.models import APIClient
from notifications.models import Notification
from recipients.masking import can_see_addresses

from ..widgets import columns, names
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.labels import code_label, explain
from ..widgets.lists import BoundedChangeList, ReadOnlyAdmin, search_text
from . import actions as notifications_actions
from . import filters, search
from .page import detail_page, revealed_page


class NotificationListAdmin(ReadOnlyAdmin):
    """A list of notifications. They are changed by operations, never by a form."""

    has_bulk_operations = True
    """All that match its filter may be acted on at once: :mod:`.bulk_operations`."""
    search_fields = ("id",)
    search_help_text = "Id, user, email, phone, entity, key…"
    actions = ("retry_selected", "resend_selected", "cancel_selected")
    list_fullwidth = True

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: one whose pages are not counted."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return notifications without what lists do not show."""
        return super().get_queryset(request).defer("content", "data", "error_history")

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order: what a search found is read by key, and a key begins with a time."""
        return ("-id",) if search_text(request) else self.ordering

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the notifications the text may mean; see :mod:`.searching`."""
        if not search_term.strip():
            return queryset, False
        ids = search.find_ids(search_term.strip())
        if len(ids) >= search.MAX_RESULTS:
            messages.info(request, f"Only the newest {search.MAX_RESULTS:,} matches are listed.")
        return queryset.filter(pk__in=ids), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Give each row its client's and type's names, and whether its addresses may be seen."""
        clients = APIClient.objects.only("name").in_bulk({row.client_id for row in rows})
        types = names.type_names({row.type for row in rows})
        unmasked = can_see_addresses(request.user)
        for row in rows:
            row.type_name = types[row.type]
            client = clients.get(row.client_id)
            row.client_name = client.name if client else str(row.client_id)
            row.addresses_unmasked = unmasked

    @admin.display(description="Accepted (UTC)")
    def accepted(self, row: Any) -> SafeString | str:
        """When it was accepted."""
        return columns.timestamp(row.created_at)

    @admin.display(description="Notification")
    def notification(self, row: Any) -> SafeString:
        """Its type, whether it is a test, and what it is about."""
        name = row.type_name
        if row.is_test:
            name = format_html("{} {}", name, columns.test_chip())
        return columns.two_lines(name, row.entity_id or row.external_id)

    @admin.display(description="Recipient")
    def recipient_display(self, row: Any) -> SafeString:
        """The user, and an address."""
        recipient = row.recipient
        shown = columns.address(recipient.email or recipient.phone, unmasked=row.addresses_unmasked)
        return columns.two_lines(row.user_id or recipient.name or columns.EMPTY, shown)

    @admin.display(description="Status")
    def state(self, row: Any) -> SafeString:
        """Where it stands as a whole."""
        return columns.status_chip(row.status)

    @admin.display(description="Channels")
    def channels_display(self, row: Any) -> SafeString:
        """Where each channel stands."""
        return columns.channel_icons(row.delivery)

    @admin.display(description="Client")
    def client(self, row: Any) -> str:
        """The app that asked."""
        return str(row.client_name)

    @admin.display(description="Why")
    def failure_cause(self, row: Any) -> SafeString:
        """The cause of the failures, in words."""
        failed = [d for d in row.delivery if d.status == "failed"]
        codes = dict.fromkeys(d.failure_code for d in failed)
        return columns.two_lines(
            ", ".join(code_label(code) for code in codes),
            "; ".join(explain(code).meaning for code in codes),
        )

    def has_retry_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may re-open what failed."""
        return request.user.has_perm("notifications.retry_notification")

    def has_resend_several_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may send more than one again at once."""
        names = ("notifications.resend_notification", "notifications.resend_several")
        return request.user.has_perms(names)

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may withdraw what is pending."""
        return request.user.has_perm("notifications.cancel_notification")

    @admin.action(description="Retry failed channels", permissions=["retry"])
    def retry_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Re-open what failed of the ticked notifications, after asking."""
        return notifications_actions.run_on_selected(
            self, request, queryset, notifications_actions.RETRY
        )

    @admin.action(description="Resend", permissions=["resend_several"])
    def resend_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Send the ticked notifications again, after asking."""
        return notifications_actions.run_on_selected(
            self, request, queryset, notifications_actions.RESEND
        )

    @admin.action(description="Cancel what is pending", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet) -> HttpResponse | None:
        """Withdraw what is pending of the ticked notifications, after asking."""
        return notifications_actions.run_on_selected(
            self, request, queryset, notifications_actions.CANCEL
        )


@admin.register(Notification)
class NotificationAdmin(NotificationListAdmin):
    """Every notification, newest first, and the page about one."""

    list_display = (
        "accepted",
        "notification",
        "recipient_display",
        "state",
        "channels_display",
        "client",
    )
    list_display_links = ("accepted", "notification")
    list_filter = (
        filters.StatusFilter,
        filters.ChannelFilter,
        filters.DeliveryStatusFilter,
        filters.CauseFilter,
        filters.TypeFilter,
        filters.CategoryFilter,
        filters.PriorityFilter,
        filters.ClientFilter,
        filters.AttemptsFilter,
        filters.CreatedFilter,
    )
    ordering = ("-created_at", "-id")

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of the operations on one notification."""
        own = [
            path(
                f"<path:object_id>/{action.name}/",
                self.admin_site.admin_view(self.action_view),
                {"action": action},
                name=f"notifications_notification_{action.name}",
            )
            for action in notifications_actions.STAFF_ACTIONS
        ]
        reveal = path(
            "<path:object_id>/reveal/",
            self.admin_site.admin_view(self.reveal_view),
            name="notifications_notification_reveal",
        )
        return [*own, reveal, *super().get_urls()]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one notification; it is changed by operations only."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return detail_page(self, request, object_id)

    def reveal_view(self, request: HttpRequest, object_id: str) -> HttpResponseBase:
        """Show one notification with its addresses unmasked; POST only."""
        return revealed_page(self, request, object_id)

    def action_view(
        self, request: HttpRequest, object_id: str, action: notifications_actions.StaffAction
    ) -> HttpResponseBase:
        """Do something to one notification; POST only."""
        return notifications_actions.run_on_one(self, request, object_id, action)
