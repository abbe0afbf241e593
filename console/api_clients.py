"""API clients and their keys."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from access.clients import registry
from access.documents import APIKeyDocument
from access.models import APIClient, Scope
from domain.time import utc_now

from .widgets.actions import is_confirmed, not_found, record_change, render_page, require_post
from .widgets.columns import active_column, chip, test_chip
from .widgets.formats import timestamp
from .widgets.lists import ConsoleAdmin, never
from .widgets.reauthentication import require_reauthentication

CHANGE_URL = "admin:access_apiclient_change"
DEFAULT_LIFETIME = str(registry.KEY_LIFETIME.days)
KEY_LIFETIMES: Mapping[str, timedelta | None] = {
    **{str(days): timedelta(days=days) for days in (30, 90, registry.KEY_LIFETIME.days)},
    "never": None,
}
"""Lifetimes of a new key by the form's values; None: no expiry."""
EXPIRES_SOON = timedelta(days=30)
ROTATE = "Issue a second key, change the application to it, and revoke this one."
_SCOPE_LABELS = {
    Scope.NOTIFICATIONS_READ: "Read its notifications",
    Scope.NOTIFICATIONS_WRITE: "Send, schedule, and cancel notifications",
    Scope.NOTIFICATIONS_RESEND: "Resend and retry notifications",
    Scope.NOTIFICATIONS_CRITICAL: "Send critical notifications, such as login codes",
    Scope.RECIPIENTS_READ: "Read recipients and their addresses",
    Scope.RECIPIENTS_WRITE: "Manage recipients and their preferences",
    Scope.DEVICES_WRITE: "Manage devices",
    Scope.INBOX_ISSUE: "Issue inbox tokens",
    Scope.SUPPRESSIONS_WRITE: "Manage suppressions",
    Scope.CALLBACKS_WRITE: "Manage its callback endpoint",
    Scope.TEMPLATES_WRITE: "Manage types and templates",
    Scope.BROADCASTS_APPROVE: "Approve and reject broadcasts of other clients",
    Scope.BROADCASTS_OVERRIDE: "Send broadcasts without an approval; not part of full access",
    Scope.LIMITS_WRITE: "Manage limits",
    Scope.LIMITS_IGNORE: "Send messages that no limit holds",
    Scope.TYPES_ADMIN: "Make sensitive variables of types readable",
    Scope.ADMIN: "Full access",
}


class APIClientForm(forms.ModelForm):
    """Form of an API client."""

    name = forms.CharField(
        max_length=120,
        widget=UnfoldAdminTextInputWidget,
        help_text="The application that calls the API. Each application has its own client.",
    )
    scopes = forms.MultipleChoiceField(
        # A scope without a label fails here, at the start, instead of missing in the form.
        choices=[(scope.value, f"{_SCOPE_LABELS[scope]} ({scope.value})") for scope in Scope],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
    )
    is_test = forms.BooleanField(
        label="Test mode",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Notifications are sent to the sandbox only, keys begin with ntf_test_, and live "
        "data can't be changed. This setting is permanent.",
    )

    class Meta:
        """The model and its editable fields."""

        model = APIClient
        fields = ("name", "scopes", "is_test", "is_active")
        labels = {"is_active": "Active"}


@admin.register(APIClient)
class APIClientAdmin(ConsoleAdmin):
    """The API clients. They are disabled, not deleted, because notifications refer to them."""

    form = APIClientForm
    list_display = (
        *("name", "mode", "active_keys", "access_ends", "last_used", "scope_list", "active"),
    )
    active = active_column()
    fields = ("name", "mode", "is_active", "scopes")
    readonly_fields = ("mode",)
    search_fields = ("name__startswith",)
    search_help_text = "Beginning of the name"
    ordering = ("name", "id")
    has_delete_permission = never
    change_form_outer_after_template = "console/api_clients/keys.html"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields. The form of a new client has no ``is_active``."""
        return self.fields if obj else ("name", "is_test", "scopes")

    def own_urls(self) -> list[URLPattern]:
        """Return the URL patterns of issuing and revoking a key."""
        return [
            self.url("<path:object_id>/issue-key/", self.issue_key_view, "issue_key"),
            self.url("<path:object_id>/revoke-key/", self.revoke_key_view, "revoke_key"),
        ]

    @admin.display(description="Mode")
    def mode(self, row: Any) -> SafeString | str:
        """Return whether the client is in test mode."""
        return test_chip() if row.is_test else "Live"

    @admin.display(description="Active keys")
    def active_keys(self, row: Any) -> str:
        """Return the masked active keys."""
        now = utc_now()
        return ", ".join(_key_label(row, k) for k in row.keys if _is_active(k, now)) or "None"

    @admin.display(description="Access ends")
    def access_ends(self, row: Any) -> SafeString | str:
        """Return when the last active key expires. A date in the near future is highlighted."""
        now = utc_now()
        ends_at = registry.access_ends_at(map(_key_fields, row.keys), now=now)
        if ends_at is None:
            return "Never" if any(_is_active(key, now) for key in row.keys) else "No key"
        shown = timestamp(ends_at)
        if ends_at - now > EXPIRES_SOON:
            return shown
        return format_html("{} {}", shown, chip("Expires soon", "warning", title=ROTATE))

    @admin.display(description="Last used")
    def last_used(self, row: Any) -> SafeString | str:
        """Return when a key of the client was last used, to the minute."""
        last = max((key.last_used_at for key in row.keys if key.last_used_at), default=None)
        return timestamp(last, empty="Never")

    @admin.display(description="Scopes")
    def scope_list(self, row: Any) -> str:
        """Return the scopes."""
        return ", ".join(row.scopes)

    def page_context(self, request: HttpRequest, object_id: str) -> dict[str, Any]:
        """Return the client and its keys."""
        client = self.get_object(request, object_id)
        now = utc_now()
        return {
            "client": client,
            "client_keys": [_key_row(client, key, now) for key in client.keys] if client else [],
            "may_change_keys": self.has_change_permission(request, client),
            "lifetimes": KEY_LIFETIMES,
            "default_lifetime": DEFAULT_LIFETIME,
            "max_active_keys": registry.MAX_ACTIVE_KEYS,
            "can_issue": client is not None
            and sum(_is_active(key, now) for key in client.keys) < registry.MAX_ACTIVE_KEYS,
        }

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the client's own fields only, because keys can change at the same time."""
        scopes = [Scope(scope) for scope in form.cleaned_data["scopes"]]
        if change:
            changed = {name: form.cleaned_data[name] for name in form.changed_data}
            registry.change_client(client_id=obj.pk, **changed)
        else:
            obj.pk = registry.create_client(
                name=obj.name, scopes=scopes, is_test=obj.is_test, now=utc_now()
            )

    def issue_key_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Issue a key and show it once; POST only."""
        if refused := (
            self._require_key_permission(request, object_id) or require_reauthentication(request)
        ):
            return refused
        client = self.get_object(request, object_id)
        lifetime, now = request.POST.get("life", DEFAULT_LIFETIME), utc_now()
        if lifetime not in KEY_LIFETIMES:
            messages.error(request, "No change: select an expiry.")
            return _to_client(client)
        try:
            issued = registry.issue_key(
                client_id=client.pk,
                now=now,
                lifetime=KEY_LIFETIMES[lifetime],
                requires_approval="requires_approval" in request.POST,
            )
        except registry.TooManyKeysError as problem:
            messages.error(request, str(problem))
            return _to_client(client)
        message = f"Issued the key {_key_label(client, issued)}."
        record_change(request, APIClient, client.pk, message, name=str(client))
        # The response holds the key. The admin's views forbid caches to store responses.
        return render_page(
            self,
            request,
            "console/api_clients/new_key.html",
            title="New key",
            original=client,
            key_text=issued.text,
            back=reverse(CHANGE_URL, args=[client.pk]),
        )

    def revoke_key_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Revoke a key after a confirmation; POST only."""
        if refused := self._require_key_permission(request, object_id):
            return refused
        client = self.get_object(request, object_id)
        prefix, now = request.POST.get("prefix", ""), utc_now()
        own = next((key for key in client.keys if key.prefix == prefix), None)
        if own is not None and _is_active(own, now) and not is_confirmed(request):
            return render_page(
                self,
                request,
                "console/api_clients/revoke.html",
                title="Revoke key",
                original=client,
                prefix=prefix,
                shown=_key_label(client, own),
                last_used_at=own.last_used_at,
                back=reverse(CHANGE_URL, args=[client.pk]),
            )
        if own is not None and registry.revoke_key(prefix=prefix, now=now):
            shown = _key_label(client, own)
            message = f"Revoked the key {shown}."
            record_change(request, APIClient, client.pk, message, name=str(client))
            messages.success(request, f"Key {shown} revoked.")
        else:
            messages.warning(request, "Active key not found.")
        return _to_client(client)

    def _require_key_permission(self, request: HttpRequest, object_id: str) -> HttpResponse | None:
        client = self.get_object(request, object_id)
        if refused := require_post(request, allowed=self.has_change_permission(request, client)):
            return refused
        if client is None:
            return not_found(request, "API client", "admin:access_apiclient_changelist")
        return None


def _to_client(client: Any) -> HttpResponse:
    return HttpResponseRedirect(reverse(CHANGE_URL, args=[client.pk]))


def _is_active(key: Any, now: datetime) -> bool:
    return registry.is_active(_key_fields(key), now)


def _key_fields(key: Any) -> APIKeyDocument:
    fields: APIKeyDocument = {
        "prefix": key.prefix,
        "secret_hash": key.secret_hash,
        "created_at": key.created_at,
    }
    if key.expires_at is not None:
        fields["expires_at"] = key.expires_at
    if key.revoked_at is not None:
        fields["revoked_at"] = key.revoked_at
    return fields


def _key_label(client: Any, key: Any) -> str:
    return registry.mask_key(key.prefix, is_test=client.is_test)


def _key_row(client: Any, key: Any, now: datetime) -> dict[str, Any]:
    active = _is_active(key, now)
    state = "Active" if active else "Revoked" if key.revoked_at else "Expired"
    return {"key": key, "shown": _key_label(client, key), "state": state, "is_active": active}
