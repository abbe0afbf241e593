"""What staff did, for reading only."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from access.models import APIClient, StaffUser

from .widgets.columns import plain_chip
from .widgets.filters import ChoiceFilter, ObjectIdTimeFilter
from .widgets.keyset_list import KeysetChangeList
from .widgets.lists import BoundedChangeList, ReadOnlyAdmin

ACTION_LABELS = {
    ADDITION: ("Added", "success"),
    CHANGE: ("Changed", "info"),
    DELETION: ("Deleted", "danger"),
}


class ActionFilter(ChoiceFilter):
    """By what was done."""

    title = "action"
    parameter_name = "action"
    options = tuple((str(flag), words) for flag, (words, _) in ACTION_LABELS.items())
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it was done."""
        return {"action_flag": int(word)}


class ActorFilter(ChoiceFilter):
    """By who did it."""

    title = "user"
    parameter_name = "user"
    is_unindexed = True

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the staff, and the apps."""
        users = StaffUser.objects.only("username").order_by("username")
        apps = APIClient.objects.only("name").order_by("name")
        staff = [(str(user.pk), user.username) for user in users]
        return [*staff, *((str(app.pk), f"App {app.name}") for app in apps)]

    def condition(self, word: str) -> dict[str, Any]:
        """Return that this user did it."""
        return {"user_id": StaffUser._meta.pk.to_python(word)}


class ActionTimeFilter(ObjectIdTimeFilter):
    """By when it was done."""

    title = "done"
    parameter_name = "done"


@admin.register(LogEntry)
class LogEntryAdmin(ReadOnlyAdmin):
    """Every change made in the admin, newest first. The key begins with the time, so it orders."""

    list_display = ("time", "actor", "action", "object_kind", "object_name", "changes")
    list_display_links = None
    list_filter = (ActorFilter, ActionFilter, ActionTimeFilter)
    ordering = ("-id",)
    list_fullwidth = True

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: one whose pages are not counted."""
        return KeysetChangeList

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look at the list; an entry has no page of its own."""
        return obj is None and super().has_view_permission(request)

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Give each row its user's name and its object's kind, in one read for all.

        What an app did by the API stands there too: under the app's id, and shown by its name.
        """
        actors = {row.user_id for row in rows}
        users = StaffUser.objects.only("username").in_bulk(actors)
        apps = APIClient.objects.only("name").in_bulk(actors - users.keys())
        kinds = ContentType.objects.in_bulk({r.content_type_id for r in rows if r.content_type_id})
        for row in rows:
            user, kind = users.get(row.user_id), kinds.get(row.content_type_id)
            app = apps.get(row.user_id)
            row.username = user.username if user else f"App {app.name}" if app else str(row.user_id)
            row.kind_name = kind.name if kind else "-"

    @admin.display(description="When (UTC)")
    def time(self, row: Any) -> SafeString:
        """When it was done."""
        time = row.action_time
        return format_html("<time>{}</time>", f"{time:%Y-%m-%d %H:%M:%S}")

    @admin.display(description="Who")
    def actor(self, row: Any) -> str:
        """Who did it."""
        return str(row.username)

    @admin.display(description="Action")
    def action(self, row: Any) -> SafeString:
        """What kind of change it was."""
        label, color = ACTION_LABELS[row.action_flag]
        return plain_chip(label, color)

    @admin.display(description="Kind")
    def object_kind(self, row: Any) -> str:
        """What it was done to."""
        return capfirst(str(row.kind_name))

    @admin.display(description="Which")
    def object_name(self, row: Any) -> str:
        """What it is called."""
        return str(row.object_repr)

    @admin.display(description="What")
    def changes(self, row: Any) -> str:
        """What was changed."""
        return row.get_change_message()
