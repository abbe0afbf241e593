"""Retention of notifications per category, and of all other data."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from domain.states import Category
from notifications.catalog import retention
from notifications.catalog.retention import MAX_DAYS, MIN_CONTENT_DAYS, MIN_METADATA_DAYS
from notifications.models import RetentionPolicy
from notifyproject.db.fields import choices

from .widgets.columns import label_column, time_column
from .widgets.lists import ConsoleAdmin, never

CONTENT_HELP = (
    "Subject, body, attachments, template variables, addresses, and provider responses. Counted "
    "from the notification's last change; the recipient's inbox keeps its items. A change applies "
    "to all notifications of the category, also existing ones, within 1 min, and can't be undone."
)
RECORD_HELP = (
    "The notification and its attempts. Counted from the send time. A change applies to new "
    "notifications; for existing ones, run manage.py remove_content --existing."
)


class RetentionPolicyForm(forms.ModelForm):
    """Form of the retention of one category."""

    content_days = forms.IntegerField(
        label="Content retention (days)",
        min_value=MIN_CONTENT_DAYS,
        max_value=MAX_DAYS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    metadata_days = forms.IntegerField(
        label="Record retention (days)",
        min_value=MIN_METADATA_DAYS,
        max_value=MAX_DAYS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )

    class Meta:
        """The model and its editable fields."""

        model = RetentionPolicy
        fields = ("content_days", "metadata_days")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        content, metadata = retention.effective_days(None, None)
        for name, help_text, days in (
            ("content_days", CONTENT_HELP, content),
            ("metadata_days", RECORD_HELP, metadata),
        ):
            if name in self.fields:
                self.fields[name].help_text = f"{help_text} Empty: {days} (default)."
                self.fields[name].widget.attrs["placeholder"] = days

    def clean(self) -> dict[str, Any]:
        """Return the fields. Adds an error if content would be kept longer than the record."""
        found = super().clean() or self.cleaned_data
        if {"content_days", "metadata_days"} <= found.keys():
            _, metadata = retention.effective_days(None, found["metadata_days"])
            if (found["content_days"] or 0) > metadata:
                self.add_error(
                    "content_days",
                    f"The record is deleted after {metadata} days: enter at most that.",
                )
        return found


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(ConsoleAdmin):
    """The retention of each category. Staff can't add or delete rows."""

    form = RetentionPolicyForm
    list_display = ("category_display", "content", "record", "removed_until_display")
    list_after_template = "console/retention.html"
    ordering = ("category",)
    has_add_permission = has_delete_permission = never
    category_display = label_column("Category", "category", dict(choices(Category)))
    removed_until_display = time_column("Content removed through", "removed_until")

    @admin.display(description="Content retention")
    def content(self, row: Any) -> str:
        """Return the days for which content is kept."""
        content, _ = retention.effective_days(row.content_days, row.metadata_days)
        return f"{content} days{_default_note(row.content_days)}"

    @admin.display(description="Record retention")
    def record(self, row: Any) -> str:
        """Return the days for which the notification is kept."""
        _, metadata = retention.effective_days(row.content_days, row.metadata_days)
        return f"{metadata} days{_default_note(row.metadata_days)}"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the retention; every process uses it at once."""
        super().save_model(request, obj, form, change)
        retention.invalidate_retention()


def _default_note(days: int | None) -> str:
    return " (default)" if days is None else ""
