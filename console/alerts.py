"""Alerts: the rules, and the incidents that broke them."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from analytics import incidents
from analytics.models import AlertKind, AlertRule, Incident
from domain.states import Channel
from domain.time import utc_now
from notifications.models import NotificationType
from notifyproject.platform import audit

from .notifications.actions import parse_id
from .widgets.actions import require_post
from .widgets.columns import plain_chip
from .widgets.filters import ChoiceFilter, TimeFilter
from .widgets.labels import CHANNELS
from .widgets.lists import ConsoleAdmin, ReadOnlyAdmin

LIST = "admin:analytics_incident_changelist"
MAY_ACKNOWLEDGE = "analytics.acknowledge_incident"
KIND_LABELS = {
    AlertKind.FAILURES: "Final failures",
    AlertKind.BREAKER_OPEN: "Circuit open",
    AlertKind.WORK_OVERDUE: "Due work waits",
    AlertKind.SWEEP_OVERDUE: "No sweep",
    AlertKind.PROVIDER_PAUSED: "Provider paused",
    AlertKind.CALLBACK_DISABLED: "Callback off",
}
MAX_WINDOW_MINUTES = 24 * 60
MAX_FAILURES = 900
"""Failures are counted up to a thousand."""


class StateFilter(ChoiceFilter):
    """By whether it goes on."""

    title = "state"
    parameter_name = "state"
    options = (("open", "Open"), ("over", "Over"))

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it goes on, or does not."""
        return {"is_open": word == "open"}


class OpenedFilter(TimeFilter):
    """By when it began."""

    title = "opened"
    parameter_name = "opened"
    path = "opened_at"


class AlertRuleForm(forms.ModelForm):
    """What is watched, and how much of it is too much."""

    kind = forms.ChoiceField(
        label="What is watched",
        choices=[(kind.value, words) for kind, words in KIND_LABELS.items()],
        widget=UnfoldAdminSelectWidget,
    )
    channel = forms.ChoiceField(
        required=False,
        choices=[("", "All"), *((channel.value, CHANNELS[channel]) for channel in Channel)],
        widget=UnfoldAdminSelectWidget,
        help_text="Final failures only.",
    )
    type = forms.ChoiceField(
        required=False, widget=UnfoldAdminSelectWidget, help_text="Final failures only."
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = AlertRule
        fields = ("name", "kind", "channel", "type", "threshold", "window_minutes", "is_enabled")
        labels = {"window_minutes": "Window (minutes)", "is_enabled": "Switched on"}
        help_texts = {
            "threshold": "Final failures: more than so many in the window. All others: for more "
            "than so many minutes.",
            "window_minutes": "Final failures: how far back they are counted.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        types = NotificationType.objects.only("name").order_by("pk")
        self.fields["type"].choices = [("", "All"), *((one.pk, one.name) for one in types)]

    def clean(self) -> dict[str, Any]:
        """Return the fields; a rule about something else than failures has no channel or type."""
        found = super().clean() or self.cleaned_data
        is_about_failures = found.get("kind") == AlertKind.FAILURES
        for name in ("channel", "type"):
            found[name] = (found.get(name) or None) if is_about_failures else None
        return found

    def clean_threshold(self) -> int:
        """Return the threshold; raises ValidationError for what can never be reached."""
        threshold = int(self.cleaned_data["threshold"])
        if not 0 <= threshold <= MAX_FAILURES:
            raise forms.ValidationError(f"Expected 0 to {MAX_FAILURES}.")
        return threshold

    def clean_window_minutes(self) -> int:
        """Return the window; raises ValidationError for one beyond a day."""
        minutes = int(self.cleaned_data["window_minutes"])
        if not 1 <= minutes <= MAX_WINDOW_MINUTES:
            raise forms.ValidationError(f"Expected 1 to {MAX_WINDOW_MINUTES}.")
        return minutes


@admin.register(AlertRule)
class AlertRuleAdmin(ConsoleAdmin):
    """What is watched."""

    form = AlertRuleForm
    list_display = ("name", "watches", "limit", "scope", "is_enabled")
    ordering = ("name", "id")

    @admin.display(description="Watches")
    def watches(self, row: Any) -> str:
        """What it is about."""
        return KIND_LABELS[AlertKind(row.kind)]

    @admin.display(description="Raised by")
    def limit(self, row: Any) -> str:
        """How much is too much."""
        if row.kind == AlertKind.FAILURES:
            return f"more than {row.threshold} in {row.window_minutes} min"
        return f"more than {row.threshold} min" if row.threshold else "at once"

    @admin.display(description="Of")
    def scope(self, row: Any) -> str:
        """The channel and the type it is narrowed to."""
        channel = CHANNELS[Channel(row.channel)] if row.channel else None
        return ", ".join(part for part in (channel, row.type) if part) or "All"


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """What broke a rule, newest first; whoever takes care of it acknowledges it."""

    list_display = ("incident", "state", "opened", "resolved", "acknowledged_by_display")
    list_display_links = None
    list_filter = (StateFilter, OpenedFilter)
    empty_title = "Nothing has happened"
    empty_words = "What an alert rule finds is an incident, until it is over."
    ordering = ("-opened_at", "-id")
    actions = ("acknowledge_selected",)
    list_fullwidth = True

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look at the list; an incident has no page of its own."""
        return obj is None and super().has_view_permission(request)

    def has_acknowledge_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may say that somebody takes care of it."""
        return bool(request.user.has_perm(MAY_ACKNOWLEDGE))

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and that of acknowledging."""
        own = path(
            "<str:object_id>/acknowledge/",
            self.admin_site.admin_view(self.acknowledge_view),
            name="analytics_incident_acknowledge",
        )
        return [own, *super().get_urls()]

    def acknowledge_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Note that the user takes care of an incident; POST only."""
        if refused := require_post(request, allowed=self.has_acknowledge_permission(request)):
            return refused
        key = parse_id(object_id)
        self._acknowledge(request, [key] if key is not None else [])
        may_look = self.has_view_permission(request)
        return HttpResponseRedirect(reverse(LIST if may_look else "admin:index"))

    @admin.action(description="Acknowledge", permissions=["acknowledge"])
    def acknowledge_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Note that the user takes care of the ticked incidents."""
        self._acknowledge(request, [row.pk for row in queryset.only("pk")[: self.list_per_page]])

    def _acknowledge(self, request: HttpRequest, keys: Sequence[Any]) -> None:
        user, now = request.user.get_username(), utc_now()
        found = Incident.objects.in_bulk(list(keys))
        done = [key for key in found if incidents.acknowledge(key, by=user, now=now)]
        for key in done:
            audit.record(
                by=request.user.pk,
                model=Incident,
                object_id=str(key),
                name=found[key].title,
                message="Acknowledged.",
            )
        if done:
            messages.success(request, f"Acknowledged: {len(done)}.")
        if len(done) < max(len(keys), 1):
            messages.warning(request, "The others are over, or somebody takes care of them.")

    @admin.display(description="Incident")
    def incident(self, row: Any) -> SafeString:
        """What is wrong."""
        return format_html(
            '<span class="two-lines"><span>{}</span><span class="quiet">{}</span></span>',
            row.title,
            row.detail,
        )

    @admin.display(description="State")
    def state(self, row: Any) -> SafeString:
        """Whether it goes on."""
        color, words = ("danger", "Open") if row.is_open else ("success", "Over")
        if row.is_open and row.acknowledged_at:
            color, words = "warning", "Acknowledged"
        return plain_chip(words, color)

    @admin.display(description="Began (UTC)")
    def opened(self, row: Any) -> SafeString:
        """When it was noticed."""
        return format_html("<time>{}</time>", f"{row.opened_at:%Y-%m-%d %H:%M}")

    @admin.display(description="Over (UTC)")
    def resolved(self, row: Any) -> SafeString | str:
        """When it was over."""
        at = row.resolved_at
        return format_html("<time>{}</time>", f"{at:%Y-%m-%d %H:%M}") if at else "-"

    @admin.display(description="Taken care of by")
    def acknowledged_by_display(self, row: Any) -> str:
        """Who acknowledged it."""
        return row.acknowledged_by or "-"
