"""Callback endpoints."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin, messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from access.models import APIClient
from callbacks import audit, outbox, subscriptions
from callbacks.events import CallbackState, DisabledReason
from callbacks.models import Callback
from callbacks.retry import FAILURES_TO_OPEN
from domain.time import utc_now

from ..texts.disabled import ENDPOINTS, explained
from ..widgets.actions import EnableDisableAdmin
from ..widgets.columns import chip, link, text_column, time_column
from ..widgets.formats import timestamp
from ..widgets.lists import ReadOnlyAdmin, section
from ..widgets.names import client_names


class ClientOwnedAdmin(ReadOnlyAdmin):
    """Base of lists with a column for the client that owns the row."""

    client = text_column("Client", "client_name")

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the names of the clients."""
        names = client_names({row.client_id for row in rows})
        for row in rows:
            row.client_name = names[row.client_id]


@admin.register(Callback)
class CallbackAdmin(ClientOwnedAdmin, EnableDisableAdmin):
    """The clients' callback endpoints. Only hosts are shown, because a path may hold a secret."""

    list_display = ("client", "host", "status", "last_success", "failing_since_display", "error")
    fieldsets = (
        section(None, "client", "host", "status", "meaning", "events_display", "messages_link"),
        section(
            "Receiver",
            "last_success",
            "last_failure",
            "failing_since_display",
            "error",
            "circuit_open_until",
        ),
        section("Details", "signed_with", "created", "changed"),
    )
    ordering = ("client_id",)
    search_fields = ("host",)
    search_help_text = "Part of a client's name or of a host"
    empty_title = "No callback endpoints"
    empty_text = "A client registers its endpoint by PUT /api/v1/callback."
    object_label = "Callback endpoint"
    enable_consequence = (
        "Resumes callbacks for new events. Missed ones can be replayed individually."
    )
    disable_consequence = (
        "Stops callbacks until staff enable the endpoint. Pending ones fail; new ones "
        "are kept for 30 days and can be replayed."
    )
    last_success = time_column("Last success", "last_success_at")
    last_failure = time_column("Last failure", "last_failure_at")
    failing_since_display = time_column("Failing since", "failing_since")
    error = text_column("Last error", "last_error")
    circuit_open_until = time_column("Circuit open until", "open_until")
    created = time_column("Created", "created_at")
    changed = time_column("Last change", "updated_at")

    def search(self, request: HttpRequest, queryset: QuerySet, text: str) -> QuerySet:
        """Return the endpoints by their host or their client's name. There are few."""
        clients = APIClient.objects.filter(name__icontains=text).values_list("pk", flat=True)
        return queryset.filter(Q(host__icontains=text) | Q(pk__in=list(clients)))

    def is_enabled(self, obj: Any) -> bool:
        """Return whether an endpoint is enabled."""
        return bool(obj.state == CallbackState.ACTIVE)

    def can_set_enabled(self, request: HttpRequest, *, enabled: bool) -> bool:
        """Return whether the user may enable and disable endpoints."""
        return bool(request.user.has_perm("callbacks.switch_callback"))

    def set_enabled(self, request: HttpRequest, obj: Any, *, enabled: bool) -> None:
        """Enable or disable an endpoint, record the change, and show a message."""
        client_id, now, state = obj.client_id, utc_now(), "enabled" if enabled else "disabled"
        if enabled:
            is_done = subscriptions.enable(client_id=client_id, now=now)
        else:
            reason = DisabledReason.BY_OPERATOR
            is_done = subscriptions.disable(client_id=client_id, reason=reason, now=now)
            outbox.fail_pending(client_id=client_id, reason=outbox.DISABLED_REASON)
        if not is_done:
            messages.warning(request, f"No change: already {state} or deleted.")
            return
        audit.record(client_id, f"{state.capitalize()}.", by=request.user.pk)
        messages.success(request, f"Callback endpoint {state}.")

    @admin.display(description="State")
    def status(self, row: Any) -> SafeString:
        """Return the state as a chip."""
        if row.state != CallbackState.ACTIVE:
            return chip(explained(row.disabled_reason, ENDPOINTS).label, "danger")
        if not row.failures:
            return chip("Active", "success")
        return chip("Degraded", "danger" if row.failures >= FAILURES_TO_OPEN else "warning")

    @admin.display(description="Explanation")
    def meaning(self, row: Any) -> SafeString | str:
        """Return the meaning of the state and, if disabled, how to enable the endpoint."""
        if row.state != CallbackState.ACTIVE:
            meaning = explained(row.disabled_reason, ENDPOINTS).meaning
            return format_html("Disabled since {}. {}", timestamp(row.disabled_at), meaning)
        if row.failing_since:
            return "Failed deliveries are retried for a day, and can then be replayed."
        return "Events are delivered immediately."

    @admin.display(description="Events")
    def events_display(self, row: Any) -> str:
        """Return the subscribed events."""
        return ", ".join(row.events)

    @admin.display(description="Callback messages")
    def messages_link(self, row: Any) -> SafeString:
        """Return a link to the endpoint's deliveries."""
        url = reverse("admin:callbacks_callbackmessage_changelist")
        return link(f"{url}?{urlencode({'client': row.client_id})}", "Show deliveries")

    @admin.display(description="Signing secret")
    def signed_with(self, row: Any) -> SafeString:
        """Return when the secret was created, and until when the previous one is valid."""
        newest, *others = row.secrets
        ends = [secret.until for secret in others if secret.until]
        overlap = format_html("; previous one valid until {}", timestamp(max(ends))) if ends else ""
        return format_html("Created {}{}", timestamp(newest.created_at), overlap)
