"""The addresses of the API, version 1. A slash at the end is allowed, not asked for."""

from django.urls import URLPattern, re_path
from rest_framework.views import APIView

from . import devices, devices_receipts, preview, templates, views

ID = r"(?P<notification_id>[^/]{1,64})"
USER = r"(?P<user_id>[^/]{1,128})"
DEVICE = r"(?P<device_id>[^/]{1,64})"
TYPE = r"types/(?P<slug>[^/]{1,64})"
VERSION = rf"{TYPE}/templates/versions/(?P<number>[0-9]{{1,6}})"


def route(pattern: str, view: type[APIView], name: str) -> URLPattern:
    """Return the address of a view."""
    return re_path(rf"^{pattern}/?$", view.as_view(), name=name)


urlpatterns = [
    route("notifications", views.Notifications, "notifications"),
    route("notifications/preview", preview.Preview, "preview"),
    route(f"notifications/{ID}", views.OneNotification, "notification"),
    route(f"notifications/{ID}/attempts", views.Attempts, "attempts"),
    route(f"notifications/{ID}/cancel", views.Cancel, "cancel"),
    route(f"notifications/{ID}/retry", views.Retry, "retry"),
    route(f"notifications/{ID}/resend", views.Resend, "resend"),
    route(f"recipients/{USER}/notifications", views.RecipientNotifications, "history"),
    route(f"recipients/{USER}/notifications/read-all", views.RecipientReadAll, "read-all"),
    route(TYPE, templates.OneType, "type"),
    route(f"{TYPE}/templates", templates.Templates, "templates"),
    route(VERSION, templates.OneVersion, "template-version"),
    route(f"{VERSION}/publish", templates.Publish, "template-publish"),
    route("devices", devices.Devices, "devices"),
    route(f"devices/{DEVICE}", devices.OneDevice, "device"),
    route(f"devices/{DEVICE}/heartbeat", devices.Heartbeat, "device-heartbeat"),
    route(f"devices/{DEVICE}/preferences", devices.Preferences, "device-preferences"),
    route(f"devices/{DEVICE}/receipts", devices_receipts.Receipts, "device-receipts"),
]
