"""Alert rules and incidents."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from bson import ObjectId
from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.safestring import SafeString
from unfold.widgets import UnfoldAdminSelectWidget

from domain.channels import Channel
from domain.time import utc_now
from domain.wait_reasons import WaitReason
from monitoring import incidents, saved_views
from monitoring.alert_rules import CHANGED_AT, DEFAULT_WINDOW_MINUTES
from monitoring.documents import IncidentDocument, SavedViewDocument
from monitoring.models import AlertKind, AlertRule, Incident
from notifications.models import NotificationType

from .saved_views.filters import may_see
from .saved_views.menu import OPEN
from .texts.labels import ALERT_LABELS, CHANNELS, options_of
from .widgets.actions import (
    not_found,
    parse_id,
    permission_check,
    record_change,
    render_page,
    require_post,
)
from .widgets.columns import active_column, chip, label_column, text_column, time_column, two_lines
from .widgets.durations import MINUTES, DurationField
from .widgets.filters import TIME_INPUT, choice_filter, time_filter
from .widgets.formats import duration
from .widgets.links import (
    BROADCAST,
    FAILURES,
    HOME,
    INCIDENT,
    INCIDENTS,
    NOTIFICATIONS,
    PROVIDERS,
    TYPE,
    WAITING,
    next_page,
)
from .widgets.lists import BoundedChangeList, ConsoleAdmin, ReadOnlyAdmin

MAY_ACKNOWLEDGE = "analytics.acknowledge_incident"
NOTE_LENGTH, MAX_OPEN = 500, 20
_PROBLEM_KEY = re.compile(r"[a-z_]{1,20}:[a-z0-9_.-]{0,64}", re.ASCII)
MAX_WINDOW_MINUTES = 24 * 60
MAX_FAILURES = 900  # Maximum threshold: failures are counted up to 1,000


StateFilter = choice_filter(
    "state",
    (("open", "Open"), ("resolved", "Resolved")),
    condition=lambda value: {"is_open": value == "open"},
)
_PAGES_OF_KINDS: Mapping[str, tuple[str, str]] = {
    AlertKind.SAVED_VIEW: ("Show the views", "admin:analytics_savedview_changelist"),
    AlertKind.SWEEP_OVERDUE: ("Show the workers", "admin:notifications_heartbeat_changelist"),
    AlertKind.ROLLUP_OVERDUE: ("Show the workers", "admin:notifications_heartbeat_changelist"),
    AlertKind.CALLBACK_DISABLED: ("Show the endpoints", "admin:callbacks_callback_changelist"),
    AlertKind.KEY_EXPIRING: ("Show the API clients", "admin:access_apiclient_changelist"),
    AlertKind.APPROVAL_OVERRIDDEN: ("Show the broadcast", BROADCAST),
    AlertKind.EMERGENCY_CHANGE: ("Show the type", TYPE),
    AlertKind.APPROVAL_STOPPED: ("Show the broadcast", BROADCAST),
}
_ABOUT_PROVIDERS: Mapping[str, WaitReason | None] = {
    AlertKind.BREAKER_OPEN: WaitReason.CIRCUIT_OPEN,
    AlertKind.PROVIDER_PAUSED: WaitReason.PROVIDER_PAUSED,
    AlertKind.NO_RECEIPTS: None,
}
"""Why deliveries wait meanwhile, if they do."""


_THRESHOLDS: Mapping[str, str] = {
    AlertKind.FAILURES: "more than {threshold} in {window} min",
    AlertKind.KEY_EXPIRING: "{threshold} days before",
    AlertKind.DAILY_UNITS: "{threshold} % of the cap",
    AlertKind.PUMPING: "more than {threshold} parts in ten minutes",
    AlertKind.APPROVAL_OVERRIDDEN: "in the last {window} min",
    AlertKind.EMERGENCY_CHANGE: "in the last {window} min",
    AlertKind.SAVED_VIEW: "more than {threshold} for {window} min",
}
"""Thresholds that aren't minutes, with their units."""


class AlertRuleForm(forms.ModelForm):
    """Form of an alert rule."""

    request: HttpRequest
    kind = forms.ChoiceField(
        label="Condition",
        choices=options_of(ALERT_LABELS),
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

    view_id = forms.ChoiceField(
        label="View",
        required=False,
        widget=UnfoldAdminSelectWidget,
        help_text="Saved view only: one that is shared.",
    )

    window_minutes = DurationField(
        label="Window",
        units=MINUTES,
        min_value=1,
        max_value=MAX_WINDOW_MINUTES,
        initial=DEFAULT_WINDOW_MINUTES,
        help_text="Final failures: the time range in which they are counted. Broadcast without an "
        "approval: how far back it is looked for. Saved view: how long there are more, without a "
        "break.",
    )

    class Meta:
        """The model and its editable fields."""

        model = AlertRule
        fields = (
            *("name", "kind", "channel", "type", "view_id"),
            *("threshold", "window_minutes", "is_enabled"),
        )
        labels = {"is_enabled": "Active"}
        help_texts = {
            "threshold": "Final failures: more than this number in the window. Saved view: more "
            "than this number for the whole window. API key: this many days before. Daily SMS cap: "
            "from this percentage on. Inflated SMS traffic: more than this many parts in ten "
            "minutes. Other conditions: for more than this number of minutes.",
        }

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        types = NotificationType.objects.only("name").order_by("pk")
        self.fields["type"].choices = [("", "All"), *((kind.pk, kind.name) for kind in types)]
        views = [(str(view["_id"]), view["name"]) for view in self._countable_views()]
        self.fields["view_id"].choices = [("", "None"), *views]

    def _countable_views(self) -> list[SavedViewDocument]:
        return [
            view
            for view in saved_views.shared()
            if view.get("match") and may_see(self.request, view["list"])
        ]

    def clean(self) -> dict[str, Any]:
        """Return the fields. Clears those that the condition doesn't have."""
        found = super().clean() or self.cleaned_data
        kind = found.get("kind")
        for name in ("channel", "type"):
            found[name] = (found.get(name) or None) if kind == AlertKind.FAILURES else None
        view = found.get("view_id") if kind == AlertKind.SAVED_VIEW else None
        found["view_id"] = ObjectId(view) if view else None
        if kind == AlertKind.SAVED_VIEW and not view and "view_id" not in self.errors:
            self.add_error("view_id", "Choose the view that is counted.")
        return found

    def clean_threshold(self) -> int:
        """Return the threshold. Raises ValidationError if it can't be reached."""
        return _bounded(self.cleaned_data["threshold"], 0, MAX_FAILURES)


def _bounded(number: int, lowest: int, highest: int) -> int:
    if not lowest <= number <= highest:
        raise forms.ValidationError(f"Expected {lowest} to {highest}.")
    return number


@dataclass(frozen=True, slots=True)
class EvidenceLink:
    """A link from an incident to what caused it."""

    label: str
    url: str


def evidence_of(incident: IncidentDocument, rule: AlertRule | None) -> list[EvidenceLink]:
    """Return links from an incident to its deliveries, its provider, or its settings."""
    kind, subject = incident["kind"], incidents.subject_of(incident)
    channel = incident.get("broken_channel")
    if kind == AlertKind.FAILURES:
        since = incident["opened_at"] - timedelta(
            minutes=rule.window_minutes if rule else DEFAULT_WINDOW_MINUTES
        )
        scope = {"channel": rule and rule.channel, "type": rule and rule.type}
        query = {name: value for name, value in scope.items() if value}
        query["failed_from"] = since.strftime(TIME_INPUT)
        return [EvidenceLink("Show the failures", f"{reverse(FAILURES)}?{urlencode(query)}")]
    if kind in _ABOUT_PROVIDERS:
        provider = f"{reverse(PROVIDERS)}#{subject.partition(':')[0]}"
        links = [EvidenceLink("Show the provider", provider)]
        if (reason := _ABOUT_PROVIDERS[kind]) is not None:
            query = {"reason": reason.value} | ({"channel": channel} if channel else {})
            links.append(
                EvidenceLink("Show what it holds", f"{reverse(WAITING)}?{urlencode(query)}")
            )
        return links
    if kind == AlertKind.WORK_OVERDUE:
        return [EvidenceLink("Show what is overdue", reverse(WAITING))]
    if kind == AlertKind.DAILY_UNITS:
        query = {"reason": WaitReason.DAILY_UNITS.value}
        return [EvidenceLink("Show what it holds", f"{reverse(WAITING)}?{urlencode(query)}")]
    if kind == AlertKind.PUMPING:
        query = {"created_from": incident["opened_at"].strftime(TIME_INPUT)}
        return [EvidenceLink("Show the texts", f"{reverse(NOTIFICATIONS)}?{urlencode(query)}")]
    # Only another version knows what an incident of another kind is about.
    page = _PAGES_OF_KINDS.get(kind)
    args = [subject] if page is not None and page[1] == BROADCAST else []
    if kind == AlertKind.EMERGENCY_CHANGE:
        args = [quote(subject.partition(CHANGED_AT)[0])]
    if kind == AlertKind.SAVED_VIEW and rule is not None and rule.view_id is not None:
        page, args = ("Show the view", OPEN), [str(rule.view_id)]
    return [EvidenceLink(page[0], reverse(page[1], args=args))] if page else []


@admin.register(AlertRule)
class AlertRuleAdmin(ConsoleAdmin):
    """The alert rules."""

    form = AlertRuleForm
    list_display = ("name", "condition", "limit", "scope", "active")
    active = active_column("is_enabled")
    ordering = ("name", "id")
    condition = label_column("Condition", "kind", ALERT_LABELS)

    def has_change_permission(self, request: HttpRequest, obj: AlertRule | None = None) -> bool:
        """Return whether staff may change a rule: not one of a kind of another version."""
        is_known = obj is None or obj.kind in ALERT_LABELS
        return is_known and super().has_change_permission(request, obj)

    def changed_columns(self, form: Any) -> list[str]:
        """Return the stored fields that a form changes. Another condition clears the scope."""
        changed = super().changed_columns(form)
        scope = ("channel", "type", "view_id") if "kind" in changed else ()
        return list(dict.fromkeys([*changed, *scope]))

    @admin.display(description="Threshold")
    def limit(self, row: Any) -> str:
        """Return the threshold with its unit."""
        if row.kind not in ALERT_LABELS:
            return str(row.threshold)
        minutes = "more than {threshold} min" if row.threshold else "immediately"
        text = _THRESHOLDS.get(row.kind, minutes)
        return text.format(threshold=row.threshold, window=row.window_minutes)

    def get_form(
        self, request: HttpRequest, obj: Any = None, change: bool = False, **options: Any
    ) -> Any:
        """Return the form's class, which offers the views of lists that the user may open."""
        form = super().get_form(request, obj, change, **options)
        form.request = request
        return form

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the counted views. That of a list that is closed to the user isn't."""
        shared = {
            view["_id"]: view["name"]
            for view in (saved_views.shared() if any(row.view_id for row in rows) else ())
            if may_see(request, view["list"])
        }
        for row in rows:
            row.view_name = row.view_id and shared.get(row.view_id, "Another view")

    @admin.display(description="Scope")
    def scope(self, row: Any) -> str:
        """Return the channel and the type of the rule, or its view."""
        if row.view_name:
            return str(row.view_name)
        channel = CHANNELS[Channel(row.channel)] if row.channel else None
        return ", ".join(part for part in (channel, row.type) if part) or "All"


class IncidentChangeList(BoundedChangeList):
    """A page of incidents, with the open ones above it."""

    open_incidents: Sequence[Mapping[str, Any]] = ()

    def get_results(self, request: HttpRequest) -> None:
        """Read one page, and the open incidents."""
        super().get_results(request)
        if not self.skips_rows and self.params.get("state") != "resolved":
            found = incidents.open_incidents(limit=MAX_OPEN)
            # Those at the top of the list need no second mention.
            first = [row.pk for row in self.result_list[: len(found)] if row.is_open]
            if [incident["_id"] for incident in found] != first:
                self.open_incidents = [{**incident, "pk": incident["_id"]} for incident in found]


@admin.register(Incident)
class IncidentAdmin(ReadOnlyAdmin):
    """The incidents, newest first, and the open ones above them. Staff acknowledge them."""

    list_display = ("opened", "incident", "state", "resolved", "acknowledged_by_display")
    list_display_links = ("opened", "incident")
    list_before_template = "console/open_incidents.html"
    changelist_class = IncidentChangeList
    list_filter = (StateFilter, time_filter("opened", "opened_at"))
    empty_title = "No incidents"
    empty_text = "An alert rule opens an incident while its condition is met."
    ordering = ("-opened_at", "-id")
    actions = ("acknowledge_selected",)
    list_fullwidth = True
    has_acknowledge_permission = permission_check(MAY_ACKNOWLEDGE)
    opened = time_column("Opened", "opened_at")
    resolved = time_column("Resolved", "resolved_at")
    acknowledged_by_display = text_column("Acknowledged by", "acknowledged_by")

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions."""
        return [
            self.url("mute/", self.mute_view, "mute"),
            self.url("<str:object_id>/acknowledge/", self.acknowledge_view, "acknowledge"),
            self.url("<str:object_id>/note/", self.note_view, "note"),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, *_args: Any, **_options: Any
    ) -> HttpResponse:
        """Show one incident: what it caused, its notes, and who knows."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        key = parse_id(object_id)
        document = incidents.get(key) if key is not None else None
        if document is None:
            return not_found(request, "Incident", INCIDENTS)
        rule = AlertRule.objects.filter(pk=document["rule_id"]).first()
        ends_at = document.get("resolved_at") or utc_now()
        may_change_rule = request.user.has_perm("analytics.change_alertrule")
        return render_page(
            self,
            request,
            "console/incident.html",
            title=document["title"],
            original=Incident(pk=document["_id"], title=document["title"]),
            incident=document,
            notes=[
                {**note, "at": datetime.fromisoformat(note["at"])}
                for note in document.get("notes") or ()
            ],
            key=document["_id"],
            own_url=reverse(INCIDENT, args=[document["_id"]]),
            state_chip=_state_chip(
                is_open=document["is_open"], acknowledged=document.get("acknowledged_at")
            ),
            evidence=evidence_of(document, rule),
            lasted=duration((ends_at - document["opened_at"]).total_seconds()),
            rule=rule.name if rule else "",
            rule_url=reverse("admin:analytics_alertrule_change", args=[rule.pk])
            if rule and may_change_rule
            else "",
            may_acknowledge=self.has_acknowledge_permission(request),
        )

    def note_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Add a note to an incident; POST only."""
        if refused := require_post(request, allowed=self.has_acknowledge_permission(request)):
            return refused
        key, text = parse_id(object_id), request.POST.get("note", "").strip()[:NOTE_LENGTH]
        by = request.user.get_username()
        if not text:
            messages.error(request, "No change: enter a note.")
        elif key is None or not incidents.add_note(key, text=text, by=by, now=utc_now()):
            return not_found(request, "Incident", INCIDENTS)
        else:
            record_change(request, Incident, key, "Added a note.", name=str(key))
        return HttpResponseRedirect(reverse(INCIDENT, args=[object_id]))

    def mute_view(self, request: HttpRequest) -> HttpResponse:
        """Hide a problem from Home for a day, or show it again; POST only."""
        if refused := require_post(request, allowed=self.has_acknowledge_permission(request)):
            return refused
        key, is_unmuted = request.POST.get("key", ""), request.POST.get("unmute") == "yes"
        if not _PROBLEM_KEY.fullmatch(key):
            messages.error(request, "No change: unknown problem.")
        elif is_unmuted:
            if incidents.unmute(key):
                record_change(request, Incident, key, "Unmuted on Home.", name=key)
        else:
            incidents.mute(key, by=request.user.get_username(), now=utc_now())
            record_change(request, Incident, key, "Muted on Home for 24 h.", name=key)
            messages.success(request, "Muted for 24 h.")
        return HttpResponseRedirect(reverse(HOME))

    def acknowledge_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Acknowledge one incident; POST only."""
        if refused := require_post(request, allowed=self.has_acknowledge_permission(request)):
            return refused
        # An outage's card acknowledges also the incidents about the failures that it explains.
        given = (object_id, *request.POST.getlist("also")[:MAX_OPEN])
        self._acknowledge(request, [key for text in given if (key := parse_id(text)) is not None])
        if "next" in request.POST:
            return HttpResponseRedirect(next_page(request))
        return HttpResponseRedirect(
            reverse(INCIDENTS if self.has_view_permission(request) else HOME)
        )

    @admin.action(description="Acknowledge", permissions=["acknowledge"])
    def acknowledge_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Acknowledge the selected incidents."""
        self._acknowledge(request, [row.pk for row in queryset.only("pk")[: self.list_per_page]])

    def _acknowledge(self, request: HttpRequest, keys: Sequence[Any]) -> None:
        user, now = request.user.get_username(), utc_now()
        found = Incident.objects.in_bulk(list(keys))
        done = [key for key in found if incidents.acknowledge(key, by=user, now=now)]
        for key in done:
            record_change(request, Incident, key, "Acknowledged.", name=found[key].title)
        if done:
            messages.success(request, f"Acknowledged: {len(done)}.")
        if len(done) < max(len(keys), 1):
            messages.warning(request, "Others are resolved or acknowledged.")

    @admin.display(description="Incident")
    def incident(self, row: Any) -> SafeString:
        """Return the title and the details."""
        return two_lines(row.title, row.detail)

    @admin.display(description="State")
    def state(self, row: Any) -> SafeString:
        """Return the state as a chip."""
        return _state_chip(is_open=row.is_open, acknowledged=row.acknowledged_at)


def _state_chip(*, is_open: bool, acknowledged: Any) -> SafeString:
    if not is_open:
        return chip("Resolved", "success")
    return chip("Acknowledged", "warning") if acknowledged else chip("Open", "danger")
