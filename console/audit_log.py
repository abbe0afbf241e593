"""The audit log."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.contrib.admin.models import ADDITION, CHANGE, DELETION, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString
from django.utils.text import capfirst

from access.models import APIClient, StaffUser
from notifyproject.db.collections import collection
from notifyproject.db.match import Match
from notifyproject.platform import audit

from .widgets.columns import chip, text_column, time_column
from .widgets.filters import ChoiceFilter, KeyTimeFilter, choice_filter
from .widgets.keyset_list import KeysetChangeList
from .widgets.lists import ListOnlyAdmin, search_text
from .widgets.names import staff_names

SEARCH_CAP = 500
STAFF, CLIENTS, EVERYBODY = "staff", "clients", "all"
ACTION_LABELS = {
    ADDITION: ("Added", "success"),
    CHANGE: ("Changed", "info"),
    DELETION: ("Deleted", "danger"),
}


ActionFilter = choice_filter(
    "action",
    ((str(flag), label) for flag, (label, _) in ACTION_LABELS.items()),
    is_unindexed=True,
    condition=lambda value: {"action_flag": int(value)},
)


def _actors() -> list[tuple[str, str]]:
    users = StaffUser.objects.only("username").order_by("username")
    clients = APIClient.objects.only("name").order_by("name")
    staff = [(str(user.pk), user.username) for user in users]
    return [*staff, *((str(client.pk), f"Client {client.name}") for client in clients)]


ActorFilter = choice_filter(
    "user",
    _actors,
    condition=lambda value: {"user_id": StaffUser._meta.pk.to_python(value)},
)


def _made_by(value: str) -> dict[str, Any]:
    if value == EVERYBODY:
        return {}
    clients = set(APIClient.objects.values_list("pk", flat=True))
    # Clients are never deleted, but accounts are, and their changes remain those of staff. The
    # index of the actors answers it with one step for each.
    actors = collection(LogEntry._meta.db_table).distinct("user_id")
    return {
        "user_id": {"$in": [actor for actor in actors if (actor in clients) == (value == CLIENTS)]}
    }


class WhoFilter(ChoiceFilter):
    """Filter by who made a change. Without a choice and a search, clients are left out.

    Applications change much more than people do: they register devices and recipients.
    """

    title = "made by"
    parameter_name = "who"
    options = ((STAFF, "Staff"), (CLIENTS, "API clients"), (EVERYBODY, "Everybody"))

    def __init__(self, request: HttpRequest, *args: Any) -> None:
        asks_for_more = search_text(request) or request.GET.get("user")
        self.default = EVERYBODY if asks_for_more else STAFF
        super().__init__(request, *args)

    @property
    def is_active(self) -> bool:
        """Whether the user has chosen."""
        return bool(super().value())

    def value(self) -> str:
        """Return the choice, or what is shown without one."""
        return super().value() or self.default

    def condition(self, value: str) -> dict[str, Any]:
        """Return the condition on who made a change."""
        return _made_by(value)


class ActionTimeFilter(KeyTimeFilter):
    """When a change was made."""

    parameter_name = "done"


@admin.register(LogEntry)
class LogEntryAdmin(ListOnlyAdmin):
    """Every change by staff and clients, newest first: the key begins with the time.

    A bulk operation has one entry; a search for a notification shows what it did to this one.
    """

    list_display = ("time", "actor", "action", "object_kind", "object_name", "changes")
    list_filter = (WhoFilter, ActorFilter, ActionFilter, ActionTimeFilter)
    list_before_template = "console/audit_log.html"
    changelist_class = KeysetChangeList
    search_fields = ("object_id",)
    search_help_text = "ID or name of the object"
    ordering = ("-id",)
    list_fullwidth = True
    is_countable = False  # Who made a change is decided by the accounts of the moment
    time = time_column("Time", "action_time")
    actor = text_column("User", "actor_name")
    object_kind = text_column("Object type", "kind_name")
    object_name = text_column("Object", "object_repr")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the entries; without a search, none that is part of a bulk operation."""
        entries = super().get_queryset(request)
        return entries if search_text(request) else entries.filter(Match({"part_of": None}))

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the newest entries about an object, by its ID or its name."""
        return queryset.filter(pk__in=audit.find_entries(text, cap=SEARCH_CAP))

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the actors (staff or clients) and of the objects' types."""
        actors = {row.user_id for row in rows}
        users = staff_names(actors)
        clients = APIClient.objects.only("name").in_bulk(actors - users.keys())
        kinds = ContentType.objects.in_bulk({r.content_type_id for r in rows if r.content_type_id})
        for row in rows:
            client, kind = clients.get(row.user_id), kinds.get(row.content_type_id)
            fallback = f"Client {client.name}" if client else str(row.user_id)
            row.client_name = client.name if client else None
            row.actor_name = users.get(row.user_id, fallback)
            row.kind_name = capfirst(kind.name) if kind else ""

    @admin.display(description="Action")
    def action(self, row: Any) -> SafeString:
        """Return the kind of change as a chip."""
        return chip(*ACTION_LABELS[row.action_flag])

    @admin.display(description="Change")
    def changes(self, row: Any) -> str:
        """Return the description of the change, without the client's name of the first column."""
        text = str(row.get_change_message())
        return text.removeprefix(f"By client {row.client_name}: ") if row.client_name else text
