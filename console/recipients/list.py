"""The people notifications are for: the list, and what may be done on the page about one."""

from collections.abc import Callable, Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponseBase
from django.urls import URLPattern, path

from notifyproject.db.collections import collection
from recipients.masking import can_see_addresses
from recipients.models import Recipient

from ..widgets import columns
from ..widgets.lists import ReadOnlyAdmin
from . import actions
from .page import recipient_page

SEARCH_CAP = 200
View = Callable[..., HttpResponseBase]


@admin.register(Recipient)
class RecipientAdmin(ReadOnlyAdmin):
    """The people the apps have registered. The apps keep them; they are not changed here.

    The page about one is shown of everybody who has notifications or devices, registered or not.
    """

    list_display = ("user_id", "name", "email_display", "phone_display", "locale", "is_active")
    search_fields = ("user_id",)
    search_help_text = "User id, email or phone"
    ordering = ("user_id",)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the people with this id or address: each is looked up by its own index."""
        text = search_term.strip()
        if not text:
            return queryset, False
        ids = {text}
        for where, index in (("email", "rcp_email"), ("phone", "rcp_phone")):
            rows = collection("recipients").find({where: text}, {"_id": 1}, limit=SEARCH_CAP)
            ids |= {row["_id"] for row in rows.hint(index)}
        return queryset.filter(pk__in=sorted(ids)), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Mask the rows' addresses for those who may not see them."""
        unmasked = can_see_addresses(request.user)
        for row in rows:
            row.shown_email = columns.address(row.email, unmasked=unmasked)
            row.shown_phone = columns.address(row.phone, unmasked=unmasked)

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of what is done about one person."""
        own = [
            path(
                f"<path:object_id>/{name}/",
                self.admin_site.admin_view(self._post_view(view)),
                name=f"recipients_recipient_{name.replace('-', '_')}",
            )
            for name, view in actions.VIEWS.items()
        ]
        return own + super().get_urls()

    def _post_view(self, view: View) -> View:
        def posting(request: HttpRequest, object_id: str) -> HttpResponseBase:
            return view(self, request, unquote(object_id))

        return posting

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponseBase:
        """Show one person; nothing is changed here."""
        if request.method not in ("GET", "HEAD"):
            raise PermissionDenied
        return recipient_page(
            self, request, unquote(object_id), unmasked=can_see_addresses(request.user)
        )

    @admin.display(description="Email")
    def email_display(self, row: Any) -> str:
        """The address, as far as it may be seen."""
        return row.shown_email or columns.EMPTY

    @admin.display(description="Phone")
    def phone_display(self, row: Any) -> str:
        """The number, as far as it may be seen."""
        return row.shown_phone or columns.EMPTY
