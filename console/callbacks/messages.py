"""What apps were told, and sending it again."""

import json
from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from callbacks.events import CallbackStatus
from callbacks.models import Callback, CallbackMessage
from callbacks.retry import MAX_TRIES
from notifyproject.db.collections import collection
from notifyproject.db.fields import choices

from ..widgets.actions import require_post
from ..widgets.columns import plain_chip
from ..widgets.filters import ChoiceFilter
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.lists import BoundedChangeList
from . import endpoints
from .endpoints import EMPTY, STATUS_COLORS, ClientOwnedAdmin, client_names, timestamp

CHANGE_URL = "admin:callbacks_callbackmessage_change"
SEARCH_CAP = 200


class StatusFilter(ChoiceFilter):
    """By where it stands."""

    title = "status"
    parameter_name = "status"
    options = tuple(choices(CallbackStatus))


class ClientFilter(ChoiceFilter):
    """By whose it is."""

    title = "app"
    parameter_name = "client"

    def lookups(self, request: HttpRequest, model_admin: Any) -> Sequence[tuple[str, str]]:
        """Return the apps that have a callback."""
        ids = list(Callback.objects.values_list("pk", flat=True))
        return sorted(
            ((str(one), name) for one, name in client_names(ids).items()), key=lambda c: c[1]
        )

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it is this app's."""
        return {"client_id": ObjectId(word)}


@admin.register(CallbackMessage)
class CallbackMessageAdmin(ClientOwnedAdmin):
    """What apps were told in the last 30 days, newest first. None of it holds an address."""

    list_display = ("created", "app", "event", "result", "attempts", "next_try", "notification")
    list_filter = (StatusFilter, ClientFilter)
    fieldsets = (
        (
            None,
            {
                "fields": (
                    "app",
                    "event",
                    "result",
                    "attempts",
                    "next_try",
                    "error_display",
                    "notification",
                )
            },
        ),
        ("Tries", {"fields": ("attempt_history",)}),
        ("Message", {"fields": ("key", "body_display", "created", "replayed")}),
    )
    search_fields = ("id",)
    search_help_text = "Id of a notification or of a message"
    ordering = ("-created_at", "-id")
    actions = ("replay_selected",)
    change_form_outer_after_template = "admin/callbacks/callbackmessage/replay.html"

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: one whose pages are not counted."""
        return KeysetChangeList

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet, search_term: str
    ) -> tuple[QuerySet, bool]:
        """Return one notification's messages, or one message."""
        text = search_term.strip()
        if not text:
            return queryset, False
        if not ObjectId.is_valid(text):
            return queryset.filter(pk=text), False
        wanted = {"notification_id": ObjectId(text)}
        rows = collection("callback_messages").find(wanted, {"_id": 1}, limit=SEARCH_CAP)
        return queryset.filter(pk__in=[row["_id"] for row in rows]), False

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and the one that sends a message again."""
        replay = path(
            "<path:object_id>/replay/",
            self.admin_site.admin_view(self.replay_view),
            name="callbacks_callbackmessage_replay",
        )
        return [replay, *super().get_urls()]

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may send messages again."""
        return request.user.has_perm("callbacks.replay_callbackmessage")

    @admin.action(description="Send again", permissions=["replay"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Send the ticked messages again, each with its own id."""
        endpoints.replay(request, list(queryset))

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Send one message again; POST only."""
        if refused := require_post(request, allowed=self.has_replay_permission(request)):
            return refused
        message = self.get_object(request, object_id)
        if message is None:
            messages.warning(request, "There is no such message any more.")
            return HttpResponseRedirect(reverse("admin:callbacks_callbackmessage_changelist"))
        endpoints.replay(request, [message])
        return HttpResponseRedirect(reverse(CHANGE_URL, args=[message.pk]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a message, with a button that sends it again."""
        message = self.get_object(request, object_id)
        is_over = message is not None and message.status != CallbackStatus.PENDING
        shown: dict[str, Any] = {"may_replay": is_over and self.has_replay_permission(request)}
        if message is not None:
            shown["replay_url"] = reverse(
                "admin:callbacks_callbackmessage_replay", args=[message.pk]
            )
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    @admin.display(description="Made (UTC)")
    def created(self, row: Any) -> str:
        """When it was created."""
        return timestamp(row.created_at)

    @admin.display(description="Event")
    def event(self, row: Any) -> str:
        """What happened."""
        return str(row.type)

    @admin.display(description="Result")
    def result(self, row: Any) -> SafeString:
        """Where it stands."""
        status = CallbackStatus(row.status)
        return plain_chip(status.value.capitalize(), STATUS_COLORS[status])

    @admin.display(description="Tries")
    def attempts(self, row: Any) -> str:
        """How often it was tried."""
        return f"{row.tries} of {MAX_TRIES}"

    @admin.display(description="Next try (UTC)")
    def next_try(self, row: Any) -> str:
        """When it is due."""
        return timestamp(row.next_try_at)

    @admin.display(description="Last error")
    def error_display(self, row: Any) -> str:
        """What the last try failed of."""
        return row.error or EMPTY

    @admin.display(description="Notification")
    def notification(self, row: Any) -> SafeString | str:
        """What it is about."""
        if row.notification_id is None:
            return EMPTY
        url = reverse("admin:notifications_notification_change", args=[row.notification_id])
        return format_html('<a class="text-link" href="{}">{}</a>', url, row.notification_id)

    @admin.display(description="Last tries")
    def attempt_history(self, row: Any) -> SafeString | str:
        """Each try: when, how long it took, and what was answered."""
        tries = (
            (
                timestamp(one.at),
                f"{one.duration_ms:,} ms",
                one.error or f"It answered {one.status_code}.",
                one.excerpt or "",
            )
            for one in reversed(row.history or ())
        )
        lines = format_html_join("", "<li>{} · {} · {} <code>{}</code></li>", tries)
        return format_html("<ol>{}</ol>", lines) if row.history else "None yet"

    @admin.display(description="Id")
    def key(self, row: Any) -> SafeString:
        """Its id whole; it breaks where the line ends."""
        return format_html('<span style="overflow-wrap: anywhere">{}</span>', row.pk)

    @admin.display(description="Body")
    def body_display(self, row: Any) -> SafeString:
        """What is sent."""
        text = json.dumps(json.loads(row.body), indent=2, ensure_ascii=False)
        return format_html('<pre class="json">{}</pre>', text)

    @admin.display(description="Last sent again (UTC)")
    def replayed(self, row: Any) -> str:
        """When somebody last asked for it to be sent again."""
        return timestamp(row.replayed_at)
