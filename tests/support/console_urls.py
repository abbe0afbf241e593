"""Every URL of the console and its effect. Add an entry for every new URL."""

from collections.abc import Collection, Iterator
from contextlib import suppress
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import NoReverseMatch, URLPattern, URLResolver, get_resolver, reverse
from django.urls.converters import IntConverter

from console.files import urls as file_urls

NOBODY = "0" * 24
"""An ID that doesn't exist."""
READS = frozenset(
    {
        "index",
        "search",
        "autocomplete",
        "jsi18n",
        "app_list",
        "view_on_site",
        "login",
        "password_change",
        "password_change_done",
        "notifications_notificationtype_version",
        "notifications_notification_refresh",
        "notifications_notification_email",
        "notifications_notificationtype_email",
        "notifications_broadcast_email",
        "notifications_design_changes",
        "notifications_design_frame",
        "notifications_design_item",
        "notifications_design_preview",
        "notifications_bulkoperation_progress",
        "notifications_bulkoperation_results",
        "analytics_savedview_counts",
        "analytics_savedview_open",
    }
)
"""Addresses that change at most the session."""
CHANGES = {
    "logout": "",
    "access_apiclient_issue_key": "access.change_apiclient",
    "access_apiclient_revoke_key": "access.change_apiclient",
    "devices_device_enable": "devices.reactivate_device",
    "devices_device_disable": "devices.deactivate_device",
    "analytics_incident_acknowledge": "analytics.acknowledge_incident",
    "analytics_incident_note": "analytics.acknowledge_incident",
    "analytics_incident_mute": "analytics.acknowledge_incident",
    "analytics_savedview_up": "analytics.change_savedview",
    "analytics_savedview_down": "analytics.change_savedview",
    "callbacks_callback_enable": "callbacks.switch_callback",
    "callbacks_callback_disable": "callbacks.switch_callback",
    "callbacks_callbackmessage_replay": "callbacks.replay_callbackmessage",
    "notifications_broadcast_pause": "notifications.pause_broadcast",
    "notifications_broadcast_resume": "notifications.resume_broadcast",
    "notifications_broadcast_cancel": "notifications.cancel_broadcast",
    "notifications_broadcast_submit": "notifications.submit_broadcast",
    "notifications_broadcast_approve": "notifications.approve_broadcast",
    "notifications_broadcast_reject": "notifications.approve_broadcast",
    "notifications_broadcast_override": "notifications.override_broadcast",
    "notifications_digest_close": "notifications.end_digest",
    "notifications_digest_cancel": "notifications.end_digest",
    "notifications_bulkoperation_start": "notifications.run_bulkoperation",
    "notifications_bulkoperation_pause": "notifications.run_bulkoperation",
    "notifications_bulkoperation_resume": "notifications.run_bulkoperation",
    "notifications_bulkoperation_cancel": "notifications.run_bulkoperation",
    "notifications_design_preview_new": "notifications.change_design",
    "notifications_design_remove": "notifications.change_design",
    "notifications_design_restore": "notifications.change_design",
    "notifications_providerstate_pause": "notifications.pause_provider",
    "notifications_providerstate_resume": "notifications.pause_provider",
    "notifications_providerstate_close": "notifications.pause_provider",
    "notifications_providerstate_test": "notifications.test_provider",
    "notifications_notification_retry": "notifications.retry_notification",
    "notifications_notification_resend": "notifications.resend_notification",
    "notifications_notification_cancel": "notifications.cancel_notification",
    "notifications_notification_run": "notifications.reschedule_notification",
    "notifications_notification_reschedule": "notifications.reschedule_notification",
    "notifications_notification_lift": "notifications.resend_notification"
    "&recipients.delete_suppression",
    "notifications_notification_correct": "notifications.correct_address"
    "&notifications.resend_notification",
    "notifications_notification_restore": "notifications.restore_notification",
    "notifications_notification_reveal": "notifications.reveal_addresses"
    "&!notifications.view_addresses",
    "notifications_notificationtype_publish": "notifications.change_notificationtype",
    "notifications_notificationtype_try": "notifications.test_provider",
    "notifications_webhooklog_replay": "notifications.replay_webhooklog",
    "rooms_room_test": "notifications.test_provider",
    "rooms_room_rotate": "rooms.change_room",
    "rooms_room_enable": "rooms.switch_room",
    "rooms_room_disable": "rooms.switch_room",
    "recipients_recipient_reveal": "notifications.reveal_addresses&!notifications.view_addresses",
    "recipients_recipient_sign_out": "recipients.sign_out_recipient",
    "recipients_recipient_export": "recipients.export_recipient",
    "recipients_recipient_erase": "recipients.erase_recipient",
}
"""Addresses that accept POST only, and the required permissions, if any, with ``&`` between
them. One with ``!`` closes the address: who sees addresses has none to reveal."""
FORMS = {
    "notifications_bulkoperation_new": "notifications.run_bulkoperation",
    "notifications_design_new": "notifications.change_design",
    "notifications_notificationtype_new_version": "notifications.change_notificationtype",
}
"""Names of URLs with a form, and the required permission."""
SENDING = {
    "send-one": {},
    "send-one-offered": {},
    "send-one-form": {"slug": "mfa_code"},
    "send-one-email": {"slug": "mfa_code"},
}
"""Names of the URLs of one message, which are outside the admin's namespace, and their values.
Each needs the permission ``notifications.send_one``."""
FILES = ("send-file", *(name for _, name in file_urls.PAGES.values()))
"""Names of the URLs of files of recipients. Each needs the permission
``notifications.send_file``."""
REAUTHENTICATED = frozenset(
    {
        "access_apiclient_issue_key",
        "rooms_room_rotate",
        "notifications_notification_reveal",
        "recipients_recipient_reveal",
        "recipients_recipient_export",
        "recipients_recipient_erase",
        "access_staffuser_add",
        "access_staffuser_change",
        "auth_user_password_change",
        "auth_group_add",
        "auth_group_change",
    }
)
"""Names of URLs whose POST requires a password or code of the last 10 minutes."""
MODEL_PAGES = ("_changelist", "_history", "_add", "_change", "_delete")
"""Endings of the names of each model's URLs."""


def named() -> set[str]:
    """Return the names of the console's URLs, without model pages."""
    names = {pattern.name for pattern in _patterns(get_resolver()) if pattern.name}
    return {name for name in names if not name.endswith(MODEL_PAGES)}


def _patterns(resolver: URLResolver, *, inside: bool = False) -> Iterator[URLPattern]:
    for pattern in resolver.url_patterns:
        if isinstance(pattern, URLResolver):
            yield from _patterns(pattern, inside=inside or pattern.namespace == "admin")
        elif inside:
            yield pattern


def addresses_with(value: str, *, number: int = 999) -> list[str]:
    """Return each URL of the console that has variables, filled with this value or this number."""
    addresses = set()
    for pattern in _patterns(get_resolver()):
        converters = pattern.pattern.converters
        if not converters or pattern.name is None:
            continue
        values = {
            name: number if isinstance(converter, IntConverter) else value
            for name, converter in converters.items()
        }
        with suppress(NoReverseMatch):
            addresses.add(reverse(f"admin:{pattern.name}", kwargs=values))
    return sorted(addresses)


def file_paths() -> list[str]:
    """Return the path of each page of files, for a file that doesn't exist."""
    return [reverse(name, args=() if name == "send-file" else (NOBODY,)) for name in FILES]


def page_paths() -> list[str]:
    """Return each path that may be a page: of every model with its first object, and all others."""
    found = {
        reverse("admin:index"),
        reverse("own-alerts"),
        reverse("send-one"),
        reverse("send-file"),
    }
    for model in admin.site._registry:
        name = f"admin:{model._meta.app_label}_{model._meta.model_name}"
        first = model._default_manager.first()
        for page in MODEL_PAGES:
            if page in ("_changelist", "_add"):
                found.add(reverse(f"{name}{page}"))
            elif first is not None:
                found.add(reverse(f"{name}{page}", args=[quote(first.pk)]))
    for name in {*READS, *FORMS} - {"app_list", "view_on_site"}:
        found.add(reverse(f"admin:{name}", kwargs=arguments(name)))
    return sorted(found)


def opens(needed: str, permissions: Collection[str]) -> bool:
    """Return whether permissions open a page that needs ``a&b``, ``a|b``, ``!a``, or none."""
    return not needed or any(
        all((name.lstrip("!") in permissions) != name.startswith("!") for name in each.split("&"))
        for each in needed.split("|")
    )


def arguments(name: str) -> dict[str, Any]:
    """Return a value for each variable of the URL with this name."""
    (pattern,) = [pattern for pattern in _patterns(get_resolver()) if pattern.name == name]
    values = {"object_id": NOBODY, "slug": "mfa_code", "number": 1}
    values |= {"kind": "brand", "name": "acme"}
    known = pattern.pattern.converters
    return {part: values.get(part, NOBODY) for part in known}
