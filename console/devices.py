"""Devices: the list, the page, and enabling or disabling one."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from devices import presence, status, tokens
from devices.models import DeactivationReason, Device, Platform
from notifyproject.db.collections import collection

from .widgets.actions import require_post
from .widgets.columns import plain_chip
from .widgets.filters import ChoiceFilter, TimeFilter
from .widgets.lists import ReadOnlyAdmin

R = DeactivationReason
PLATFORM_LABELS: Mapping[Platform, str] = {
    Platform.ANDROID: "Android",
    Platform.IOS: "iOS",
    Platform.WEB: "Web",
}
REASON_LABELS: Mapping[DeactivationReason, str] = {
    R.UNREGISTERED: "App removed",
    R.SENDER_MISMATCH: "Another sender's",
    R.SUSPECT: "Malformed token",
    R.REPLACED: "New token",
    R.BY_USER: "Off by its app",
    R.BY_OPERATOR: "Off by staff",
}
MEANINGS: Mapping[DeactivationReason, str] = {
    R.UNREGISTERED: (
        "The push provider says that the app was removed, or got a new token. It comes back by "
        "itself when the person opens the app."
    ),
    R.SENDER_MISMATCH: (
        "The push provider says that the token belongs to another project than ours. The app was "
        "built with the wrong keys: its developers can mend it."
    ),
    R.SUSPECT: (
        "The push provider called its token malformed three times in a row. It comes back by "
        "itself when the app registers again."
    ),
    R.REPLACED: "The app got a new token: it is in the list as another device.",
    R.BY_USER: (
        "The app switched it off, such as when its user signed out. It comes back when the app "
        "registers again."
    ),
    R.BY_OPERATOR: "A member of staff switched it off: the audit log says who.",
}
ACTIVE, INACTIVE = "active", "inactive"
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


class PlatformFilter(ChoiceFilter):
    """By where the app runs."""

    title = "platform"
    parameter_name = "platform"
    options = tuple((platform.value, words) for platform, words in PLATFORM_LABELS.items())


class StatusFilter(ChoiceFilter):
    """By whether anything is pushed to it, and why not."""

    title = "state"
    parameter_name = "state"
    options = (
        (ACTIVE, "Active"),
        (INACTIVE, "Off, for any reason"),
        *((reason.value, f"Off: {words.lower()}") for reason, words in REASON_LABELS.items()),
    )

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it is active, or off for the reason."""
        if word == ACTIVE:
            # Nearly all are: they are read in the list's order, by its index.
            return {"is_active": True, "last_seen": {"$gte": _LONG_AGO}}
        # Reasons are named one by one: then each is read by the index, in the list's order.
        reasons = [reason.value for reason in DeactivationReason] if word == INACTIVE else [word]
        return {"deactivation_reason": {"$in": reasons}}


class SeenFilter(TimeFilter):
    """By when its app was last seen."""

    title = "last seen"
    parameter_name = "seen"
    path = "last_seen"


def set_active(request: HttpRequest, devices: Sequence[Device], *, on: bool) -> None:
    """Switch devices, record each that changed, and tell the user how many did."""
    changed = [
        device for device in devices if _set_device_active(device.pk, on=on, by=request.user)
    ]
    state = "on again" if on else "off"
    for device in changed:
        _record(request, device, f"Switched {state}.")
    count = len(changed)
    text = f"{count} {'device is' if count == 1 else 'devices are'} switched {state}."
    if others := len(devices) - count:
        text += f" {others} {'was' if others == 1 else 'were'} so already, or gone."
    messages.success(request, text)


def _set_device_active(device_id: str, *, on: bool, by: Any) -> bool:
    now = datetime.now(UTC)
    now = now.replace(microsecond=now.microsecond // 1000 * 1000)
    if on:
        return status.reactivate(device_id=device_id, now=now)
    return bool(
        status.deactivate(
            device_ids=[device_id],
            reason=DeactivationReason.BY_OPERATOR,
            evidence=status.Evidence(at=now, source=by.get_username()),
            now=now,
        )
    )


def _record(request: HttpRequest, device: Device, message: str) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(Device),
        object_id=device.pk,
        object_repr=str(device),
        action_flag=CHANGE,
        change_message=message,
    )


CHANGE_URL = "admin:devices_device_change"
SEARCH_CAP = 200


@admin.register(Device)
class DeviceAdmin(ReadOnlyAdmin):
    """The devices that apps have registered, the most recently seen first.

    The apps keep them. A token is all one needs to push to somebody: nobody sees one whole.
    """

    list_display = (
        "device",
        "user_id",
        "platform_display",
        "status",
        "last_seen_display",
        "last_accepted",
        "token",
    )
    list_filter = (StatusFilter, PlatformFilter, SeenFilter)
    fieldsets = (
        (
            None,
            {"fields": ("user_id", "platform_display", "status", "meaning", "notifications_link")},
        ),
        (
            "Life",
            {
                "fields": (
                    "app_presence",
                    "last_seen_display",
                    "last_accepted",
                    "last_receipt",
                    "suspicions",
                )
            },
        ),
        ("Wishes", {"fields": ("preferences", "quiet_hours")}),
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
        set_active(request, list(queryset), on=False)

    @admin.action(description="Switch on again", permissions=["reactivate"])
    def switch_on_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Push to the ticked devices again."""
        set_active(request, list(queryset), on=True)

    def switch_view(self, request: HttpRequest, object_id: str, *, on: bool) -> HttpResponse:
        """Switch one device on or off; POST only."""
        if refused := require_post(request, allowed=self._may_switch(request, on=on)):
            return refused
        device = self.get_object(request, object_id)
        if device is None:
            messages.warning(request, "There is no such device any more.")
            return HttpResponseRedirect(reverse("admin:devices_device_changelist"))
        set_active(request, [device], on=on)
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
    def device(self, row: Any) -> str:
        """What its app calls it, or else the beginning of its id."""
        return row.device_model or f"{row.pk[:12]}…"

    @admin.display(description="Platform")
    def platform_display(self, row: Any) -> str:
        """Where the app runs."""
        return PLATFORM_LABELS[Platform(row.platform)]

    @admin.display(description="State")
    def status(self, row: Any) -> SafeString:
        """Whether anything is pushed to it."""
        if row.is_active:
            return plain_chip("Active", "success")
        return plain_chip(REASON_LABELS[DeactivationReason(row.deactivation_reason)], "danger")

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
        source = f"{found.source}{f': {found.code}' if found.code else ''}, {_time(found.at)}"
        if not found.notification_id:
            return source
        url = reverse("admin:notifications_notification_change", args=[found.notification_id])
        return format_html('{} <a class="text-link" href="{}">Notification</a>', source, url)

    @admin.display(description="Everything sent")
    def notifications_link(self, row: Any) -> SafeString:
        """Where the notifications to its user are listed."""
        url = reverse("admin:notifications_notification_changelist")
        query = urlencode({"q": row.user_id})
        return format_html('<a class="text-link" href="{}?{}">Show notifications</a>', url, query)

    @admin.display(description="Now")
    def app_presence(self, row: Any) -> str:
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
    def last_seen_display(self, row: Any) -> str:
        """When its app last registered or sent a heartbeat."""
        return _time(row.last_seen)

    @admin.display(description="Provider last accepted (UTC)")
    def last_accepted(self, row: Any) -> str:
        """The last proof of life from the provider."""
        return _time(row.last_accepted_at)

    @admin.display(description="Last receipt (UTC)")
    def last_receipt(self, row: Any) -> str:
        """When the device itself last reported a message."""
        return _time(row.last_receipt_at)

    @admin.display(description="Wants")
    def preferences(self, row: Any) -> str:
        """What it wants to be told."""
        preferences = row.notification_preferences
        if preferences is None or (preferences.enabled and not preferences.categories):
            return "Everything"
        if not preferences.enabled:
            return "Nothing"
        words = (
            f"{name}: {'yes' if is_wanted else 'no'}"
            for name, is_wanted in preferences.categories.items()
        )
        return ", ".join(words)

    @admin.display(description="Quiet hours")
    def quiet_hours(self, row: Any) -> str:
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
        return tokens.mask_token(row.device_token)


def _time(at: datetime | None) -> str:
    return f"{at:%Y-%m-%d %H:%M}" if at else "Never"
