"""Rooms: the list, the form of one, a test, and enabling after a fix."""

from collections.abc import Mapping
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminRadioSelectWidget,
    UnfoldAdminTextInputWidget,
)

from delivery.rooms import close_circuits
from domain.addresses import ROOM, InvalidAddressError
from domain.channels import ROOM as CHANNEL
from domain.rooms import MAX_GAP, InvalidTargetError, RoomKind
from domain.time import utc_now
from notifications import validation
from notifications.intake import preview
from rooms import registry
from rooms.models import NAME_LENGTH, TARGET_LENGTH, Room

from .providers import MAY_TEST, show_not_sent, show_test_sent
from .widgets.actions import not_found, record_change, require_post
from .widgets.columns import chip, text_column, time_column
from .widgets.durations import DurationField
from .widgets.formats import timestamp
from .widgets.lists import ConsoleAdmin, OvertakenError, section
from .widgets.reauthentication import require_reauthentication

KINDS: Mapping[str, str] = {
    RoomKind.SLACK_WEBHOOK: "Slack webhook",
    RoomKind.SLACK_BOT: "Slack bot",
    RoomKind.TEAMS: "Microsoft Teams",
    RoomKind.DISCORD: "Discord",
    RoomKind.WEBHOOK: "Webhook",
}
_KIND_NOTES = {
    RoomKind.SLACK_WEBHOOK: "the URL of an incoming webhook, https://hooks.slack.com/services/…",
    RoomKind.SLACK_BOT: "the ID of a channel that the bot of SLACK_BOT_TOKEN is in",
    RoomKind.TEAMS: "the URL of a workflow that posts to a channel",
    RoomKind.DISCORD: "the URL of a webhook, https://discord.com/api/webhooks/…",
    RoomKind.WEBHOOK: "any https URL; messages are signed as in Standard Webhooks",
}
MAY_SWITCH = "rooms.switch_room"
TEAMS_NOTE = (
    "Teams confirms a message before its workflow runs, so that it stays “sent”. A workflow "
    "belongs to a person: give it a co-owner, or it ends with their account. It can't post to a "
    "private channel."
)
TOO_MANY = f"There are {registry.MAX_ROOMS:,} rooms already. Remove one first."
SHOWN_ONCE = "Signing secret, shown once: {}"


class RoomForm(forms.ModelForm):
    """Form of a room. A stored target is never shown: an empty input keeps it."""

    slug = forms.CharField(
        label="ID",
        max_length=64,
        widget=UnfoldAdminTextInputWidget,
        help_text="The room in API requests, such as ops. It's permanent.",
        error_messages={"unique": "There is a room with this ID."},
    )
    name = forms.CharField(max_length=NAME_LENGTH, widget=UnfoldAdminTextInputWidget)
    kind = forms.ChoiceField(
        choices=[(kind.value, f"{KINDS[kind]}: {_KIND_NOTES[kind]}") for kind in RoomKind],
        initial=RoomKind.SLACK_WEBHOOK.value,
        widget=UnfoldAdminRadioSelectWidget,
    )
    address = forms.CharField(
        label="Target",
        max_length=TARGET_LENGTH,
        required=False,
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off", "spellcheck": "false"}),
        help_text="A URL or a channel's ID. It is stored encrypted, because it is a credential.",
    )
    min_gap_seconds = DurationField(
        label="Minimum gap",
        min_value=0,
        max_value=int(MAX_GAP.total_seconds()),
        initial=1,
        help_text="Time between two messages. Those that would wait over 20 seconds become one.",
    )

    class Meta:
        """The model and its editable fields."""

        model = Room
        fields = ("slug", "name", "kind", "min_gap_seconds")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.is_new = not self.instance.pk
        if not self.is_new and "address" in self.fields:
            self.fields["address"].label = "New target"
            self.fields["address"].help_text = "Empty: unchanged. A new one enables the room."

    def clean_slug(self) -> str:
        """Return the ID. Raises ValidationError for an invalid one."""
        try:
            return ROOM.normalize(self.cleaned_data["slug"])
        except InvalidAddressError as error:
            raise forms.ValidationError(str(error)) from error

    def clean(self) -> dict[str, Any]:
        """Return the fields. Adds what is wrong with the target, or that there are too many."""
        cleaned: dict[str, Any] = super().clean() or self.cleaned_data
        if self.is_new and registry.is_full():
            self.add_error(None, TOO_MANY)
        kind = cleaned.get("kind") or self.instance.kind
        target = cleaned.get("address", "")
        if self.is_new and not target:
            self.add_error("address", "Enter where the room is.")
        elif target and kind:
            try:
                registry.check(kind, target)
            except InvalidTargetError as error:
                self.add_error("address", str(error))
        return cleaned


@admin.register(Room)
class RoomAdmin(ConsoleAdmin):
    """The rooms. Admins add and change them, and operators enable them after a fix."""

    form = RoomForm
    change_form_outer_after_template = "console/rooms/actions.html"
    list_display = ("name", "room_id", "kind_display", "where", "state", "last_accepted")
    ordering = ("slug",)
    empty_title = "No rooms"
    empty_text = "A room is a channel of Slack, Teams, or Discord, or a webhook."
    room_id = text_column("ID", "slug")
    where = text_column("Target", "masked_target")
    last_accepted = time_column("Last accepted", "last_accepted_at")
    created = time_column("Created", "created_at")
    changed = time_column("Last change", "updated_at")

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions."""
        switch = self.switch_view
        return [
            self.url("<str:slug>/test/", self.test_view, "test"),
            self.url("<str:slug>/rotate/", self.rotate_view, "rotate"),
            self.url("<str:slug>/enable/", switch, "enable", enabled=True),
            self.url("<str:slug>/disable/", switch, "disable", enabled=False),
        ]

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        """Return what is known of a room, and its form."""
        form = section("Settings", "name", "kind_display", "address", "min_gap_seconds")
        if obj is None:
            return (section(None, "slug", "name", "kind", "address", "min_gap_seconds"),)
        known = section(None, "room_id", "state", "meaning", "where", "last_accepted")
        return (known, form, section("Details", "created", "changed"))

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        """Return the read-only fields of an existing room."""
        shown = ("state", "meaning", "where", "last_accepted", "created", "changed")
        return (*shown, "room_id", "kind_display") if obj else ()

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the room; every process uses it from its next batch on."""
        try:
            self._store(request, obj, form, change)
        except (
            registry.RoomExistsError,
            registry.TooManyRoomsError,
            registry.UnknownRoomError,
        ) as error:
            raise OvertakenError from error

    def _store(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        now, cleaned = utc_now(), form.cleaned_data
        if change and not form.has_changed():
            return
        target, gap = cleaned.get("address") or "", cleaned["min_gap_seconds"] or 0
        if change:
            registry.change(
                obj.pk, name=cleaned["name"], target=target, min_gap_seconds=gap, now=now
            )
        else:
            kind = RoomKind(obj.kind)
            secret = registry.create(
                slug=obj.slug, kind=kind, name=obj.name, target=target, min_gap_seconds=gap, now=now
            )
            if secret is not None:
                messages.warning(request, SHOWN_ONCE.format(secret))
        if target:
            close_circuits(obj.pk)

    def delete_model(self, request: HttpRequest, obj: Any) -> None:
        """Remove the room."""
        registry.remove(obj.pk)

    def delete_queryset(self, request: HttpRequest, queryset: Any) -> None:
        """Remove the selected rooms."""
        for room in queryset:
            registry.remove(room.pk)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the context of the buttons below the form."""
        obj = self.get_object(request, object_id)
        if obj is None:
            return {}
        verb = "disable" if obj.enabled else "enable"
        is_signed = obj.kind == RoomKind.WEBHOOK

        def url(name: str) -> str:
            return reverse(f"admin:{self.url_name}_{name}", args=[obj.pk])

        return {
            "is_enabled": obj.enabled,
            "may_test": request.user.has_perm(MAY_TEST),
            "test_url": url("test"),
            "may_rotate": is_signed and self.has_change_permission(request),
            "rotate_url": url("rotate"),
            "can_set_enabled": request.user.has_perm(MAY_SWITCH),
            "set_enabled_url": url(verb),
            "consequence": "Messages to it fail until it is enabled. Staff can retry them then."
            if obj.enabled
            else "It takes messages again. Fix the cause first: one more refusal disables it.",
        }

    def test_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Send a test to a room; POST only."""
        if refused := require_post(request, allowed=request.user.has_perm(MAY_TEST)):
            return refused
        if (found := self._found(request, slug)) is not None:
            return found
        try:
            notification_id = preview.send_test(channel=CHANNEL, address=slug, now=utc_now())
        except validation.InvalidRequestError as error:
            show_not_sent(request, error)
        else:
            self._record(request, slug, f"Sent a test: {notification_id}.")
            show_test_sent(request, notification_id)
        return self._back(slug)

    def rotate_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Rotate the secret of a webhook, and show it once; POST only."""
        allowed = self.has_change_permission(request)
        if refused := require_post(request, allowed=allowed) or require_reauthentication(request):
            return refused
        try:
            secret = registry.rotate(slug, now=utc_now())
        except registry.UnknownRoomError:
            return not_found(request, "Webhook", f"admin:{self.url_name}_changelist")
        messages.warning(request, SHOWN_ONCE.format(secret))
        self._record(request, slug, "Secret rotated.")
        return self._back(slug)

    def switch_view(self, request: HttpRequest, slug: str, *, enabled: bool) -> HttpResponse:
        """Enable or disable a room; POST only."""
        if refused := require_post(request, allowed=request.user.has_perm(MAY_SWITCH)):
            return refused
        if (found := self._found(request, slug)) is not None:
            return found
        switch, state = (registry.enable, "enabled") if enabled else (registry.disable, "disabled")
        if switch(slug, now=utc_now()):
            if enabled:
                close_circuits(slug)
            self._record(request, slug, f"{state.capitalize()}.")
            messages.success(request, f"Room {state}.")
        else:
            messages.warning(request, f"No change: already {state}.")
        return self._back(slug)

    @admin.display(description="Kind")
    def kind_display(self, row: Any) -> str:
        """Return the kind."""
        return KINDS.get(row.kind, row.kind)

    @admin.display(description="State")
    def state(self, row: Any) -> SafeString:
        """Return the state as a chip."""
        if row.enabled:
            return chip("Active", "success")
        return chip("Disabled" if row.disabled_reason else "Disabled by staff", "danger")

    @admin.display(description="Explanation")
    def meaning(self, row: Any) -> SafeString | str:
        """Return why the room is disabled, or that it takes messages, with a note for Teams."""
        if not row.enabled:
            reason = row.disabled_reason or registry.BY_STAFF
            return format_html("Disabled since {}. {}", timestamp(row.disabled_at), reason)
        return TEAMS_NOTE if row.kind == RoomKind.TEAMS else "It takes messages."

    def _found(self, request: HttpRequest, slug: str) -> HttpResponse | None:
        """Return the response if there is no such room."""
        if slug in registry.find_rooms():
            return None
        return not_found(request, "Room", f"admin:{self.url_name}_changelist")

    def _back(self, slug: str) -> HttpResponse:
        return HttpResponseRedirect(reverse(f"admin:{self.url_name}_change", args=[quote(slug)]))

    def _record(self, request: HttpRequest, slug: str, message: str) -> None:
        record_change(request, Room, slug, message, name=slug)
