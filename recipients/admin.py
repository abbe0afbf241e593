"""People and suppressed addresses in the admin."""

import json
import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from notifyproject.db.admin import MongoModelAdmin, ReadOnlyAdmin
from notifyproject.db.admin_filters import WordFilter
from notifyproject.db.collections import collection
from notifyproject.db.fields import choices

from .masking import mask_address, mask_text, may_see_addresses
from .models import Recipient, Suppression, SuppressionReason
from .suppressions import lift_one, suppress, suppression_key

CHANNELS = (("email", "Email"), ("whatsapp", "WhatsApp"))
"""The channels that go to an address."""
ERASED = "Erased"
"""Stands for the address of somebody who was erased: it is still recognised."""
SEARCH_CAP = 200
_E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)


@admin.register(Recipient)
class RecipientAdmin(ReadOnlyAdmin):
    """The people the apps have registered. The apps keep them; they are not changed here."""

    list_display = ("user_id", "name", "email_shown", "phone_shown", "locale", "is_active")
    fieldsets = (
        (None, {"fields": ("user_id", "name", "is_active", "everything_sent")}),
        ("Contact", {"fields": ("email_shown", "phone_shown", "locale", "timezone")}),
        ("Wishes", {"fields": ("preferences_shown", "quiet", "held_back")}),
        ("More", {"fields": ("attributes_shown", "created_at", "updated_at")}),
    )
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
        for path, index in (("email", "rcp_email"), ("phone", "rcp_phone")):
            rows = collection("recipients").find({path: text}, {"_id": 1}, limit=SEARCH_CAP)
            ids |= {row["_id"] for row in rows.hint(index)}
        return queryset.filter(pk__in=sorted(ids)), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Mask the rows' addresses for those who may not see them."""
        _mask(request, rows)

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one person, masked for those who may not see addresses."""
        found = super().get_object(request, *args)
        if found is not None:
            _mask(request, [found])
        return found

    @admin.display(description="Email")
    def email_shown(self, row: Any) -> str:
        """The address, as far as it may be seen."""
        return row.shown_email or "-"

    @admin.display(description="Phone")
    def phone_shown(self, row: Any) -> str:
        """The number, as far as it may be seen."""
        return row.shown_phone or "-"

    @admin.display(description="Everything sent")
    def everything_sent(self, row: Any) -> SafeString:
        """Where the notifications to this person are listed."""
        url = reverse("admin:notifications_notification_changelist")
        query = urlencode({"q": row.user_id})
        return format_html('<a class="text-link" href="{}?{}">Show notifications</a>', url, query)

    @admin.display(description="Preferences")
    def preferences_shown(self, row: Any) -> SafeString | str:
        """What the person wants, by type or category."""
        return _json(row.preferences)

    @admin.display(description="Quiet hours")
    def quiet(self, row: Any) -> str:
        """When the person is left alone."""
        hours = row.quiet_hours
        if hours is None or not hours.enabled:
            return "None"
        return f"{hours.start} to {hours.end} ({hours.timezone or row.timezone or 'UTC'})"

    @admin.display(description="Suppressed")
    def held_back(self, row: Any) -> str:
        """On which channels nothing, or no marketing, goes to this person."""
        addresses = (("email", row.email), ("whatsapp", row.phone))
        keys = [suppression_key(channel, address) for channel, address in addresses if address]
        found = Suppression.objects.filter(key__in=keys)
        words = [
            f"{s.get_reason_display()} on {s.channel}{', marketing only' * s.marketing_only}"
            for s in found
        ]
        return "; ".join(words) or "No"

    @admin.display(description="Attributes")
    def attributes_shown(self, row: Any) -> SafeString | str:
        """What the app keeps about the person."""
        return _json(row.attributes, masked=row.is_masked)


class SuppressionForm(forms.ModelForm):
    """An address that gets nothing more, entered by hand."""

    channel = forms.ChoiceField(choices=CHANNELS, widget=UnfoldAdminSelectWidget)
    address = forms.CharField(
        max_length=254,
        widget=UnfoldAdminTextInputWidget,
        help_text="An email address, or a number such as +351912345678.",
    )
    marketing_only = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Hold back marketing; receipts and codes still go.",
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = Suppression
        fields = ("channel", "address", "marketing_only")

    def clean(self) -> dict[str, Any]:
        """Return the fields; the address must fit the channel."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address = cleaned.get("address")
        if address and cleaned.get("channel") == "email":
            try:
                validate_email(address)
            except forms.ValidationError as error:
                self.add_error("address", error)
        elif address and not _E164.fullmatch(address):
            self.add_error("address", "Write the number as +351912345678.")
        return cleaned


class SuppressionReasonFilter(WordFilter):
    """By why nothing more goes there."""

    title = "reason"
    parameter_name = "reason"
    words = tuple(choices(SuppressionReason))


@admin.register(Suppression)
class SuppressionAdmin(MongoModelAdmin):
    """Suppressed addresses, each with a reason: added by hand, lifted by deleting, never changed.

    Lifting one reason leaves the others. Without the permission to see addresses there are no
    links: a suppression's own page shows the address.
    """

    form = SuppressionForm
    list_display = ("address_shown", "channel", "reason", "marketing_only", "source", "created_at")
    list_filter = (SuppressionReasonFilter,)
    search_fields = ("address",)
    search_help_text = "The whole address"
    ordering = ("-created_at", "-id")

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the suppressions of one address."""
        text = search_term.strip()
        if not text:
            return queryset, False
        keys = [suppression_key(channel, text) for channel, _ in CHANNELS]
        return queryset.filter(key__in=keys), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Mask the rows' addresses for those who may not see them."""
        whole = may_see_addresses(request.user)
        for row in rows:
            if row.address is None:
                row.shown = ERASED
            else:
                row.shown = row.address if whole else mask_address(row.address)

    @admin.display(description="Address")
    def address_shown(self, row: Any) -> str:
        """The address, as far as it may be seen."""
        return str(row.shown)

    def get_list_display_links(
        self, request: HttpRequest, list_display: Sequence[Any]
    ) -> Sequence[Any] | None:
        """Return what links to one suppression; nothing, if the link would show the address."""
        if not may_see_addresses(request.user):
            return None
        return super().get_list_display_links(request, list_display)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Return the actions; none for who may not lift: see :meth:`has_delete_permission`."""
        return super().get_actions(request) if may_see_addresses(request.user) else {}

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look; at one only who may see addresses."""
        allowed = super().has_view_permission(request, obj)
        return allowed and (obj is None or may_see_addresses(request.user))

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may lift it; see :meth:`has_view_permission`."""
        allowed = super().has_delete_permission(request, obj)
        return allowed and (obj is None or may_see_addresses(request.user))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: lift it and add another."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Suppress the address; the stricter stays if somebody did it before."""
        now = datetime.now(UTC)
        stored = suppress(
            channel=obj.channel,
            address=obj.address,
            reason=SuppressionReason.MANUAL,
            source="admin",
            marketing_only=obj.marketing_only,
            now=now.replace(microsecond=now.microsecond // 1000 * 1000),
        )
        obj.pk = stored["_id"]
        obj.refresh_from_db()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Lift it; the admin's log says who did."""
        lift_one(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Lift every one that was ticked."""
        for obj in queryset:
            self.delete_model(request, obj)


def _mask(request: HttpRequest, rows: Sequence[Any]) -> None:
    whole = may_see_addresses(request.user)
    for row in rows:
        row.is_masked = not whole
        for name in ("email", "phone"):
            value = getattr(row, name)
            setattr(row, f"shown_{name}", value if whole or not value else mask_address(value))


def _json(value: Any, *, masked: bool = False) -> SafeString | str:
    if not value:
        return "-"
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return format_html('<pre class="json">{}</pre>', mask_text(text) if masked else text)
