"""Kinds of notification: what operators may change about them."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.http import HttpRequest, HttpResponse
from django.urls import URLPattern
from django.utils.safestring import SafeString

from domain.states import Channel
from notifications.catalog import types
from notifications.models import NotificationType

from ..widgets import columns
from ..widgets.labels import CHANNELS
from ..widgets.lists import ConsoleAdmin
from . import versions
from .form import NotificationTypeForm


@admin.register(NotificationType)
class NotificationTypeAdmin(ConsoleAdmin):
    """The registered types. They are switched off, not deleted: notifications name them."""

    class Media:
        """What templates look like."""

        css = {"all": ("console/templates.css",)}

    form = NotificationTypeForm
    list_display = (
        *("name", "slug", "category", "priority", "channels_display", "max_attempts"),
        *("template", "is_active"),
    )
    change_form_outer_after_template = f"{versions.FOLDER}/templates.html"
    ordering = ("slug",)
    search_fields = ("slug__startswith",)
    search_help_text = "Beginning of the slug"
    fieldsets = (
        (None, {"fields": ("slug", "name", "description", "is_active")}),
        ("Sending", {"fields": ("category", "priority", "channels", "notify_before_seconds")}),
        ("Trying again", {"fields": ("max_retries", "ttl_seconds", "on_unknown")}),
        ("If it does not arrive", {"fields": ("fallback_channel", "fallback_after_seconds")}),
        ("WhatsApp", {"fields": ("approved_templates",)}),
        ("Variables", {"fields": ("example_data", "sensitive_variables")}),
    )

    @admin.display(description="Channels")
    def channels_display(self, row: Any) -> SafeString | str:
        """The default channels."""
        return ", ".join(CHANNELS[Channel(c)] for c in row.channels) or columns.EMPTY

    @admin.display(description="Tries")
    def max_attempts(self, row: Any) -> int:
        """How often it is tried in all."""
        return int(row.max_retries) + 1

    @admin.display(description="Template")
    def template(self, row: Any) -> str:
        """The published version of what it says."""
        number = row.template_version
        return f"Version {number}" if number else "The release's own"

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of templates."""
        return versions.urls(self) + super().get_urls()

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a type and what it says."""
        context = versions.type_page_context(self, request, unquote(object_id))
        return super().change_view(request, object_id, form_url, context | (extra_context or {}))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return what cannot be changed: the slug of a type that exists."""
        return ("slug",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: see the class."""
        return False

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the type, for every process.

        Of one that exists, what the form has: meanwhile another version may have been published.
        """
        if change:
            obj.save(update_fields=[*form.changed_data, "updated_at"])
        else:
            super().save_model(request, obj, form, change)
        types.invalidate_types()
