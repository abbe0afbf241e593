"""The log of verified provider webhooks, and their replay."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.safestring import SafeString

from domain.time import utc_now
from notifications.models import WebhookLog
from notifications.receipts import webhook_log
from providers.accounts import spec_of
from providers.labels import PROVIDERS
from recipients.masking import can_see_addresses, mask_text

from .notifications.search import find_ids
from .widgets.actions import ReplayAdmin, permission_check, record_change
from .widgets.columns import json_block, label_column, text_column, time_column
from .widgets.filters import choice_filter, time_filter
from .widgets.formats import count_of, utc_text
from .widgets.keyset_list import KeysetChangeList
from .widgets.lists import search_text
from .widgets.search import explain_refusal, searched_addresses

LIST = "admin:notifications_webhooklog_changelist"
SEARCH_CAP = 500


ProviderFilter = choice_filter(
    "provider",
    ((name, label) for name, label in PROVIDERS.items() if spec_of(name).webhook),
    is_unindexed=True,
)
_OUTCOMES: dict[str, tuple[str, dict[str, Any]]] = {
    "unfinished": ("Incomplete", {"processed_at": None}),
    "unmatched": ("Unmatched events", {"unmatched_count": {"$gt": 0}}),
    "unreadable": ("Unreadable events", {"unreadable_count": {"$gt": 0}}),
    "applied": ("Applied", {"applied_count": {"$gt": 0}}),
    "idle": ("No effect", {"applied_count": 0, "processed_at": {"$ne": None}}),
}
OutcomeFilter = choice_filter(
    "outcome",
    ((name, label) for name, (label, _) in _OUTCOMES.items()),
    is_unindexed=True,
    condition=lambda value: _OUTCOMES[value][1],
)


@admin.register(WebhookLog)
class WebhookLogAdmin(ReplayAdmin):
    """The verified calls of providers, newest first."""

    list_display = (
        "received",
        "provider_display",
        "events",
        "applied",
        "unmatched",
        "unreadable",
        "processed",
    )
    list_filter = (ProviderFilter, OutcomeFilter, time_filter("received", "received_at"))
    search_fields = ("id",)
    search_help_text = "Notification ID, provider message ID, email, or phone"
    fields = (
        "received",
        "provider_display",
        "event_count",
        "applied_count",
        "unmatched_count",
        "unreadable_count",
        "processed",
        "payload",
    )
    readonly_fields = fields
    ordering = ("-received_at", "-id")
    changelist_class = KeysetChangeList
    empty_title = "No webhooks"
    empty_text = "Calls from providers are kept for 30 days."
    object_label = "Webhook"
    replay_consequence = (
        "Applied events are skipped. Replay incomplete calls, and calls that arrived before their "
        "message was stored."
    )
    received = time_column("Received", "received_at")
    provider_display = label_column("Provider", "provider", PROVIDERS)
    has_replay_permission = permission_check("notifications.replay_webhooklog")
    processed = time_column("Processed", "processed_at")
    events = text_column("Events", "event_count", empty="0")
    applied = text_column("Applied", "applied_count", empty="0")
    unmatched = text_column("Unmatched", "unmatched_count", empty="0")
    unreadable = text_column("Unreadable", "unreadable_count", empty="0")

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return the calls. The list leaves out their bodies."""
        queryset = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and match.url_name == LIST.partition(":")[2]
        return queryset.defer("body") if is_list else queryset

    def get_ordering(self, request: HttpRequest) -> Sequence[str]:
        """Return the order; search results are read by key."""
        return ("-id",) if search_text(request) else self.ordering

    def object_title(self, obj: Any) -> str:
        """Return the provider and the time."""
        return f"{PROVIDERS.get(obj.provider, obj.provider)} webhook of {utc_text(obj.received_at)}"

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the newest calls about a message or an address."""
        # A call names a message by its notification's ID, which any key of it leads to.
        explain_refusal(request, text)
        messages_found = map(str, find_ids(text, user=request.user, cap=SEARCH_CAP))
        keys = [text, *messages_found, *searched_addresses(text, user=request.user).digests()]
        return queryset.filter(pk__in=webhook_log.find_logged(keys, cap=SEARCH_CAP))

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one call. Its body is masked unless the user may see addresses."""
        found = super().get_object(request, *args)
        if found is not None and not can_see_addresses(request.user):
            found.body = mask_text(found.body)
        return found

    def replay(self, request: HttpRequest, keys: Sequence[Any]) -> None:
        """Replay calls, the oldest first."""
        now, events, changed = utc_now(), 0, 0
        for log_id in sorted(keys):
            try:
                applied = webhook_log.replay(log_id, now=now)
            except LookupError:
                messages.warning(request, "Webhook not found. It might have been deleted.")
                continue
            except webhook_log.UnreadableWebhookError as problem:
                messages.error(request, str(problem))
                continue
            events, changed = events + applied.events, changed + applied.changed
            message = f"Replayed: {applied.changed} of {applied.events} events applied."
            record_change(request, WebhookLog, log_id, message, name=f"call {log_id}")
        if events or changed:
            text = f"Replayed {count_of(events, 'event')}: {changed} applied."
            messages.success(request, f"{text} Applied events are skipped.")

    @admin.display(description="Body")
    def payload(self, row: Any) -> SafeString:
        """Return the body, indented."""
        return json_block(row.body)
