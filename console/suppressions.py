"""Suppressed addresses."""

import re
from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from domain.time import utc_now
from notifyproject.db.fields import choices
from recipients.masking import can_see_addresses, mask_address
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import lift_one, suppress, suppression_key

from .widgets.columns import label_column, text_column, time_column
from .widgets.filters import choice_filter
from .widgets.lists import ConsoleAdmin, never
from .widgets.search import searched_addresses

CHANNELS = (("email", "Email"), ("whatsapp", "WhatsApp"))  # Channels that have an address
SOURCE_LABELS = {
    "sendgrid": "SendGrid",
    "whatsapp": "WhatsApp",
    "admin": "Staff",
    "api": "API",
    "one-click": "Recipient",
}
DISPLAYED_FIELDS = (
    *("address_display", "channel", "reason", "marketing_only"),
    *("source", "created_at", "expires_at"),
)
ERASED_LABEL = "Erased"
"""Label in place of an erased recipient's address, which is stored as a hash."""
_E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)


class SuppressionForm(forms.ModelForm):
    """Form of a manual suppression."""

    channel = forms.ChoiceField(choices=CHANNELS, widget=UnfoldAdminSelectWidget)
    address = forms.CharField(
        max_length=254,
        widget=UnfoldAdminTextInputWidget,
        help_text="An email address, or a number such as +351912345678.",
    )
    marketing_only = forms.BooleanField(
        required=False, widget=UnfoldBooleanSwitchWidget, help_text="Block marketing only"
    )

    class Meta:
        """The model and its editable fields."""

        model = Suppression
        fields = ("channel", "address", "marketing_only")

    def clean(self) -> dict[str, Any]:
        """Return the fields; the address must match the channel."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        address = cleaned.get("address")
        if address and cleaned.get("channel") == "email":
            try:
                validate_email(address)
            except forms.ValidationError as error:
                self.add_error("address", error)
        elif address and not _E164.fullmatch(address):
            self.add_error("address", "Enter the number as +351912345678.")
        return cleaned


# Each condition names every value of the other field, so that one index serves it.
SuppressionChannelFilter = choice_filter(
    "channel",
    CHANNELS,
    condition=lambda value: {
        "channel": value,
        "reason": {"$in": [reason.value for reason in SuppressionReason]},
    },
)
SuppressionReasonFilter = choice_filter(
    "reason",
    choices(SuppressionReason),
    condition=lambda value: {"channel": {"$in": [name for name, _ in CHANNELS]}, "reason": value},
)


@admin.register(Suppression)
class SuppressionAdmin(ConsoleAdmin):
    """Suppressions by address and reason: added, or deleted to lift them, never changed."""

    # Users without permission for addresses see them masked, but can search for a whole address.

    form = SuppressionForm
    list_display = (
        "address_display",
        "channel_display",
        "reason",
        "scope",
        "source_display",
        "since",
    )
    list_filter = (SuppressionChannelFilter, SuppressionReasonFilter)
    search_fields = ("address",)
    search_help_text = "Whole address"
    empty_title = "No suppressed addresses"
    empty_text = "Added by bounces, complaints, unsubscribes, clients, and staff."
    ordering = ("-created_at", "-id")
    has_change_permission = never
    address_display = text_column("Address", "shown")
    since = time_column("Since", "created_at")
    channel_display = label_column("Channel", "channel", dict(CHANNELS))
    source_display = label_column("Source", "source", SOURCE_LABELS)

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return the suppressions of one address."""
        text = search_term.strip()
        if not text:
            return queryset, False
        addresses = searched_addresses(text).by_channel()
        keys = [suppression_key(channel.value, address) for channel, address in addresses]
        return queryset.filter(key__in=keys), False

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the addresses, masked unless the user may see them."""
        unmasked = can_see_addresses(request.user)
        for row in rows:
            if row.address is None:
                row.shown = ERASED_LABEL
            else:
                row.shown = row.address if unmasked else mask_address(row.address)

    @admin.display(description="Blocks")
    def scope(self, row: Any) -> str:
        """Return whether marketing or everything is suppressed."""
        return "Marketing" if row.marketing_only else "Everything"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields; an existing suppression has more."""
        return DISPLAYED_FIELDS if obj is not None else self.form.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the read-only fields: all of an existing suppression."""
        return DISPLAYED_FIELDS if obj is not None else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Suppress the address; of two suppressions for one reason the stricter stays."""
        stored = suppress(
            channel=obj.channel,
            address=obj.address,
            reason=SuppressionReason.MANUAL,
            source="admin",
            marketing_only=obj.marketing_only,
            now=utc_now(),
        )
        obj.pk = stored["_id"]
        obj.refresh_from_db()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Lift the suppression; the admin records it."""
        lift_one(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Lift the selected suppressions."""
        for obj in queryset:
            self.delete_model(request, obj)
