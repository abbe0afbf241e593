"""The list of devices and the page about one: what is known of it, and why it is off."""

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from notifyproject.console.posts import refusal
from notifyproject.console.words import chip
from notifyproject.db.admin import ReadOnlyAdmin
from notifyproject.db.collections import collection

from .. import presence, tokens
from ..models import DeactivationReason, Device, Platform
from . import switching
from .explanations import MEANINGS, PLATFORMS, REASONS
from .filters import PlatformFilter, SeenFilter, StandingFilter

CHANGE_URL = "admin:devices_device_change"
SEARCH_CAP = 200


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    """The devices that apps have registered, the most recently seen first.

    The apps keep them. A token is all one needs to push to somebody: nobody sees one whole.
    """

    list_display = ("shown", "user_id", "on_platform", "standing", "seen", "accepted", "token")
    list_filter = (StandingFilter, PlatformFilter, SeenFilter)
    fieldsets = (
        (None, {"fields": ("user_id", "on_platform", "standing", "meaning", "everything_sent")}),
        ("Life", {"fields": ("now", "seen", "accepted", "receipt", "suspicions")}),
        ("Wishes", {"fields": ("wants", "quiet")}),
        ("App", {"fields": ("device_model", "os_version", "app_version", "language", "timezone")}),
        ("More", {"fields": ("key", "token", "evidence", "registered", "changed")}),
    )
    search_fields = ("user_id",)
    search_help_text = "User id or device id"
    empty_title = "No device is registered"
    empty_words = "Apps register them by the API, when somebody signs in or gets a new token."
    ordering = ("-last_seen", "-id")
    actions = ("switch_off_selected", "switch_on_selected")
    change_form_outer_after_template = "admin/devices/device/switch.html"

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return a user's devices, or the one with this id.

        Not by token: what is searched for stands in the address, and addresses are logged.
        """
        text = search_term.strip()
        if not text:
            return queryset, False
        rows = collection("devices").find({"user_id": text}, {"_id": 1}, limit=SEARCH_CAP)
        ids = {text, *(row["_id"] for row in rows)}
        return queryset.filter(pk__in=sorted(ids)), False

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those that switch one device."""
        own = [
            path(
                f"<path:object_id>/switch-{'on' if on else 'off'}/",
                self.admin_site.admin_view(self.switch_view),
                {"on": on},
                name=f"devices_device_switch_{'on' if on else 'off'}",
            )
            for on in (True, False)
        ]
        return own + super().get_urls()

    def has_deactivate_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may switch devices off."""
        return request.user.has_perm("devices.deactivate_device")

    def has_reactivate_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may switch devices on again."""
        return request.user.has_perm("devices.reactivate_device")

    @admin.action(description="Switch off", permissions=["deactivate"])
    def switch_off_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Push nothing more to the ticked devices."""
        switching.switch(request, list(queryset), on=False)

    @admin.action(description="Switch on again", permissions=["reactivate"])
    def switch_on_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Push to the ticked devices again."""
        switching.switch(request, list(queryset), on=True)

    def switch_view(self, request: HttpRequest, object_id: str, *, on: bool) -> HttpResponse:
        """Switch one device on or off; POST only."""
        if refused := refusal(request, may=self._may_switch(request, on=on)):
            return refused
        device = self.get_object(request, object_id)
        if device is None:
            messages.warning(request, "There is no such device any more.")
            return HttpResponseRedirect(reverse("admin:devices_device_changelist"))
        switching.switch(request, [device], on=on)
        return HttpResponseRedirect(reverse(CHANGE_URL, args=[device.pk]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a device, with a button that switches it."""
        device = self.get_object(request, object_id)
        shown: dict[str, Any] = {"device": device, "may_switch": False}
        if device is not None:
            on = not device.is_active
            name = f"admin:devices_device_switch_{'on' if on else 'off'}"
            shown["may_switch"] = self._may_switch(request, on=on)
            shown["switch_url"] = reverse(name, args=[device.pk])
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def _may_switch(self, request: HttpRequest, *, on: bool) -> bool:
        if on:
            return self.has_reactivate_permission(request)
        return self.has_deactivate_permission(request)

    @admin.display(description="Device")
    def shown(self, row: Any) -> str:
        """What its app calls it, or else the beginning of its id."""
        return row.device_model or f"{row.pk[:12]}…"

    @admin.display(description="Platform")
    def on_platform(self, row: Any) -> str:
        """Where the app runs."""
        return PLATFORMS[Platform(row.platform)]

    @admin.display(description="State")
    def standing(self, row: Any) -> SafeString:
        """Whether anything is pushed to it."""
        if row.is_active:
            return chip("Active", "success")
        return chip(REASONS[DeactivationReason(row.deactivation_reason)], "danger")

    @admin.display(description="What that means")
    def meaning(self, row: Any) -> str:
        """What being off means, and what brings it back."""
        if row.is_active:
            return "Notifications are pushed to it."
        at = _time(row.deactivated_at)
        return f"Off since {at}. {MEANINGS[DeactivationReason(row.deactivation_reason)]}"

    @admin.display(description="Evidence")
    def evidence(self, row: Any) -> SafeString | str:
        """What the deactivation rests on."""
        found = row.deactivation_evidence
        if found is None:
            return "-"
        said = f"{found.source}{f': {found.code}' if found.code else ''}, {_time(found.at)}"
        if not found.notification_id:
            return said
        url = reverse("admin:notifications_notification_change", args=[found.notification_id])
        return format_html('{} <a class="text-link" href="{}">Notification</a>', said, url)

    @admin.display(description="Everything sent")
    def everything_sent(self, row: Any) -> SafeString:
        """Where the notifications to its user are listed."""
        url = reverse("admin:notifications_notification_changelist")
        query = urlencode({"q": row.user_id})
        return format_html('<a class="text-link" href="{}?{}">Show notifications</a>', url, query)

    @admin.display(description="Now")
    def now(self, row: Any) -> str:
        """What its app said of itself within the last hour."""
        known = presence.read([row.pk]).get(row.pk)
        if known is None:
            return "No heartbeat within the last hour"
        words = (
            "online" if known.online else "offline",
            "app in the foreground" if known.app_foreground else "app in the background",
            *(() if known.notification_enabled else ("notifications off in its settings",)),
        )
        return f"{', '.join(words).capitalize()} ({_time(known.last_active)})"

    @admin.display(description="Last seen (UTC)")
    def seen(self, row: Any) -> str:
        """When its app last registered or sent a heartbeat."""
        return _time(row.last_seen)

    @admin.display(description="Provider last accepted (UTC)")
    def accepted(self, row: Any) -> str:
        """The last proof of life from the provider."""
        return _time(row.last_accepted_at)

    @admin.display(description="Last receipt (UTC)")
    def receipt(self, row: Any) -> str:
        """When the device itself last reported a message."""
        return _time(row.last_receipt_at)

    @admin.display(description="Wants")
    def wants(self, row: Any) -> str:
        """What it wants to be told."""
        wishes = row.notification_preferences
        if wishes is None or (wishes.enabled and not wishes.categories):
            return "Everything"
        if not wishes.enabled:
            return "Nothing"
        words = (f"{name}: {'yes' if wish else 'no'}" for name, wish in wishes.categories.items())
        return ", ".join(words)

    @admin.display(description="Quiet hours")
    def quiet(self, row: Any) -> str:
        """When it is left alone."""
        hours = row.notification_preferences and row.notification_preferences.quiet_hours
        if not hours or not hours.enabled:
            return "None"
        return f"{hours.start} to {hours.end} ({hours.timezone or row.timezone or 'UTC'})"

    @admin.display(description="Id")
    def key(self, row: Any) -> SafeString:
        """Its id whole; it breaks where the line ends."""
        return format_html('<span style="overflow-wrap: anywhere">{}</span>', row.pk)

    @admin.display(description="Its user's since (UTC)")
    def registered(self, row: Any) -> str:
        """When its present user got it."""
        return _time(row.created_at)

    @admin.display(description="Last change (UTC)")
    def changed(self, row: Any) -> str:
        """When it last changed, proofs of life aside."""
        return _time(row.updated_at)

    @admin.display(description="Token")
    def token(self, row: Any) -> str:
        """The beginning and the end of its token."""
        return tokens.shortened(row.device_token)


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "Never"
