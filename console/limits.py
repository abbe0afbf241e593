"""Limits for recipients: the list, and the form of one. Its validation is that of the API."""

from datetime import timedelta
from operator import itemgetter
from typing import Any

import msgspec
from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminIntegerFieldWidget,
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextInputWidget,
)

from domain.channels import Channel
from domain.limits import MAX_USES, Overflow, describe_period
from domain.states import Category
from notifications.catalog import limits, types
from notifications.catalog.limits import (
    DEFAULT_CHANNELS,
    MAX_PERIOD_SECONDS,
    MIN_PERIOD_SECONDS,
    LimitRequest,
)
from notifications.models import Limit
from notifications.models.catalog import SLUG_LENGTH
from notifications.validation import InvalidRequestError
from notifyproject.db.fields import choices

from .texts.labels import CHANNELS
from .widgets.columns import label_column
from .widgets.durations import DurationField
from .widgets.lists import ConsoleAdmin, section

OVERFLOW_LABELS = {
    Overflow.LATER: "Send later",
    Overflow.DIGEST: "Add to a digest",
    Overflow.DROP: "Suppress",
}
_OVERFLOW_NOTES = {
    Overflow.LATER: "up to ten wait for each recipient",
    Overflow.DIGEST: "if its type has one; otherwise send later",
    Overflow.DROP: "never sent",
}
FIELDS = (
    "name",
    "types",
    "categories",
    "channels",
    "max",
    "period_seconds",
    "min_gap_seconds",
    "overflow",
)


class LimitForm(forms.ModelForm):
    """Form of a limit."""

    name = forms.CharField(
        max_length=SLUG_LENGTH,
        widget=UnfoldAdminTextInputWidget,
        help_text="Shown with each message that it holds, such as weekly_marketing. Permanent.",
    )
    types = forms.MultipleChoiceField(
        required=False,
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="Without types and categories, all messages count.",
    )
    categories = forms.MultipleChoiceField(
        required=False,
        choices=choices(Category),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    channels = forms.MultipleChoiceField(
        choices=[(name, CHANNELS[Channel(name)]) for name in DEFAULT_CHANNELS],
        initial=list(DEFAULT_CHANNELS),
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="They count together. In-app and rooms are never limited.",
    )
    max = forms.IntegerField(
        label="Maximum messages",
        min_value=1,
        max_value=MAX_USES,
        widget=UnfoldAdminIntegerFieldWidget,
        help_text="Messages to a recipient in the period. Critical and sensitive ones don't count.",
    )
    period_seconds = DurationField(
        label="Rolling period",
        min_value=MIN_PERIOD_SECONDS,
        max_value=MAX_PERIOD_SECONDS,
        initial=604_800,
        help_text="Ends now, at every moment. It doesn't begin on a certain day.",
    )
    min_gap_seconds = DurationField(
        label="Minimum gap",
        min_value=0,
        max_value=MAX_PERIOD_SECONDS,
        initial=0,
        help_text="Time between two messages. It also spreads what quiet hours have held.",
    )
    overflow = forms.ChoiceField(
        label="When exceeded",
        choices=[
            (overflow.value, f"{OVERFLOW_LABELS[overflow]}: {_OVERFLOW_NOTES[overflow]}")
            for overflow in Overflow
        ],
        initial=Overflow.LATER.value,
        widget=UnfoldAdminRadioSelectWidget,
    )

    class Meta:
        """The model and its editable fields."""

        model = Limit
        fields = FIELDS

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "types" in self.fields:
            known = {
                known_type.slug: known_type.name or known_type.slug
                for known_type in types.active_types()
            }
            self.fields["types"].choices = sorted(known.items(), key=itemgetter(1))

    def clean(self) -> dict[str, Any]:
        """Return the fields. Adds the problems that the API would report."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.errors:
            return cleaned
        name = cleaned.get("name") or self.instance.pk
        if "name" in self.fields and limits.read_limit(name) is not None:
            self.add_error("name", "There is a limit with this name.")
        given = {field: cleaned[field] for field in FIELDS if field in cleaned and field != "name"}
        try:
            limits.validate_limit(name, msgspec.convert(given, LimitRequest))
        except InvalidRequestError as error:
            for problem in error.problems:
                field = problem.pointer.split("/")[1] if problem.pointer else "name"
                self.add_error(field if field in self.fields else None, problem.detail)
        return cleaned


@admin.register(Limit)
class LimitAdmin(ConsoleAdmin):
    """The limits. Admins add, change, and remove them; a change applies to the next message."""

    form = LimitForm
    list_display = ("name", "counted", "channels_display", "allowed", "gap", "overflow_display")
    ordering = ("name",)
    empty_title = "No limits"
    empty_text = "A limit says how many messages a recipient gets in a period."
    fieldsets = (
        section(None, "name"),
        section("Messages that count", "categories", "types", "channels"),
        section("Limit", "max", "period_seconds", "min_gap_seconds", "overflow"),
    )
    overflow_display = label_column("When exceeded", "overflow", OVERFLOW_LABELS)

    @admin.display(description="Counts")
    def counted(self, row: Any) -> str:
        """Return the types and categories that count."""
        labels = dict(choices(Category))
        return (
            ", ".join([*(labels[category] for category in row.categories), *row.types])
            or "All messages"
        )

    @admin.display(description="Channels")
    def channels_display(self, row: Any) -> str:
        """Return the channels that count together."""
        return ", ".join(CHANNELS[Channel(channel)] for channel in row.channels)

    @admin.display(description="Limit")
    def allowed(self, row: Any) -> str:
        """Return the maximum and the period."""
        return f"{row.max} in {describe_period(timedelta(seconds=row.period_seconds))}"

    @admin.display(description="Minimum gap")
    def gap(self, row: Any) -> str:
        """Return the minimum time between two messages."""
        seconds = row.min_gap_seconds
        return describe_period(timedelta(seconds=seconds)) if seconds else "None"

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the read-only fields: the name of an existing limit."""
        return ("name",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the limit; every process uses it from its next batch on."""
        super().save_model(request, obj, form, change)
        limits.invalidate_limits()

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Remove the limit."""
        super().delete_model(request, obj)
        limits.invalidate_limits()

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove the selected limits."""
        super().delete_queryset(request, queryset)
        limits.invalidate_limits()
