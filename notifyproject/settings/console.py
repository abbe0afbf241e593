"""Appearance and menu of the console: settings of django-unfold."""

from collections.abc import Callable
from typing import Any

from django.http import HttpRequest
from django.templatetags.static import static
from django.urls import reverse, reverse_lazy

from .environment import BASE_DIR

STATICFILES_DIRS = [BASE_DIR / "static"]
LOGIN_REDIRECT_URL = "admin:index"

_BADGES = {
    "production": ("Production", "danger"),
    "local": ("This machine", "info"),
    "test": ("Test", "warning"),
}


def environment_badge(_request: HttpRequest) -> tuple[str, str]:
    """Return the label and the color of the installation's badge."""
    from django.conf import settings

    name = str(settings.SETTINGS_MODULE).rpartition(".")[2]
    return _BADGES.get(name, (name.capitalize(), "warning"))


def _has_permission(permission: str) -> Callable[[HttpRequest], bool]:
    """Return a permission check of the request's user."""

    def check(request: HttpRequest) -> bool:
        return bool(request.user.has_perm(permission))

    return check


def _is_home(request: HttpRequest) -> bool:
    """Return whether this is the home page: every other URL starts with its URL."""
    return request.path == reverse("admin:index")


def _menu_item(title: str, icon: str, model: str) -> dict[str, Any]:
    """Return a menu entry for the list of a model, ``app_model``."""
    app, _, name = model.rpartition("_")
    return {
        "title": title,
        "icon": icon,
        "link": reverse_lazy(f"admin:{model}_changelist"),
        "permission": _has_permission(f"{app}.view_{name}"),
    }


NAVIGATION = [
    {
        "items": [
            {
                "title": "Home",
                "icon": "monitoring",
                "link": reverse_lazy("admin:index"),
                "active": _is_home,
            },
            {
                **_menu_item("Failed deliveries", "error", "notifications_failednotification"),
                "permission": _has_permission("notifications.view_notification"),
            },
            _menu_item("All notifications", "notifications", "notifications_notification"),
            _menu_item("Broadcasts", "campaign", "notifications_broadcast"),
            {
                **_menu_item(
                    "Scheduled and waiting", "schedule", "notifications_waitingnotification"
                ),
                "permission": _has_permission("notifications.view_notification"),
            },
            _menu_item("Bulk operations", "dynamic_feed", "notifications_bulkoperation"),
        ]
    },
    {
        "title": "Recipients and devices",
        "separator": True,
        "items": [
            _menu_item("Recipients", "group", "recipients_recipient"),
            _menu_item("Devices", "devices", "devices_device"),
            _menu_item("Suppressions", "block", "recipients_suppression"),
        ],
    },
    {
        "title": "Activity",
        "separator": True,
        "items": [
            _menu_item("Attempts", "send", "notifications_deliveryattempt"),
            _menu_item("Provider webhooks", "webhook", "notifications_webhooklog"),
            _menu_item("Callbacks to apps", "call_made", "callbacks_callbackmessage"),
            _menu_item("Audit log", "history", "admin_logentry"),
        ],
    },
    {
        "title": "System",
        "separator": True,
        "items": [
            _menu_item("Providers", "hub", "notifications_providerstate"),
            _menu_item("Workers and queues", "conveyor_belt", "notifications_heartbeat"),
            _menu_item("Incidents", "notifications_active", "analytics_incident"),
            _menu_item("Alert rules", "rule", "analytics_alertrule"),
            _menu_item("Periodic tasks", "event_repeat", "django_celery_beat_periodictask"),
            _menu_item("Retention", "auto_delete", "notifications_retentionpolicy"),
        ],
    },
    {
        "title": "Set-up",
        "separator": True,
        "items": [
            _menu_item("Types", "category", "notifications_notificationtype"),
            _menu_item("API clients and keys", "key", "access_apiclient"),
            _menu_item("Callbacks", "phone_callback", "callbacks_callback"),
            _menu_item("Staff", "badge", "access_staffuser"),
            _menu_item("Roles", "shield_person", "auth_group"),
        ],
    },
    {
        "title": "Schedules of tasks",
        "separator": True,
        "collapsible": True,
        "items": [
            _menu_item("Intervals", "timer", "django_celery_beat_intervalschedule"),
            _menu_item("Crontabs", "calendar_clock", "django_celery_beat_crontabschedule"),
            _menu_item("Clocked", "alarm", "django_celery_beat_clockedschedule"),
            _menu_item("Solar", "wb_twilight", "django_celery_beat_solarschedule"),
        ],
    },
]

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Notifications",
    "SITE_HEADER": "Notifications",
    "SITE_SUBHEADER": "Operators' console",
    "SITE_SYMBOL": "notifications_active",
    "SITE_URL": None,
    "SITE_FAVICONS": [
        {
            "rel": "icon",
            "type": "image/svg+xml",
            "href": lambda _request: static("console/icon.svg"),
        }
    ],
    "SHOW_HISTORY": False,
    "SHOW_VIEW_ON_SITE": False,
    "ENVIRONMENT": "notifyproject.settings.console.environment_badge",
    "DASHBOARD_CALLBACK": "console.home.dashboard",
    "LOGIN": {"image": lambda _request: static("console/login.svg")},
    "STYLES": [
        lambda _request: static("console/console.css"),
        lambda _request: static("console/lists.css"),
    ],
    "SCRIPTS": [lambda _request: static("console/palette.js")],
    "COMMAND": {"search_callback": "console.home.search_notifications"},
    "SIDEBAR": {"show_search": True, "command_search": True, "navigation": NAVIGATION},
    "ACCOUNT": {
        "navigation": [
            {"title": "Second factor", "link": reverse_lazy("second-factor-set-up")},
            {"title": "Change password", "link": reverse_lazy("admin:password_change")},
        ]
    },
    "BORDER_RADIUS": "8px",
    "COLORS": {
        "primary": {
            "50": "oklch(96.2% .018 272.314)",
            "100": "oklch(93% .034 272.788)",
            "200": "oklch(87% .065 274.039)",
            "300": "oklch(78.5% .115 274.713)",
            "400": "oklch(67.3% .182 276.935)",
            "500": "oklch(58.5% .233 277.117)",
            "600": "oklch(51.1% .262 276.966)",
            "700": "oklch(45.7% .24 277.023)",
            "800": "oklch(39.8% .195 277.366)",
            "900": "oklch(35.9% .144 278.697)",
            "950": "oklch(25.7% .09 281.288)",
        }
    },
}
