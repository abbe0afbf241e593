"""Suppressed addresses in the admin; the people are in :mod:`console.recipients.list`."""

import re
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.core.validators import validate_email
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from notifyproject.db.fields import choices
from recipients.masking import can_see_addresses, mask_address
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import lift_one, suppress, suppression_key

from .widgets.filters import ChoiceFilter
from .widgets.lists import ConsoleAdmin

CHANNELS = (("email", "Email"), ("whatsapp", "WhatsApp"))
"""The channels that go to an address."""
SOURCE_LABELS = {
    "sendgrid": "SendGrid",
    "whatsapp": "WhatsApp",
    "admin": "Staff",
    "api": "An app",
    "one-click": "The person",
}
"""Who says that nothing more is to go there."""
DISPLAYED_FIELDS = (
    *("address_display", "channel", "reason", "marketing_only"),
    *("source", "created_at", "expires_at"),
)
"""What is shown of one suppression."""
ERASED_LABEL = "Erased"
"""Stands for the address of somebody who was erased: it is still recognised."""
_E164 = re.compile(r"\+[1-9]\d{6,14}", re.ASCII)


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


class SuppressionChannelFilter(ChoiceFilter):
    """By channel: with any reason, each of which is named so that one index serves it."""

    title = "channel"
    parameter_name = "channel"
    options = CHANNELS

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it is on the channel."""
        return {"channel": word, "reason": {"$in": [one.value for one in SuppressionReason]}}


class SuppressionReasonFilter(ChoiceFilter):
    """By why nothing more goes there: on any channel, each of which is named."""

    title = "reason"
    parameter_name = "reason"
    options = tuple(choices(SuppressionReason))

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it is for this reason."""
        return {"channel": {"$in": [name for name, _ in CHANNELS]}, "reason": word}


@admin.register(Suppression)
class SuppressionAdmin(ConsoleAdmin):
    """Suppressed addresses, each with a reason: added by hand, lifted by deleting, never changed.

    Lifting one reason leaves the others. Who may not see addresses sees them masked, here and on a
    suppression's own page, and finds one by the whole address all the same.
    """

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
    search_help_text = "The whole address"
    empty_title = "No address is held back"
    empty_words = (
        "Bounces, complaints and unsubscribing put addresses here; so does whoever adds one."
    )
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
        unmasked = can_see_addresses(request.user)
        for row in rows:
            if row.address is None:
                row.shown = ERASED_LABEL
            else:
                row.shown = row.address if unmasked else mask_address(row.address)

    @admin.display(description="Address")
    def address_display(self, row: Any) -> str:
        """The address, as far as it may be seen."""
        return str(row.shown)

    @admin.display(description="Channel")
    def channel_display(self, row: Any) -> str:
        """The channel that is held back."""
        return dict(CHANNELS).get(row.channel, row.channel)

    @admin.display(description="Holds back")
    def scope(self, row: Any) -> str:
        """What does not go there."""
        return "Marketing" if row.marketing_only else "Everything"

    @admin.display(description="Said by")
    def source_display(self, row: Any) -> str:
        """Who told us, or did it."""
        return SOURCE_LABELS.get(row.source, row.source)

    @admin.display(description="Since (UTC)")
    def since(self, row: Any) -> SafeString:
        """When it began."""
        return format_html("<time>{}</time>", f"{row.created_at:%Y-%m-%d %H:%M}")

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one suppression, its address as far as it may be seen."""
        found = super().get_object(request, *args)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields: of one that is there, all that is known."""
        return DISPLAYED_FIELDS if obj is not None else self.form.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields nobody writes into."""
        return DISPLAYED_FIELDS if obj is not None else ()

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
