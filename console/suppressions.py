"""Suppressed addresses."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import DELETION
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from unfold.widgets import (
    UnfoldAdminSelectWidget,
    UnfoldAdminSplitDateTimeWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from console.widgets.search import entered_address
from domain.addresses import InvalidAddressError
from domain.channels import ADDRESS_CHANNELS, Channel
from domain.time import utc_now
from notifyproject.db.fields import choices
from recipients.masking import can_see_addresses, mask_address
from recipients.models import Suppression, SuppressionReason
from recipients.suppressions import lift_one, suppress, suppression_keys

from .texts.labels import CHANNELS as CHANNEL_LABELS
from .texts.labels import SOURCE_LABELS
from .widgets.actions import record_change
from .widgets.columns import label_column, text_column, time_column
from .widgets.filters import choice_filter
from .widgets.links import HOME, LIFT_SUPPRESSION, SUPPRESSIONS
from .widgets.lists import ConsoleAdmin, never
from .widgets.search import (
    explain_refusal,
    searched_addresses,
)

CHANNELS = tuple((name, CHANNEL_LABELS[Channel(name)]) for name in ADDRESS_CHANNELS)
DISPLAYED_FIELDS = (
    "address_display",
    "channel",
    "reason",
    "marketing_only",
    "source",
    "created_at",
    "expires_at",
)
MAX_REASON = 200
ERASED_LABEL = "Erased"
"""Shown for an erased recipient, of whom only a digest of the address is stored."""


class SuppressionForm(forms.ModelForm):
    """Form of a suppression by staff. Its validation is that of the API."""

    channel = forms.ChoiceField(choices=CHANNELS, widget=UnfoldAdminSelectWidget)
    address = forms.CharField(
        max_length=320,
        widget=UnfoldAdminTextInputWidget,
        help_text="An email address, or a number such as +351912345678.",
    )
    reason = forms.ChoiceField(
        choices=choices(SuppressionReason),
        initial=SuppressionReason.MANUAL.value,
        widget=UnfoldAdminSelectWidget,
    )
    marketing_only = forms.BooleanField(
        label="Block marketing only", required=False, widget=UnfoldBooleanSwitchWidget
    )
    expires_at = forms.SplitDateTimeField(
        label="Expires (UTC)",
        required=False,
        widget=UnfoldAdminSplitDateTimeWidget,
        help_text="For the reason manual only. Empty: until it is lifted.",
    )

    class Meta:
        """The model and its editable fields."""

        model = Suppression
        fields = ("channel", "address", "reason", "marketing_only", "expires_at")

    def clean(self) -> dict[str, Any]:
        """Return the fields, with the address normalized. Adds the errors of the API."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if (address := cleaned.get("address")) and cleaned.get("channel"):
            try:
                kind = Channel(cleaned["channel"]).address_kind
                cleaned["address"] = kind.normalize(entered_address(kind, address))
            except InvalidAddressError as error:
                self.add_error("address", str(error))
        if expires_at := cleaned.get("expires_at"):
            if cleaned.get("reason") != SuppressionReason.MANUAL:
                self.add_error("expires_at", "Only manual suppressions can expire.")
            elif expires_at <= utc_now():
                self.add_error("expires_at", "Enter a time in the future.")
        return cleaned


def lift_url(suppression_id: str, *, back: str) -> str:
    """Return the URL of the page that lifts a suppression, and then leads back to a path."""
    return f"{reverse(LIFT_SUPPRESSION, args=[quote(suppression_id)])}?{urlencode({'next': back})}"


def _back(request: HttpRequest) -> str:
    """Return the console's path in ``next``, or else the list of suppressions."""
    back = request.GET.get("next", "")
    is_safe = back.startswith(reverse(HOME)) and url_has_allowed_host_and_scheme(back, None)
    return back if is_safe else reverse(SUPPRESSIONS)


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
    """The suppressions. Staff add them, or delete them to lift them, but can't change them."""

    form = SuppressionForm
    delete_confirmation_template = "console/recipients/lift_suppression.html"
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

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the suppressions of one address."""
        explain_refusal(request, text)
        addresses = searched_addresses(text, user=request.user).by_channel()
        keys = [
            key
            for channel, address in addresses
            for key in suppression_keys(channel.value, address)
        ]
        return queryset.filter(key__in=keys)

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
        """Return the fields: more for an existing suppression than in the form."""
        return DISPLAYED_FIELDS if obj is not None else self.form.Meta.fields

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the read-only fields: all of an existing suppression."""
        return DISPLAYED_FIELDS if obj is not None else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Suppress the address. A stricter suppression for the same reason stays."""
        stored = suppress(
            channel=obj.channel,
            address=obj.address,
            reason=SuppressionReason(obj.reason),
            source="admin",
            marketing_only=obj.marketing_only,
            expires_at=obj.expires_at,
            now=utc_now(),
        )
        obj.pk = stored["_id"]
        obj.refresh_from_db()

    def delete_view(
        self, request: HttpRequest, object_id: str, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Ask for the reason, lift the suppression, and go back to the page that led here."""
        back = _back(request)
        may_lift = self.has_delete_permission(request)
        if may_lift and request.method == "POST" and not request.POST.get("reason", "").strip():
            messages.error(request, "No change: enter the reason for lifting the suppression.")
            return HttpResponseRedirect(request.get_full_path())
        context = {"title": "Lift this suppression?", "back": back, **(extra_context or {})}
        return super().delete_view(request, object_id, context)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Record who lifted each suppression, and why."""
        reason = request.POST.get("reason", "").strip()[:MAX_REASON]
        for obj in queryset:
            message = f"Lifted: {reason}" if reason else "Lifted."
            record_change(request, Suppression, obj.pk, message, name=str(obj), flag=DELETION)

    def response_delete(self, request: HttpRequest, obj_display: str, obj_id: str) -> HttpResponse:
        """Redirect to the page that led here."""
        messages.success(request, "Suppression lifted.")
        return HttpResponseRedirect(_back(request))

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Lift the suppression. Django's admin records the deletion."""
        lift_one(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Lift the selected suppressions."""
        for obj in queryset:
            self.delete_model(request, obj)
