"""Notification types: the list and the page of one."""

from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import URLPattern
from django.utils.safestring import SafeString

from domain.channels import Channel
from domain.time import utc_now
from notifications.catalog.emergencies import is_managed_by_code
from notifications.content import templates, type_writes
from notifications.content.type_writes import TypeMovedError
from notifications.models import NotificationType

from ..texts.labels import CHANNELS
from ..widgets.actions import record_change
from ..widgets.columns import active_column
from ..widgets.formats import EMPTY
from ..widgets.lists import ConsoleAdmin, OvertakenError, never, section
from . import emergencies, versions
from .form import WEAKEN, NotificationTypeForm


@admin.register(NotificationType)
class NotificationTypeAdmin(ConsoleAdmin):
    """The types. They are disabled, not deleted, because notifications refer to them."""

    class Media:
        """Styles of the template pages."""

        css = {"all": ("console/types.css",)}

    form = NotificationTypeForm
    list_display = (
        "name",
        "slug",
        "category",
        "priority",
        "channels_display",
        "max_attempts",
        "template",
        "active",
    )
    active = active_column()
    change_form_outer_before_template = "console/types/templates.html"
    ordering = ("slug",)
    has_delete_permission = never
    search_fields = ("slug",)
    search_help_text = "Name or slug"
    fieldsets = (
        section(None, "slug", "name", "description", "is_active"),
        section(
            "Sending",
            "category",
            "priority",
            "max_priority",
            "channels",
            "room",
            "notify_before_seconds",
            "console_send",
            "approval",
        ),
        section("Look", "brand", "layout"),
        section("Retries", "max_retries", "ttl_seconds", "on_unknown"),
        section("Plan", "plan_until", "plan", "fallback_channel", "fallback_after_seconds"),
        section("Digest", "digest"),
        section("Inbox", "actions"),
        section("WhatsApp", "approved_templates"),
        section("SMS", "sms"),
        section("Variables", "example_data", "schema", "schema_mode", "sensitive_variables"),
    )

    @admin.display(description="Channels")
    def channels_display(self, row: Any) -> SafeString | str:
        """Return the default channels."""
        return ", ".join(CHANNELS[Channel(c)] for c in row.channels) or EMPTY

    @admin.display(description="Max attempts")
    def max_attempts(self, row: Any) -> int:
        """Return the maximum number of attempts."""
        return int(row.max_retries) + 1

    @admin.display(description="Template")
    def template(self, row: Any) -> str:
        """Return the published version."""
        if row.template_version:
            return f"Version {row.template_version}"
        return "Built-in" if templates.shipped_texts(row.pk) else "None"

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the types whose name or slug contains every word. There are few types."""
        words = text.casefold().split()
        found = [
            slug
            for slug, name in NotificationType.objects.values_list("pk", "name")
            if all(word in f"{slug} {name}".casefold() for word in words)
        ]
        return queryset.filter(pk__in=found)

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of template versions."""
        return versions.urls(self)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the template versions."""
        return versions.type_page_context(self, request, unquote(object_id))

    def changed_columns(self, form: Any) -> list[str]:
        """Return the stored fields that a form changes.

        Besides its own: ``plan`` for a goal, ``sensitive_variables`` for a schema, and
        ``emergency_changes`` if it asked for a reason.
        """
        changed = super().changed_columns(form)
        goal = ("plan",) if "plan_until" in form.changed_data else ()
        marked = ("sensitive_variables",) if "schema" in form.changed_data else ()
        return list(dict.fromkeys([*changed, *goal, *marked]))

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may change types: one of code only if they have begun to."""
        is_by_code = obj is not None and is_managed_by_code(vars(obj))
        may_change = bool(super().has_change_permission(request, obj))
        return may_change and (not is_by_code or emergencies.is_begun(request))

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return the sections; for an existing type, with the confirmations that it may need."""
        sections = super().get_fieldsets(request, obj)
        if obj is None or not self.has_change_permission(request, obj):
            return sections
        *others, (title, options) = sections
        asked = (
            "confirm_breaking",
            *(["confirm_not_sensitive"] if obj.sensitive_variables else []),
        )
        first = [section("Emergency change", emergencies.REASON)]
        return [
            *(first if is_managed_by_code(vars(obj)) else []),
            *others,
            (title, {**options, "fields": (*options["fields"], *asked)}),
        ]

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        """Return the form, which knows what the user may change."""
        form = super().get_form(request, obj, change, **options)
        form.may_weaken = request.user.has_perm(WEAKEN)
        return form

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the read-only fields: the slug of an existing type."""
        return ("slug",) if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the type, or of an existing one what the user changed, as it was checked."""
        names = self.changed_columns(form) if change else list(form.stored)
        if not names:
            return
        emergency = emergencies.posted_change(request, form.before) if form.before else None
        if emergencies.lacks_reason(emergency):
            raise OvertakenError  # Code manages it since the form was shown.
        try:
            type_writes.store(
                obj.pk,
                {name: form.stored[name] for name in names},
                before=form.before,
                design=form.design,
                now=utc_now(),
                emergency=emergency,
            )
        except TypeMovedError as error:
            raise OvertakenError from error
        if emergency is not None:
            message = emergencies.audited("Changed.", emergency)
            record_change(request, NotificationType, obj.pk, message, name=obj.name)
