"""API clients and their keys in the admin."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.safestring import SafeString
from unfold.widgets import (
    UnfoldAdminCheckboxSelectMultipleWidget,
    UnfoldAdminTextInputWidget,
    UnfoldBooleanSwitchWidget,
)

from access.clients import registry
from access.models import APIClient, Scope

from .widgets.actions import require_post
from .widgets.columns import plain_chip
from .widgets.lists import ConsoleAdmin

CHANGE_URL = "admin:access_apiclient_change"
KEY_LIFETIMES = {"": None, "30": 30, "90": 90, "365": 365}
"""How many days a new key holds, as the form names it; None: until it is revoked."""
TEST_BADGE = plain_chip(
    "Test", "warning", title="What it sends goes to the sandbox and reaches nobody."
)
_SCOPE_LABELS = {
    Scope.NOTIFICATIONS_READ: "Read its notifications",
    Scope.NOTIFICATIONS_WRITE: "Send, schedule and cancel notifications",
    Scope.NOTIFICATIONS_RESEND: "Resend and retry notifications",
    Scope.RECIPIENTS_WRITE: "Keep recipients and their preferences",
    Scope.DEVICES_WRITE: "Keep devices",
    Scope.INBOX_ISSUE: "Issue inbox tokens to its users",
    Scope.SUPPRESSIONS_WRITE: "Keep suppressions",
    Scope.CALLBACKS_WRITE: "Keep its callbacks",
    Scope.TEMPLATES_WRITE: "Keep types and templates",
    Scope.ADMIN: "Everything, clean-up included",
}


class APIClientForm(forms.ModelForm):
    """A client's name and what it may do."""

    name = forms.CharField(
        max_length=120,
        widget=UnfoldAdminTextInputWidget,
        help_text="The calling app. Each app has a client of its own.",
    )
    scopes = forms.MultipleChoiceField(
        choices=[
            (scope.value, f"{words} ({scope.value})") for scope, words in _SCOPE_LABELS.items()
        ],
        widget=UnfoldAdminCheckboxSelectMultipleWidget,
        help_text="What it may do.",
    )
    is_test = forms.BooleanField(
        label="Test mode",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="What it sends goes to the sandbox and never to people, and its keys begin "
        "ntf_test_. It changes no live data. This cannot be changed later.",
    )

    class Meta:
        """The model and the fields that are filled in."""

        model = APIClient
        fields = ("name", "scopes", "is_test", "is_active")


@admin.register(APIClient)
class APIClientAdmin(ConsoleAdmin):
    """The apps that call the API. They are switched off, not deleted: notifications name them."""

    form = APIClientForm
    list_display = ("name", "mode", "active_keys", "last_used", "scope_list", "is_active")
    fields = ("name", "mode", "is_active", "scopes")
    readonly_fields = ("mode",)
    search_fields = ("name__startswith",)
    search_help_text = "Beginning of the name"
    ordering = ("name", "id")
    change_form_outer_after_template = "admin/access/apiclient/keys.html"

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Sequence[str]:
        """Return the fields; a new client is active."""
        return self.fields if obj else ("name", "is_test", "scopes")

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those of keys."""
        own = [
            path(
                "<path:object_id>/issue-key/",
                self.admin_site.admin_view(self.issue_key_view),
                name="access_apiclient_issue_key",
            ),
            path(
                "<path:object_id>/revoke-key/",
                self.admin_site.admin_view(self.revoke_key_view),
                name="access_apiclient_revoke_key",
            ),
        ]
        return own + super().get_urls()

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return False: see the class."""
        return False

    @admin.display(description="Mode")
    def mode(self, row: Any) -> SafeString | str:
        """Whether what it sends reaches people."""
        return TEST_BADGE if row.is_test else "Live"

    @admin.display(description="Active keys")
    def active_keys(self, row: Any) -> str:
        """The prefixes of the keys that work."""
        now = datetime.now(UTC)
        return ", ".join(_key_label(row, k) for k in row.keys if _is_active(k, now)) or "None"

    @admin.display(description="Last used (UTC)")
    def last_used(self, row: Any) -> str:
        """When any of its keys was used last, to the minute."""
        last = max((key.last_used_at for key in row.keys if key.last_used_at), default=None)
        return f"{last:%Y-%m-%d %H:%M}" if last else "Never"

    @admin.display(description="Scopes")
    def scope_list(self, row: Any) -> str:
        """What it may do."""
        return ", ".join(row.scopes)

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a client and its keys."""
        client = self.get_object(request, object_id)
        now = datetime.now(UTC)
        shown = {
            "client": client,
            "client_keys": [_key_row(client, key, now) for key in client.keys] if client else [],
            "may_change_keys": self.has_change_permission(request, client),
            "max_active_keys": registry.MAX_ACTIVE_KEYS,
            "can_issue": client is not None
            and sum(_is_active(key, now) for key in client.keys) < registry.MAX_ACTIVE_KEYS,
        }
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        """Store the client's own fields: its keys may be in use meanwhile."""
        scopes = [Scope(scope) for scope in form.cleaned_data["scopes"]]
        if change:
            APIClient.objects.filter(pk=obj.pk).update(
                name=obj.name,
                scopes=[scope.value for scope in scopes],
                is_active=obj.is_active,
            )
        else:
            obj.pk = registry.create_client(
                name=obj.name, scopes=scopes, is_test=obj.is_test, now=_now()
            )

    def issue_key_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Issue a key and show it, this once; POST only, and no cache keeps the page."""
        if refused := self._require_key_permission(request, object_id):
            return refused
        client = self.get_object(request, object_id)
        lifetime, now = request.POST.get("life", ""), _now()
        if lifetime not in KEY_LIFETIMES:
            messages.error(request, "No key was issued: choose how long it holds.")
            return HttpResponseRedirect(reverse(CHANGE_URL, args=[client.pk]))
        days = KEY_LIFETIMES[lifetime]
        expires_at = now + timedelta(days=days) if days else None
        try:
            issued = registry.issue_key(client_id=client.pk, now=now, expires_at=expires_at)
        except registry.TooManyKeysError as problem:
            messages.error(request, str(problem))
            return HttpResponseRedirect(reverse(CHANGE_URL, args=[client.pk]))
        _record(request, client, f"Issued the key {_key_label(client, issued)}.")
        return self._key_page(request, client, issued.text)

    def _key_page(self, request: HttpRequest, client: Any, text: str) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": "New key",
            "opts": self.opts,
            "original": client,
            "key_text": text,
            "back": reverse(CHANGE_URL, args=[client.pk]),
        }
        # The admin's views forbid every cache to keep what they answer.
        return TemplateResponse(request, "admin/access/apiclient/new_key.html", context)

    def revoke_key_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Switch a key off for good, after asking; POST only."""
        if refused := self._require_key_permission(request, object_id):
            return refused
        client = self.get_object(request, object_id)
        prefix, now = request.POST.get("prefix", ""), _now()
        own = next((key for key in client.keys if key.prefix == prefix), None)
        needs_confirmation = own is not None and _is_active(own, now)
        if needs_confirmation and request.POST.get("confirmed") != "yes":
            return self._revoke_page(request, client, own)
        if own is not None and registry.revoke_key(prefix=prefix, now=now):
            shown = _key_label(client, own)
            _record(request, client, f"Revoked the key {shown}.")
            messages.success(request, f"The key {shown} is revoked: it works no more.")
        else:
            messages.warning(request, "There is no such active key.")
        return HttpResponseRedirect(reverse(CHANGE_URL, args=[client.pk]))

    def _revoke_page(self, request: HttpRequest, client: Any, key: Any) -> HttpResponse:
        request.current_app = self.admin_site.name
        context = {
            **self.admin_site.each_context(request),
            "title": "Revoke a key",
            "opts": self.opts,
            "original": client,
            "prefix": key.prefix,
            "shown": _key_label(client, key),
            "last_used_at": key.last_used_at,
            "back": reverse(CHANGE_URL, args=[client.pk]),
        }
        return TemplateResponse(request, "admin/access/apiclient/revoke.html", context)

    def _require_key_permission(self, request: HttpRequest, object_id: str) -> HttpResponse | None:
        """Return why keys are not changed now; None if they may be."""
        client = self.get_object(request, object_id)
        if refused := require_post(request, allowed=self.has_change_permission(request, client)):
            return refused
        if client is None:
            messages.warning(request, "There is no such client.")
            return HttpResponseRedirect(reverse("admin:access_apiclient_changelist"))
        return None


def _is_active(key: Any, now: datetime) -> bool:
    return registry.is_active({"revoked_at": key.revoked_at, "expires_at": key.expires_at}, now)


def _key_label(client: Any, key: Any) -> str:
    return registry.mask_key(key.prefix, is_test=client.is_test)


def _key_row(client: Any, key: Any, now: datetime) -> dict[str, Any]:
    active = _is_active(key, now)
    state = "Active" if active else "Revoked" if key.revoked_at else "Expired"
    return {"key": key, "shown": _key_label(client, key), "state": state, "is_active": active}


def _record(request: HttpRequest, client: APIClient, message: str) -> None:
    LogEntry.objects.create(
        user_id=request.user.pk,
        content_type=ContentType.objects.get_for_model(APIClient),
        object_id=str(client.pk),
        object_repr=str(client),
        action_flag=CHANGE,
        change_message=message,
    )


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)
