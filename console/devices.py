"""Devices: the list, the page of one, and enabling or disabling."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from devices import presence, push_keys, status, tokens
from devices.documents import DEVICES
from devices.models import DeactivationReason, Device
from devices.registration import DESCRIPTIVE_FIELDS
from domain.time import utc_now

from .texts import disabled
from .texts.labels import PLATFORM_LABELS, options_of
from .widgets.actions import EnableDisableAdmin, permission_check, record_change
from .widgets.columns import chip, id_column, label_column, link, time_column
from .widgets.filters import choice_filter, time_filter
from .widgets.formats import EMPTY, count_of, timestamp
from .widgets.links import NOTIFICATION, NOTIFICATIONS
from .widgets.lists import section

R = DeactivationReason
ACTIVE, INACTIVE = "active", "inactive"
SEARCH_CAP = 200
_LONG_AGO = datetime(1970, 1, 1, tzinfo=UTC)


PlatformFilter = choice_filter("platform", options_of(PLATFORM_LABELS))


def _state_condition(value: str) -> dict[str, Any]:
    if value == ACTIVE:
        # Nearly all devices are active, so the index of the list's order is best.
        return {"is_active": True, "last_seen": {"$gte": _LONG_AGO}}
    # Each reason is named, so that the index serves the list's order for each of them.
    reasons = [reason.value for reason in DeactivationReason] if value == INACTIVE else [value]
    return {"deactivation_reason": {"$in": reasons}}


StateFilter = choice_filter(
    "state",
    (
        (ACTIVE, "Active"),
        (INACTIVE, "Inactive"),
        *options_of(disabled.DEVICES),
    ),
    condition=_state_condition,
)


def set_active(request: HttpRequest, devices: Sequence[Device], *, active: bool) -> None:
    """Enable or disable devices, record each change, and show the number changed."""
    changed = [d for d in devices if _set_device_active(d.pk, active=active, by=request.user)]
    state = "enabled" if active else "disabled"
    for device in changed:
        record_change(request, Device, device.pk, f"{state.capitalize()}.", name=str(device))
    text = f"{count_of(len(changed), 'device')} {state}."
    if others := len(devices) - len(changed):
        text += f" {others} already {state} or deleted."
    messages.success(request, text)


def _set_device_active(device_id: str, *, active: bool, by: Any) -> bool:
    now = utc_now()
    if active:
        return status.reactivate(device_id=device_id, now=now)
    evidence, reason = status.Evidence(at=now, source=by.get_username()), R.BY_OPERATOR
    return bool(
        status.deactivate(device_ids=[device_id], reason=reason, evidence=evidence, now=now)
    )


def _key_problem(fingerprint: str) -> str | None:
    """Return what is wrong with the key that a browser subscribed with."""
    known = list(push_keys.public_keys())
    if fingerprint not in known:
        return "Subscribed with a key that isn't configured"
    return None if fingerprint == known[0] else "Subscribed with an old key"


@admin.register(Device)
class DeviceAdmin(EnableDisableAdmin):
    """The registered devices, the most recently seen first; clients manage them."""

    # Tokens are masked, because anyone with a token could push to the recipient.

    list_display = (
        "device",
        "user_id",
        "platform_display",
        "status",
        "last_seen_display",
        "last_accepted",
        "reached_by",
    )
    list_filter = (
        StateFilter,
        PlatformFilter,
        time_filter("last seen", "last_seen", parameter="seen"),
    )
    fieldsets = (
        section(None, "user_id", "platform_display", "status", "meaning", "notifications_link"),
        section(
            "Activity",
            "app_presence",
            "last_seen_display",
            "last_accepted",
            "last_receipt",
            "token_rejections",
        ),
        section("Preferences", "preferences", "quiet_hours"),
        section("App", *DESCRIPTIVE_FIELDS),
        section(
            "Details", "key", "reached_by", "key_fingerprint", "evidence", "registered", "changed"
        ),
    )
    search_fields = ("user_id",)
    search_help_text = "User ID or device ID"
    empty_title = "No devices"
    empty_text = "Clients register devices by the API, on sign-in or with a new token."
    ordering = ("-last_seen", "-id")
    actions = ("disable_selected", "enable_selected")
    object_label = "Device"
    enable_consequence = (
        "Resumes push to this device and clears the evidence against it. If the provider still "
        "rejects its token, the next push disables it again."
    )
    disable_consequence = "Stops push to this device until it registers again or staff enable it."
    last_seen_display = time_column("Last seen", "last_seen", empty="Never")
    last_accepted = time_column("Last accepted by provider", "last_accepted_at", empty="Never")
    last_receipt = time_column("Last receipt", "last_receipt_at", empty="Never")
    registered = time_column("Registered", "created_at")
    changed = time_column("Last change", "updated_at")
    key = id_column()
    platform_display = label_column("Platform", "platform", PLATFORM_LABELS)
    has_deactivate_permission = permission_check("devices.deactivate_device")
    has_reactivate_permission = permission_check("devices.reactivate_device")

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Search by user ID or device ID. URLs are logged, so tokens can't be searched for."""
        rows = DEVICES().find({"user_id": text}, {"_id": 1}, limit=SEARCH_CAP)
        ids = {text, *(row["_id"] for row in rows)}
        return queryset.filter(pk__in=sorted(ids))

    @admin.action(description="Disable", permissions=["deactivate"])
    def disable_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Disable the selected devices."""
        set_active(request, list(queryset), active=False)

    @admin.action(description="Enable", permissions=["reactivate"])
    def enable_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Enable the selected devices."""
        set_active(request, list(queryset), active=True)

    def is_enabled(self, obj: Any) -> bool:
        """Return whether a device is active."""
        return bool(obj.is_active)

    def can_set_enabled(self, request: HttpRequest, *, enabled: bool) -> bool:
        """Return whether the user may enable or disable devices."""
        return bool(request.user.has_perm(f"devices.{'re' if enabled else 'de'}activate_device"))

    def set_enabled(self, request: HttpRequest, obj: Any, *, enabled: bool) -> None:
        """Enable or disable a device."""
        set_active(request, [obj], active=enabled)

    @admin.display(description="Device")
    def device(self, row: Any) -> str:
        """Return the device's model or, if unknown, the beginning of its ID."""
        return row.device_model or f"{row.pk[:12]}…"

    @admin.display(description="State")
    def status(self, row: Any) -> SafeString:
        """Return the state as a chip."""
        if row.is_active:
            return chip("Active", "success")
        return chip(disabled.explained(row.deactivation_reason, disabled.DEVICES).label, "danger")

    @admin.display(description="Explanation")
    def meaning(self, row: Any) -> SafeString | str:
        """Return the meaning of the state and, if inactive, how to enable the device."""
        if row.is_active:
            return "Receives push notifications."
        meaning = disabled.explained(row.deactivation_reason, disabled.DEVICES).meaning
        return format_html("Inactive since {}. {}", timestamp(row.deactivated_at), meaning)

    @admin.display(description="Evidence")
    def evidence(self, row: Any) -> SafeString | str:
        """Return the evidence for the deactivation."""
        found = row.deactivation_evidence
        if found is None:
            return EMPTY
        source = f"{found.source}{f': {found.code}' if found.code else ''}"
        if not found.notification_id:
            return format_html("{}, {}", source, timestamp(found.at))
        notification = link(reverse(NOTIFICATION, args=[found.notification_id]), "Notification")
        return format_html("{}, {} {}", source, timestamp(found.at), notification)

    @admin.display(description="All notifications for this recipient")
    def notifications_link(self, row: Any) -> SafeString:
        """Return a link to the notifications of the device's recipient."""
        query = urlencode({"q": row.user_id})
        return link(f"{reverse(NOTIFICATIONS)}?{query}", "Show notifications")

    @admin.display(description="Current state")
    def app_presence(self, row: Any) -> SafeString | str:
        """Return the app's last heartbeat, if any in the last hour."""
        known = presence.read([row.pk]).get(row.pk)
        if known is None:
            return "No heartbeat in the last hour"
        facts = (
            "Online" if known.online else "Offline",
            "app in the foreground" if known.app_foreground else "app in the background",
            *(() if known.notification_enabled else ("notifications disabled in the settings",)),
        )
        return format_html("{} ({})", ", ".join(facts), timestamp(known.last_active))

    @admin.display(description="Preferences")
    def preferences(self, row: Any) -> str:
        """Return the device's preferences."""
        preferences = row.notification_preferences
        if preferences is None or (preferences.enabled and not preferences.categories):
            return "No restrictions"
        if not preferences.enabled:
            return "Muted"
        return ", ".join(
            f"{name}: {'allowed' if is_allowed else 'muted'}"
            for name, is_allowed in preferences.categories.items()
        )

    @admin.display(description="Quiet hours")
    def quiet_hours(self, row: Any) -> str:
        """Return the device's quiet hours."""
        hours = row.notification_preferences and row.notification_preferences.quiet_hours
        if not hours or not hours.enabled:
            return "None"
        return f"{hours.start} to {hours.end} ({hours.timezone or row.timezone or 'UTC'})"

    @admin.display(description="Token or push service")
    def reached_by(self, row: Any) -> SafeString | str:
        """Return the masked token, or a browser's push service and what is wrong with its key."""
        if row.subscription is None:
            return tokens.mask_token(row.device_token) if row.device_token else EMPTY
        problem = _key_problem(row.subscription.fingerprint)
        mark = chip(problem, "warning") if problem else ""
        return format_html("{} {}", row.subscription.host, mark)

    @admin.display(description="Key")
    def key_fingerprint(self, row: Any) -> str:
        """Return the fingerprint of the key that a browser subscribed with."""
        return row.subscription.fingerprint if row.subscription else EMPTY
