"""The list of recipients, and the URLs of the actions on one."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern

from recipients.masking import can_see_addresses
from recipients.models import Recipient

from ..widgets import columns
from ..widgets.lists import ReadOnlyAdmin
from ..widgets.search import explain_refusal
from . import actions, search
from .page import recipient_page


@admin.register(Recipient)
class RecipientAdmin(ReadOnlyAdmin):
    """The registered recipients. A recipient that isn't registered also has a page."""

    list_display = ("user_id", "name", "email_display", "phone_display", "locale", "active")
    active = columns.active_column()
    search_fields = ("user_id",)
    search_help_text = "User ID, name, email, or phone, or the beginning of one"
    ordering = ("user_id",)
    email_display = columns.text_column("Email", "shown_email")
    phone_display = columns.text_column("Phone", "shown_phone")

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the recipients that the text may mean; see :mod:`.search`."""
        explain_refusal(request, text)
        return queryset.filter(pk__in=search.find_ids(text, user=request.user))

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the addresses, masked unless the user may see them."""
        unmasked = can_see_addresses(request.user)
        for row in rows:
            row.shown_email = columns.address(row.email, unmasked=unmasked)
            row.shown_phone = columns.address(row.phone, unmasked=unmasked)

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions on one recipient."""
        return [
            self.url(
                f"<path:object_id>/{name}/", self.action_view, name.replace("-", "_"), action=action
            )
            for name, action in actions.VIEWS.items()
        ]

    def action_view(
        self, request: HttpRequest, object_id: str, action: actions.Action
    ) -> HttpResponseBase:
        """Run an action on one recipient; POST only."""
        return action(self, request, unquote(object_id))

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one recipient."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return recipient_page(
            self, request, unquote(object_id), unmasked=can_see_addresses(request.user)
        )
