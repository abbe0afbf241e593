"""What providers called to tell us, and applying it again."""

import json
from collections.abc import Sequence
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from domain.time import utc_now
from notifications.models import WebhookLog
from notifications.receipts import webhook_log
from notifyproject.platform import audit
from recipients.masking import can_see_addresses, mask_text

from .notifications import filters
from .notifications.summary import PROVIDER_LABELS
from .widgets import columns
from .widgets.actions import require_post
from .widgets.filters import ChoiceFilter
from .widgets.keyset_list import KeysetChangeList
from .widgets.lists import BoundedChangeList, ReadOnlyAdmin

LIST = "admin:notifications_webhooklog_changelist"
DETAIL = "admin:notifications_webhooklog_change"


class ProviderFilter(ChoiceFilter):
    """By the provider that called."""

    title = "provider"
    parameter_name = "provider"
    options = tuple((name, PROVIDER_LABELS[name]) for name in webhook_log.PARSERS)
    is_unindexed = True


class OutcomeFilter(ChoiceFilter):
    """By what became of the call."""

    title = "outcome"
    parameter_name = "outcome"
    options = (
        ("unfinished", "Not finished"),
        ("unmatched", "Some of it is about nothing we know"),
        ("applied", "Changed something"),
        ("idle", "Changed nothing"),
    )
    is_unindexed = True

    def condition(self, word: str) -> dict[str, Any]:
        """Return that it came to this end."""
        known: dict[str, dict[str, Any]] = {
            "unfinished": {"processed_at": None},
            "unmatched": {"unmatched_count": {"$gt": 0}},
            "applied": {"applied_count": {"$gt": 0}},
            "idle": {"applied_count": 0, "processed_at": {"$ne": None}},
        }
        return known[word]


@admin.register(WebhookLog)
class WebhookLogAdmin(ReadOnlyAdmin):
    """Every verified call from a provider, newest first."""

    list_display = ("received", "provider_display", "events", "applied", "unmatched", "processed")
    list_filter = (ProviderFilter, OutcomeFilter, filters.ReceivedFilter)
    fields = (
        "received",
        "provider_display",
        "event_count",
        "applied_count",
        "unmatched_count",
        "processed",
        "payload",
    )
    readonly_fields = fields
    ordering = ("-received_at", "-id")
    actions = ("replay_selected",)
    empty_title = "No provider has called"
    empty_words = "What they report of messages, each call as it came, is kept here for 30 days."
    change_form_outer_after_template = "admin/notifications/webhooklog/replay.html"

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[BoundedChangeList]:
        """Return the kind of list: one whose pages are not counted."""
        return KeysetChangeList

    def get_queryset(self, request: HttpRequest) -> QuerySet:
        """Return calls; the list does without their bodies."""
        queryset = super().get_queryset(request)
        match = request.resolver_match
        is_list = match is not None and match.url_name == LIST.partition(":")[2]
        return queryset.defer("body") if is_list else queryset

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one call; its body without addresses, unless the user may see them."""
        found = super().get_object(request, *args)
        if found is not None and not can_see_addresses(request.user):
            found.body = mask_text(found.body)
        return found

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and the one that applies a call again."""
        own = path(
            "<path:object_id>/replay/",
            self.admin_site.admin_view(self.replay_view),
            name="notifications_webhooklog_replay",
        )
        return [own, *super().get_urls()]

    def has_replay_permission(self, request: HttpRequest) -> bool:
        """Return whether the user may apply a call again."""
        return request.user.has_perm("notifications.replay_webhooklog")

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a call, with a button that applies it again."""
        shown = {"may_replay": self.has_replay_permission(request)}
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    @admin.action(description="Replay", permissions=["replay"])
    def replay_selected(self, request: HttpRequest, queryset: QuerySet) -> None:
        """Apply the ticked calls again, the oldest first."""
        rows = list(queryset.only("pk"))
        _replay(request, sorted(row.pk for row in rows))

    def replay_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Apply one call again; POST only."""
        if refused := require_post(
            request,
            allowed=self.has_view_permission(request) and self.has_replay_permission(request),
        ):
            return refused
        if not ObjectId.is_valid(object_id):
            messages.warning(request, "There is no such call.")
            return HttpResponseRedirect(reverse(LIST))
        _replay(request, [ObjectId(object_id)])
        return HttpResponseRedirect(reverse(DETAIL, args=[object_id]))

    @admin.display(description="Received (UTC)")
    def received(self, row: Any) -> SafeString | str:
        """When it came in."""
        return columns.timestamp(row.received_at)

    @admin.display(description="Provider")
    def provider_display(self, row: Any) -> str:
        """Who called."""
        return PROVIDER_LABELS.get(row.provider, row.provider)

    @admin.display(description="Events")
    def events(self, row: Any) -> int:
        """How many it told of."""
        return int(row.event_count or 0)

    @admin.display(description="Applied")
    def applied(self, row: Any) -> int:
        """How many changed something."""
        return int(row.applied_count or 0)

    @admin.display(description="Of unknown messages")
    def unmatched(self, row: Any) -> int:
        """How many were about nothing of ours."""
        return int(row.unmatched_count or 0)

    @admin.display(description="Processed (UTC)")
    def processed(self, row: Any) -> SafeString | str:
        """When its events had been applied."""
        return columns.timestamp(row.processed_at)

    @admin.display(description="Body")
    def payload(self, row: Any) -> SafeString:
        """What the provider sent, laid out."""
        return format_html('<pre class="json">{}</pre>', _indented(row.body))


def _replay(request: HttpRequest, ids: Sequence[ObjectId]) -> None:
    """Apply calls again, record each, and tell the user what it did."""
    now, events, changed = utc_now(), 0, 0
    for log_id in ids:
        try:
            applied = webhook_log.replay(log_id, now=now)
        except LookupError:
            messages.warning(request, "There is no such call any more.")
            continue
        except webhook_log.UnreadableWebhookError as problem:
            messages.error(request, str(problem))
            continue
        events, changed = events + applied.events, changed + applied.changed
        audit.record(
            by=request.user.pk,
            model=WebhookLog,
            object_id=str(log_id),
            name=f"call {log_id}",
            message=f"Replayed: {applied.changed} of {applied.events} events changed something.",
        )
    if events or changed:
        text = f"Replayed {events} event{'' if events == 1 else 's'}: {changed} changed something."
        messages.success(request, f"{text} What was applied before is passed over.")


def _indented(body: str) -> str:
    """Return JSON indented, and anything else as it is."""
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body
