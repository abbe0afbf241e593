"""The menu, and the badge that shows the environment."""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from .widgets.links import MAY_SEND, MAY_SEND_FILE, START, START_FILE

_BADGES = {
    "production": ("Production", "danger"),
    "local": ("Local", "info"),
    "test": ("Test", "warning"),
}


def environment_badge(_request: HttpRequest) -> tuple[str, str]:
    """Return the text and the color of the environment's badge."""
    name = str(settings.SETTINGS_MODULE).rpartition(".")[2]
    return _BADGES.get(name, (name.capitalize(), "warning"))


@cache
def _url(name: str) -> str:
    # Each page has the whole menu, and a reverse of each entry took a quarter of the page's time.
    return reverse(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class MenuItem:
    """An entry of the menu."""

    title: str
    icon: str
    url_name: str
    permission: str | None
    """What the user needs to see it; None: nothing."""

    @property
    def url(self) -> str:
        """The path of its page."""
        return _url(self.url_name)

    def is_visible(self, user: Any) -> bool:
        """Return whether a user may open its page."""
        return self.permission is None or user.has_perm(self.permission)

    def is_active(self, path: str) -> bool:
        """Return whether a path is that of its page, or of one below it."""
        # The path of Home is the beginning of every other path.
        return path == self.url if self.url_name == HOME else path.startswith(self.url)


@dataclass(frozen=True, slots=True)
class MenuGroup:
    """Entries of the menu under a title. The first group has none."""

    title: str | None
    items: tuple[MenuItem, ...]


def menu_item(title: str, icon: str, model: str, *, permission: str = "") -> MenuItem:
    """Return a menu entry for the list of a ``model`` in the form ``app_model``."""
    app, _, name = model.rpartition("_")
    return MenuItem(
        title=title,
        icon=icon,
        url_name=f"admin:{model}_changelist",
        permission=permission or f"{app}.view_{name}",
    )


def menu_group(title: str | None, *items: MenuItem) -> MenuGroup:
    """Return a group of menu entries."""
    return MenuGroup(title, items)


HOME = "admin:index"
VIEWS = "Views"
"""The title of the group with the saved views, which the menu shows above its entry."""
_SEES_NOTIFICATIONS = "notifications.view_notification"
NAVIGATION = (
    menu_group(
        None,
        MenuItem(title="Home", icon="monitoring", url_name=HOME, permission=None),
        menu_item(
            "Failed deliveries",
            "error",
            "notifications_failednotification",
            permission=_SEES_NOTIFICATIONS,
        ),
        menu_item("Notifications", "notifications", "notifications_notification"),
        MenuItem(
            title="Send a message",
            icon="edit_note",
            url_name=START,
            permission=MAY_SEND,
        ),
        MenuItem(
            title="Send to a file",
            icon="upload",
            url_name=START_FILE,
            permission=MAY_SEND_FILE,
        ),
        menu_item("Broadcasts", "campaign", "notifications_broadcast"),
        menu_item(
            "Scheduled and held",
            "schedule",
            "notifications_waitingnotification",
            permission=_SEES_NOTIFICATIONS,
        ),
        menu_item("Digests", "mark_email_unread", "notifications_digest"),
        menu_item("Bulk operations", "dynamic_feed", "notifications_bulkoperation"),
    ),
    menu_group(VIEWS, menu_item("Saved views", "tune", "analytics_savedview")),
    menu_group(
        "Contacts",
        menu_item("Recipients", "group", "recipients_recipient"),
        menu_item("Devices", "devices", "devices_device"),
        menu_item("Suppressions", "block", "recipients_suppression"),
    ),
    menu_group(
        "Activity",
        menu_item("Attempts", "send", "notifications_deliveryattempt"),
        menu_item("Requests", "manage_search", "notifications_loggedrequest"),
        menu_item("Provider webhooks", "webhook", "notifications_webhooklog"),
        menu_item("Callback messages", "call_made", "callbacks_callbackmessage"),
        menu_item("Audit log", "history", "admin_logentry"),
    ),
    menu_group(
        "System",
        menu_item("Providers", "hub", "notifications_providerstate"),
        menu_item("Workers and queues", "conveyor_belt", "notifications_heartbeat"),
        menu_item("Incidents", "notifications_active", "analytics_incident"),
        MenuItem(
            title="My alerts",
            icon="mark_email_unread",
            url_name="own-alerts",
            permission="analytics.view_incident",
        ),
        menu_item("Alert rules", "rule", "analytics_alertrule"),
        menu_item("Periodic tasks", "event_repeat", "django_celery_beat_periodictask"),
        menu_item("Task intervals", "timer", "django_celery_beat_intervalschedule"),
        menu_item("Retention", "auto_delete", "notifications_retentionpolicy"),
    ),
    menu_group(
        "Configuration",
        menu_item("Types", "category", "notifications_notificationtype"),
        menu_item("Design", "palette", "notifications_design"),
        menu_item("Limits", "speed", "notifications_limit"),
        menu_item("Rooms", "forum", "rooms_room"),
        menu_item("API clients", "key", "access_apiclient"),
        menu_item("Callback endpoints", "phone_callback", "callbacks_callback"),
        menu_item("Staff", "badge", "access_staffuser"),
        menu_item("Roles", "shield_person", "auth_group"),
    ),
)


_ADDABLE = (
    ("Suppress an address", "block", "recipients_suppression"),
    ("Add a type", "category", "notifications_notificationtype"),
    ("Add a limit", "speed", "notifications_limit"),
    ("Add a room", "forum", "rooms_room"),
    ("Add an API client", "key", "access_apiclient"),
    ("Add an alert rule", "rule", "analytics_alertrule"),
    ("Add a staff user", "badge", "access_staffuser"),
)


def command_links(request: HttpRequest) -> Iterator[tuple[str, str, str, str]]:
    """Return kind, title, icon, and URL of each page and action that the user may open."""
    for group in NAVIGATION:
        for item in group.items:
            if item.is_visible(request.user):
                yield "Page", item.title, item.icon, item.url
    for item in settings.UNFOLD["ACCOUNT"]["navigation"]:
        yield "Page", item["title"], "account_circle", str(item["link"])
    for title, icon, model in _ADDABLE:
        app, _, name = model.rpartition("_")
        if request.user.has_perm(f"{app}.add_{name}"):
            yield "Action", title, icon, reverse(f"admin:{model}_add")
