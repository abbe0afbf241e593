"""How long the notifications of each category are kept."""

from typing import Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminIntegerFieldWidget

from notifications.catalog import retention
from notifications.catalog.retention import MAX_DAYS, MIN_CONTENT_DAYS, MIN_METADATA_DAYS
from notifications.models import RetentionPolicy

from .widgets.lists import ConsoleAdmin

CONTENT_HELP = (
    "Subject, body, files, the data from the app, addresses, and what providers answered in words. "
    "Counted from the last thing that happened to the notification; what its owner finds in their "
    "inbox stays there. A change is for all notifications of the category, those that are there "
    "already among them, and is acted on within a minute. What is gone stays gone."
)
RECORD_HELP = (
    "The notification and its attempts. Counted from its send time. A change is for what is "
    "accepted from now on; manage.py retain --existing sees to what is there already."
)


class RetentionPolicyForm(forms.ModelForm):
    """The days of one category, checked."""

    content_days = forms.IntegerField(
        label="Keep what it says for (days)",
        min_value=MIN_CONTENT_DAYS,
        max_value=MAX_DAYS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )
    metadata_days = forms.IntegerField(
        label="Keep the notification for (days)",
        min_value=MIN_METADATA_DAYS,
        max_value=MAX_DAYS,
        required=False,
        widget=UnfoldAdminIntegerFieldWidget,
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = RetentionPolicy
        fields = ("content_days", "metadata_days")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        content, metadata = retention.effective_days(None, None)
        for name, words, days in (
            ("content_days", CONTENT_HELP, content),
            ("metadata_days", RECORD_HELP, metadata),
        ):
            if name in self.fields:
                self.fields[name].help_text = f"{words} Empty: {days}, as the settings say."
                self.fields[name].widget.attrs["placeholder"] = days

    def clean(self) -> dict[str, Any]:
        """Return the fields; what it says is not kept longer than the notification itself."""
        found = super().clean() or self.cleaned_data
        if {"content_days", "metadata_days"} <= found.keys():
            _, metadata = retention.effective_days(None, found["metadata_days"])
            if (found["content_days"] or 0) > metadata:
                self.add_error(
                    "content_days", f"It is deleted after {metadata} days: expected that at most."
                )
        return found


@admin.register(RetentionPolicy)
class RetentionPolicyAdmin(ConsoleAdmin):
    """One row for each category; none is added or removed."""

    form = RetentionPolicyForm
    list_display = ("category_display", "content", "record", "removed_until_display")
    list_after_template = "admin/notifications/retentionpolicy/list_after.html"
    ordering = ("category",)

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Return False: there is one for each category."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: see the class."""
        return False

    @admin.display(description="Category")
    def category_display(self, row: Any) -> str:
        """The category."""
        return str(row)

    @admin.display(description="What it says is kept")
    def content(self, row: Any) -> str:
        """How long the content is kept."""
        content, _ = retention.effective_days(row.content_days, row.metadata_days)
        return f"{content} days{_default_note(row.content_days)}"

    @admin.display(description="The notification is kept")
    def record(self, row: Any) -> str:
        """How long the document is kept."""
        _, metadata = retention.effective_days(row.content_days, row.metadata_days)
        return f"{metadata} days{_default_note(row.metadata_days)}"

    @admin.display(description="Removed up to (UTC)")
    def removed_until_display(self, row: Any) -> SafeString | str:
        """How far the removal of what it says has come."""
        at = row.removed_until
        return format_html("<time>{}</time>", f"{at:%Y-%m-%d %H:%M}") if at else "-"

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store what was changed; how far the removal has come may have moved meanwhile."""
        if form.changed_data:
            obj.save(update_fields=form.changed_data)
        retention.invalidate_retention()

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> Any:
        """Return what was changed to what, for the audit log."""
        changes = [
            f"{form.fields[name].label}: {_days(form.initial[name])} to "
            f"{_days(form.cleaned_data[name])}."
            for name in form.changed_data
        ]
        return " ".join(changes) or "Saved, and nothing changed."


def _default_note(days: int | None) -> str:
    return "" if days is not None else ", as the settings say"


def _days(days: int | None) -> str:
    return "as the settings say" if days is None else str(days)
