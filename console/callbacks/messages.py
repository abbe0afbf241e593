"""The list of callback messages, the page of one, and replay."""

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from callbacks import audit, outbox
from callbacks.events import CallbackStatus
from callbacks.models import Callback, CallbackMessage
from callbacks.outbox import StillPendingError
from callbacks.retry import MAX_ATTEMPTS
from callbacks.subscriptions import NoCallbackError
from domain.time import utc_now

from ..texts.labels import CALLBACK_LABELS, options_of
from ..widgets.actions import not_found, permission_check, require_post
from ..widgets.columns import (
    chip,
    id_column,
    json_block,
    notification_column,
    text_column,
    time_column,
)
from ..widgets.filters import choice_filter
from ..widgets.formats import count_of, latency, timestamp
from ..widgets.keyset_list import KeysetChangeList
from ..widgets.lists import find_by_notification, section
from ..widgets.names import client_names
from .endpoints import ClientOwnedAdmin

LIST = "admin:callbacks_callbackmessage_changelist"
SEARCH_CAP = 200


StatusFilter = choice_filter("status", options_of(CALLBACK_LABELS))


def _clients_with_endpoint() -> list[tuple[str, str]]:
    names = client_names(list(Callback.objects.values_list("pk", flat=True)))
    return sorted(((str(key), name) for key, name in names.items()), key=itemgetter(1))


ClientFilter = choice_filter(
    "client", _clients_with_endpoint, condition=lambda value: {"client_id": ObjectId(value)}
)


@admin.register(CallbackMessage)
class CallbackMessageAdmin(ClientOwnedAdmin):
    """The callback messages of the last 30 days, newest first. They contain no addresses."""

    list_display = ("created", "client", "event", "result", "attempts", "next_try", "notification")
    list_filter = (StatusFilter, ClientFilter)
    fieldsets = (
        section(
            None,
            "client",
            "event",
            "result",
            "attempts",
            "next_try",
            "error_display",
            "notification",
        ),
        section("Attempts", "attempt_history"),
        section("Message", "key", "body_display", "created", "replayed"),
    )
    changelist_class = KeysetChangeList
    search_fields = ("id",)
    search_help_text = "Notification or callback message ID"
    ordering = ("-created_at", "-id")
    actions = ("replay_selected",)
    change_form_outer_after_template = "console/callbacks/replay.html"
    has_replay_permission = permission_check("callbacks.replay_callbackmessage")
    created = time_column("Created", "created_at")
    event = text_column("Event", "type")
    next_try = time_column("Next attempt", "next_try_at")
    error_display = text_column("Last error", "error")
    notification = notification_column()
    key = id_column()
    replayed = time_column("Last replayed", "replayed_at")

    def object_title(self, obj: Any) -> str:
        """Return the event and the client."""
        return f"{obj.type} for {getattr(obj, 'client_name', 'a client')}"

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the message with this ID, or the messages about the notification with this ID."""
        return find_by_notification(queryset, text, cap=SEARCH_CAP)

    def own_urls(self) -> list[URLPattern]:
        """Return the URL of the replay."""
        return [self.url("<path:object_id>/replay/", self.replay_view, "replay")]

    @admin.action(description="Replay", permissions=["replay"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Send the selected messages again, each with the same ID as before."""
        _replay(request, list(queryset))

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Replay one message; POST only."""
        if refused := require_post(request, allowed=self.has_replay_permission(request)):
            return refused
        message = self.get_object(request, object_id)
        if message is None:
            return not_found(request, "Callback message", LIST)
        _replay(request, [message])
        return HttpResponseRedirect(
            reverse("admin:callbacks_callbackmessage_change", args=[message.pk])
        )

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the context of the replay button."""
        message = self.get_object(request, object_id)
        if message is None:
            return {}
        is_final = message.status != CallbackStatus.PENDING
        return {
            "may_replay": is_final and self.has_replay_permission(request),
            "replay_url": reverse("admin:callbacks_callbackmessage_replay", args=[message.pk]),
        }

    @admin.display(description="Status")
    def result(self, row: Any) -> SafeString:
        """Return the status as a chip."""
        status = CallbackStatus(row.status)
        return chip(*CALLBACK_LABELS[status])

    @admin.display(description="Attempts")
    def attempts(self, row: Any) -> str:
        """Return the number of attempts and its limit."""
        return f"{row.tries} of {MAX_ATTEMPTS}"

    @admin.display(description="Last attempts")
    def attempt_history(self, row: Any) -> SafeString | str:
        """Return the time, duration and result of each attempt."""
        lines = format_html_join(
            "",
            "<li>{} · {} · {} <code>{}</code></li>",
            (
                (
                    timestamp(attempt.at),
                    latency(attempt.duration_ms / 1000),
                    attempt.error or f"HTTP {attempt.status_code}",
                    attempt.excerpt or "",
                )
                for attempt in reversed(row.history or ())
            ),
        )
        return format_html("<ol>{}</ol>", lines) if row.history else "None yet"

    @admin.display(description="Body")
    def body_display(self, row: Any) -> SafeString:
        """Return the body, indented."""
        return json_block(row.body)


def _replay(request: HttpRequest, selected: Sequence[CallbackMessage]) -> None:
    done, refused = 0, Counter[str]()
    for message in selected:
        try:
            outbox.replay(message_id=message.pk, client_id=None, now=utc_now())
        except StillPendingError:
            reason = "still being retried"
        except NoCallbackError:
            reason = "the client has no callback endpoint"
        except LookupError:
            reason = "not found"
        else:
            audit.record_replay(message.pk, by=request.user.pk)
            done += 1
            continue
        refused[reason] += 1
    if done:
        messages.success(request, f"{count_of(done, 'message')} queued again.")
    for reason, count in refused.items():
        messages.warning(request, f"{count} skipped: {reason}.")
