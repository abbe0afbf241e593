"""The addresses of the API, version 1. A slash at the end is allowed, not asked for."""

from django.urls import URLPattern, re_path
from rest_framework.views import APIView

from . import (
    actions,
    broadcasts,
    bulk,
    callbacks,
    cleanup,
    devices,
    devices_receipts,
    inbox,
    inbox_tokens,
    preview,
    recipients,
    statistics,
    suppressions,
    templates,
    topics,
    views,
)

ID = r"(?P<notification_id>[^/]{1,64})"
USER = r"(?P<user_id>[^/]{1,128})"
DEVICE = r"(?P<device_id>[^/]{1,64})"
TOPIC = r"topics/(?P<topic>[^/]{1,128})"
ADDRESS = r"(?P<channel>[^/]{1,40})/(?P<address>[\s\S]{1,320}?)"
TYPE = r"types/(?P<slug>[^/]{1,64})"
BROADCAST = r"broadcasts/(?P<broadcast_id>[^/]{1,64})"
VERSION = rf"{TYPE}/templates/versions/(?P<number>[0-9]{{1,6}})"


def route(pattern: str, view: type[APIView], name: str) -> URLPattern:
    """Return the address of a view."""
    return re_path(rf"^{pattern}/?$", view.as_view(), name=name)


urlpatterns = [
    route("notifications", views.Notifications, "notifications"),
    route("notifications/bulk", bulk.Bulk, "bulk"),
    route("notifications/cleanup", cleanup.Cleanup, "cleanup"),
    route("notifications/stats", statistics.Stats, "stats"),
    route("notifications/preview", preview.Preview, "preview"),
    route(f"notifications/{ID}", views.OneNotification, "notification"),
    route(f"notifications/{ID}/attempts", views.Attempts, "attempts"),
    route(f"notifications/{ID}/cancel", actions.Cancel, "cancel"),
    route(f"notifications/{ID}/retry", actions.Retry, "retry"),
    route(f"notifications/{ID}/resend", actions.Resend, "resend"),
    route(f"notifications/{ID}/reschedule", actions.Reschedule, "reschedule"),
    route("broadcasts", broadcasts.Broadcasts, "broadcasts"),
    route(BROADCAST, broadcasts.OneBroadcast, "broadcast"),
    route(f"{BROADCAST}/pause", broadcasts.Pause, "broadcast-pause"),
    route(f"{BROADCAST}/resume", broadcasts.Resume, "broadcast-resume"),
    route(f"{BROADCAST}/cancel", broadcasts.CancelBroadcast, "broadcast-cancel"),
    route(f"recipients/{USER}/notifications", views.RecipientNotifications, "history"),
    route(f"recipients/{USER}/notifications/read-all", views.RecipientReadAll, "read-all"),
    route(f"recipients/{USER}", recipients.OnePerson, "recipient"),
    route(f"recipients/{USER}/export", recipients.Export, "recipient-export"),
    route(f"recipients/{USER}/preferences", recipients.Preferences, "recipient-preferences"),
    route(f"{TOPIC}/members", topics.Members, "topic-members"),
    route(f"{TOPIC}/members/{USER}", topics.OneMember, "topic-member"),
    route("suppressions", suppressions.Suppressions, "suppressions"),
    route(f"suppressions/{ADDRESS}", suppressions.OneAddress, "suppression"),
    route(TYPE, templates.OneType, "type"),
    route(f"{TYPE}/templates", templates.Templates, "templates"),
    route(VERSION, templates.OneVersion, "template-version"),
    route(f"{VERSION}/publish", templates.Publish, "template-publish"),
    route("callbacks", callbacks.Callbacks, "callbacks"),
    route("callbacks/secret", callbacks.Secret, "callback-secret"),
    route("callbacks/test", callbacks.Test, "callback-test"),
    route("callbacks/deliveries", callbacks.Deliveries, "callback-deliveries"),
    route(
        r"callbacks/deliveries/(?P<delivery_id>[^/]{1,120})/replay",
        callbacks.Replay,
        "callback-replay",
    ),
    route("devices", devices.Devices, "devices"),
    route(f"devices/{DEVICE}", devices.OneDevice, "device"),
    route(f"devices/{DEVICE}/heartbeat", devices.Heartbeat, "device-heartbeat"),
    route(f"devices/{DEVICE}/preferences", devices.Preferences, "device-preferences"),
    route(f"devices/{DEVICE}/receipts", devices_receipts.Receipts, "device-receipts"),
    route("inbox", inbox.Feed, "inbox"),
    route("inbox/counts", inbox.Counts, "inbox-counts"),
    route("inbox/read-all", inbox.ReadAll, "inbox-read-all"),
    route("inbox/stream", inbox.Stream, "inbox-stream"),
    route("inbox/tokens", inbox_tokens.Tokens, "inbox-tokens"),
    route(r"inbox/tokens/(?P<jti>[^/]{1,64})", inbox_tokens.OneToken, "inbox-token"),
    route(f"inbox/{ID}/read", inbox.Read, "inbox-read"),
    route(f"inbox/{ID}/unread", inbox.Unread, "inbox-unread"),
    route(f"inbox/{ID}/archive", inbox.Archive, "inbox-archive"),
    route(f"inbox/{ID}/unarchive", inbox.Unarchive, "inbox-unarchive"),
]
