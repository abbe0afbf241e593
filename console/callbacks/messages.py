"""The list of callback messages, the page of one, and replay."""

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
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
from ..widgets.actions import ReplayAdmin, permission_check
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

SEARCH_CAP = 200


StatusFilter = choice_filter("status", options_of(CALLBACK_LABELS))


def _clients_with_endpoint() -> list[tuple[str, str]]:
    names = client_names(list(Callback.objects.values_list("pk", flat=True)))
    return sorted(((str(key), name) for key, name in names.items()), key=itemgetter(1))


ClientFilter = choice_filter(
    "client", _clients_with_endpoint, condition=lambda value: {"client_id": ObjectId(value)}
)


@admin.register(CallbackMessage)
class CallbackMessageAdmin(ClientOwnedAdmin, ReplayAdmin):
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
    object_label = "Callback message"
    replay_consequence = (
        "Sends the same message now, with the same ID, by which the client can detect a duplicate, "
        "and with eight new attempts."
    )
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

    def can_replay(self, obj: Any) -> bool:
        """Return whether a message is no longer tried."""
        return bool(obj.status != CallbackStatus.PENDING)

    def replay(self, request: HttpRequest, keys: Sequence[Any]) -> None:
        """Send messages again, each with the same ID as before."""
        done, refused = 0, Counter[str]()
        for key in keys:
            try:
                outbox.replay(message_id=key, client_id=None, now=utc_now())
            except StillPendingError:
                reason = "still being retried"
            except NoCallbackError:
                reason = "the client has no callback endpoint"
            except LookupError:
                reason = "not found"
            else:
                audit.record_replay(key, by=request.user.pk)
                done += 1
                continue
            refused[reason] += 1
        if done:
            messages.success(request, f"{count_of(done, 'message')} queued again.")
        for reason, count in refused.items():
            messages.warning(request, f"{count} skipped: {reason}.")

    @admin.display(description="Status")
    def result(self, row: Any) -> SafeString:
        """Return the status as a chip."""
        return chip(*CALLBACK_LABELS.get(row.status, (row.status, "info")))

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
