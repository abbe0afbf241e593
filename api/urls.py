"""URLs of the API, provider webhooks, unsubscribe links, probes, and metrics.

A trailing slash is optional in version 1 of the API.
"""

from django.urls import URLPattern, include, path, re_path
from drf_spectacular.views import SpectacularSwaggerView
from rest_framework.views import APIView

from . import broadcasts, health, metrics, suppressions, topics, unsubscribe, webhooks
from .callbacks import views as callback_views
from .devices import views as device_views
from .inbox import tokens
from .inbox import views as inbox_views
from .notifications import bulk, cleanup, statistics
from .notifications import views as notification_views
from .openapi.document import OpenAPIDocument
from .recipients import views as recipient_views
from .types import views as type_views

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


version_1 = [
    route("notifications", notification_views.Notifications, "notifications"),
    route("notifications/bulk", bulk.BulkCreate, "bulk"),
    route("notifications/cleanup", cleanup.Cleanup, "cleanup"),
    route("notifications/stats", statistics.NotificationStatistics, "stats"),
    route("notifications/preview", notification_views.Preview, "preview"),
    route(f"notifications/{ID}", notification_views.NotificationDetail, "notification"),
    route(f"notifications/{ID}/attempts", notification_views.NotificationAttempts, "attempts"),
    route(f"notifications/{ID}/cancel", notification_views.Cancel, "cancel"),
    route(f"notifications/{ID}/retry", notification_views.Retry, "retry"),
    route(f"notifications/{ID}/resend", notification_views.Resend, "resend"),
    route(f"notifications/{ID}/reschedule", notification_views.Reschedule, "reschedule"),
    route("broadcasts", broadcasts.Broadcasts, "broadcasts"),
    route(BROADCAST, broadcasts.BroadcastDetail, "broadcast"),
    route(f"{BROADCAST}/pause", broadcasts.Pause, "broadcast-pause"),
    route(f"{BROADCAST}/resume", broadcasts.Resume, "broadcast-resume"),
    route(f"{BROADCAST}/cancel", broadcasts.CancelBroadcast, "broadcast-cancel"),
    route(f"recipients/{USER}/notifications", recipient_views.RecipientNotifications, "history"),
    route(
        f"recipients/{USER}/notifications/read-all", recipient_views.RecipientReadAll, "read-all"
    ),
    route(f"recipients/{USER}", recipient_views.RecipientDetail, "recipient"),
    route(f"recipients/{USER}/export", recipient_views.Export, "recipient-export"),
    route(f"recipients/{USER}/preferences", recipient_views.Preferences, "recipient-preferences"),
    route(f"{TOPIC}/members", topics.TopicMembers, "topic-members"),
    route(f"{TOPIC}/members/{USER}", topics.TopicMember, "topic-member"),
    route("suppressions", suppressions.Suppressions, "suppressions"),
    route(f"suppressions/{ADDRESS}", suppressions.AddressSuppressions, "suppression"),
    route(TYPE, type_views.TypeDetail, "type"),
    route(f"{TYPE}/templates", type_views.TemplateVersions, "templates"),
    route(VERSION, type_views.TemplateVersionDetail, "template-version"),
    route(f"{VERSION}/publish", type_views.Publish, "template-publish"),
    route("callbacks", callback_views.CallbackEndpoint, "callbacks"),
    route("callbacks/secret", callback_views.CallbackSecret, "callback-secret"),
    route("callbacks/test", callback_views.Test, "callback-test"),
    route("callbacks/deliveries", callback_views.Deliveries, "callback-deliveries"),
    route(
        r"callbacks/deliveries/(?P<delivery_id>[^/]{1,120})/replay",
        callback_views.Replay,
        "callback-replay",
    ),
    route("devices", device_views.Devices, "devices"),
    route(f"devices/{DEVICE}", device_views.DeviceDetail, "device"),
    route(f"devices/{DEVICE}/heartbeat", device_views.Heartbeat, "device-heartbeat"),
    route(f"devices/{DEVICE}/preferences", device_views.Preferences, "device-preferences"),
    route(f"devices/{DEVICE}/receipts", device_views.DeviceReceipts, "device-receipts"),
    route("inbox", inbox_views.InboxItems, "inbox"),
    route("inbox/counts", inbox_views.Counts, "inbox-counts"),
    route("inbox/read-all", inbox_views.ReadAll, "inbox-read-all"),
    route("inbox/stream", inbox_views.Stream, "inbox-stream"),
    route("inbox/tokens", tokens.Tokens, "inbox-tokens"),
    route(r"inbox/tokens/(?P<jti>[^/]{1,64})", tokens.InboxTokenDetail, "inbox-token"),
    route(f"inbox/{ID}/read", inbox_views.Read, "inbox-read"),
    route(f"inbox/{ID}/unread", inbox_views.Unread, "inbox-unread"),
    route(f"inbox/{ID}/archive", inbox_views.Archive, "inbox-archive"),
    route(f"inbox/{ID}/unarchive", inbox_views.Unarchive, "inbox-unarchive"),
]

urlpatterns = [
    path("healthz", health.healthz, name="healthz"),
    path("readyz", health.readyz, name="readyz"),
    path("metrics", metrics.metrics, name="metrics"),
    path("api/schema", OpenAPIDocument.as_view(), name="schema"),
    path("api/docs", SpectacularSwaggerView.as_view(url_name="schema"), name="docs"),
    path("api/v1/", include(version_1)),
    path("webhooks/sendgrid", webhooks.SendGridWebhook.as_view(), name="webhook-sendgrid"),
    path("webhooks/whatsapp", webhooks.WhatsAppWebhook.as_view(), name="webhook-whatsapp"),
    path("u/<str:token>", unsubscribe.Unsubscribe.as_view(), name="unsubscribe"),
    path("u/<str:token>/undo", unsubscribe.Resubscribe.as_view(), name="resubscribe"),
]
