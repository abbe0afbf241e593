"""Callback endpoints of apps."""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from bson import ObjectId
from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from callbacks import audit, outbox, subscriptions
from callbacks.events import CallbackState, CallbackStatus, DisabledReason
from callbacks.models import Callback, CallbackMessage
from callbacks.outbox import StillPendingError
from callbacks.retry import FAILURES_TO_OPEN
from callbacks.subscriptions import NoCallbackError
from notifyproject.db.collections import collection

from ..widgets.actions import require_post
from ..widgets.columns import plain_chip
from ..widgets.lists import ReadOnlyAdmin


class ClientOwnedAdmin(ReadOnlyAdmin):
    """Rows that know their app by its id only."""

    def prepare_rows(self, request: HttpRequest, rows: Sequence[Any]) -> None:
        """Add the apps' names."""
        names = client_names({row.client_id for row in rows})
        for row in rows:
            row.app_name = names.get(row.client_id, str(row.client_id))

    def get_object(self, request: HttpRequest, *args: Any) -> Any:
        """Return one row with its app's name."""
        found = super().get_object(request, *args)
        if found is not None:
            self.prepare_rows(request, [found])
        return found

    @admin.display(description="App")
    def app(self, row: Any) -> str:
        """Whose it is."""
        return str(row.app_name)


EMPTY = "-"
REASON_LABELS: Mapping[DisabledReason, str] = {
    DisabledReason.GONE: "Off: its receiver is gone",
    DisabledReason.FAILING: "Off: failing for five days",
    DisabledReason.BY_OPERATOR: "Off: switched off here",
}
MEANINGS: Mapping[DisabledReason, str] = {
    DisabledReason.GONE: (
        "The receiver answered 410, that it is there no more. The app switches the callback on "
        "again by putting it anew, or somebody does here."
    ),
    DisabledReason.FAILING: (
        "Nothing has come through for five days. The app switches the callback on again by "
        "putting it anew, or somebody does here."
    ),
    DisabledReason.BY_OPERATOR: "Somebody switched it off here. The app cannot switch it on again.",
}
STATUS_COLORS: Mapping[CallbackStatus, str] = {
    CallbackStatus.PENDING: "info",
    CallbackStatus.DELIVERED: "success",
    CallbackStatus.FAILED: "danger",
}


def client_names(client_ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the names of apps, of those there are."""
    found = collection("api_clients").find({"_id": {"$in": list(client_ids)}}, {"name": 1})
    return {document["_id"]: document["name"] for document in found}


def timestamp(at: datetime | None) -> str:
    """Return a time to the second."""
    return f"{at:%Y-%m-%d %H:%M:%S}" if at else EMPTY


def set_enabled(request: HttpRequest, callback: Callback, *, on: bool) -> None:
    """Switch a callback, and tell the user whether that changed anything."""
    client_id, now, state = callback.client_id, _now(), "on again" if on else "off"
    if on:
        is_done = subscriptions.enable(client_id=client_id, now=now)
    else:
        reason = DisabledReason.BY_OPERATOR
        is_done = subscriptions.disable(client_id=client_id, reason=reason, now=now)
        outbox.fail_pending(client_id=client_id, reason=outbox.DISABLED_REASON)
    if not is_done:
        messages.warning(request, f"It was switched {state} already, or is gone.")
        return
    audit.record(client_id, f"Switched {state}.", by=request.user.pk)
    messages.success(request, f"The callback is switched {state}.")


def replay(request: HttpRequest, wanted: Sequence[CallbackMessage]) -> None:
    """Send messages again, record each, and tell the user what became of them."""
    done, refused = 0, dict[str, int]()
    for message in wanted:
        try:
            outbox.replay(message_id=message.pk, client_id=None, now=_now())
        except StillPendingError:
            _count(refused, "it has not ended yet")
        except NoCallbackError:
            _count(refused, "its app has no callback any more")
        except LookupError:
            _count(refused, "it is not there any more")
        else:
            audit.record_replay(message.pk, by=request.user.pk)
            done += 1
    if done:
        messages.success(
            request, f"{done} {'message is' if done == 1 else 'messages are'} sent again."
        )
    for reason, count in refused.items():
        messages.warning(request, f"{count} left as before: {reason}.")


def _count(refused: dict[str, int], reason: str) -> None:
    refused[reason] = refused.get(reason, 0) + 1


def _now() -> datetime:
    now = datetime.now(UTC)
    return now.replace(microsecond=now.microsecond // 1000 * 1000)


CHANGE_URL = "admin:callbacks_callback_change"


@admin.register(Callback)
class CallbackAdmin(ClientOwnedAdmin):
    """The callbacks, one for each app that wants one. The apps keep them.

    Of a URL only the host is shown: what follows it may be as good as a password.
    """

    list_display = ("app", "host", "status", "last_success", "failing_since_display", "error")
    fieldsets = (
        (None, {"fields": ("app", "host", "status", "meaning", "events_display", "messages_link")}),
        (
            "Receiver",
            {
                "fields": (
                    "last_success",
                    "last_failure",
                    "failing_since_display",
                    "error",
                    "circuit_open_until",
                )
            },
        ),
        ("More", {"fields": ("signed_with", "created", "changed")}),
    )
    ordering = ("client_id",)
    change_form_outer_after_template = "admin/callbacks/callback/switch.html"

    def get_urls(self) -> list[URLPattern]:
        """Return the admin's URLs, and those that switch one callback."""
        own = [
            path(
                f"<path:object_id>/switch-{'on' if on else 'off'}/",
                self.admin_site.admin_view(self.switch_view),
                {"on": on},
                name=f"callbacks_callback_switch_{'on' if on else 'off'}",
            )
            for on in (True, False)
        ]
        return own + super().get_urls()

    def switch_view(self, request: HttpRequest, object_id: str, *, on: bool) -> HttpResponse:
        """Switch one callback on or off; POST only."""
        if refused := require_post(
            request, allowed=request.user.has_perm("callbacks.switch_callback")
        ):
            return refused
        callback = self.get_object(request, object_id)
        if callback is None:
            messages.warning(request, "There is no such callback any more.")
            return HttpResponseRedirect(reverse("admin:callbacks_callback_changelist"))
        set_enabled(request, callback, on=on)
        return HttpResponseRedirect(reverse(CHANGE_URL, args=[callback.pk]))

    def change_view(
        self,
        request: HttpRequest,
        object_id: str,
        form_url: str = "",
        extra_context: dict[str, Any] | None = None,
    ) -> HttpResponse:
        """Show a callback, with a button that switches it."""
        callback = self.get_object(request, object_id)
        shown: dict[str, Any] = {"callback": callback, "may_switch": False}
        if callback is not None:
            is_on = callback.state == CallbackState.ACTIVE
            name = f"admin:callbacks_callback_switch_{'off' if is_on else 'on'}"
            shown |= {
                "is_on": is_on,
                "may_switch": request.user.has_perm("callbacks.switch_callback"),
                "switch_url": reverse(name, args=[callback.pk]),
            }
        return super().change_view(request, object_id, form_url, shown | (extra_context or {}))

    @admin.display(description="State")
    def status(self, row: Any) -> SafeString:
        """Whether it is called, and whether that comes through."""
        if row.state != CallbackState.ACTIVE:
            return plain_chip(REASON_LABELS[DisabledReason(row.disabled_reason)], "danger")
        if row.failures >= FAILURES_TO_OPEN:
            return plain_chip("Failing", "danger")
        return (
            plain_chip("Failing now and then", "warning")
            if row.failures
            else plain_chip("On", "success")
        )

    @admin.display(description="What that means")
    def meaning(self, row: Any) -> str:
        """What it means, and what brings it back."""
        if row.state != CallbackState.ACTIVE:
            what = MEANINGS[DisabledReason(row.disabled_reason)]
            return f"Off since {timestamp(row.disabled_at)} UTC. {what}"
        if row.failing_since:
            return "What does not come through is tried again for a day; then it can be sent again."
        return "The app is told at once."

    @admin.display(description="Is told of")
    def events_display(self, row: Any) -> str:
        """What it is for."""
        return ", ".join(row.events)

    @admin.display(description="Messages")
    def messages_link(self, row: Any) -> SafeString:
        """Where the app's messages are listed."""
        url = reverse("admin:callbacks_callbackmessage_changelist")
        query = urlencode({"client": row.client_id})
        return format_html('<a class="text-link" href="{}?{}">Show messages</a>', url, query)

    @admin.display(description="Last success (UTC)")
    def last_success(self, row: Any) -> str:
        """When something last came through."""
        return timestamp(row.last_success_at)

    @admin.display(description="Last failure (UTC)")
    def last_failure(self, row: Any) -> str:
        """When something last did not."""
        return timestamp(row.last_failure_at)

    @admin.display(description="Failing since (UTC)")
    def failing_since_display(self, row: Any) -> str:
        """Since when nothing comes through."""
        return timestamp(row.failing_since)

    @admin.display(description="Last error")
    def error(self, row: Any) -> str:
        """What the last failure was."""
        return row.last_error or EMPTY

    @admin.display(description="Left alone until (UTC)")
    def circuit_open_until(self, row: Any) -> str:
        """Until when nothing is sent, for too much has failed in a row."""
        return timestamp(row.open_until)

    @admin.display(description="Signed with")
    def signed_with(self, row: Any) -> str:
        """Since when it has its secret, and until when the one before it is valid."""
        newest, *others = row.secrets
        ends = [other.until for other in others if other.until]
        overlap = f"; the one before it until {timestamp(max(ends))}" if ends else ""
        return f"A secret of {timestamp(newest.created_at)}{overlap}"

    @admin.display(description="Made (UTC)")
    def created(self, row: Any) -> str:
        """When it was made."""
        return timestamp(row.created_at)

    @admin.display(description="Last change (UTC)")
    def changed(self, row: Any) -> str:
        """When the app or staff last changed it."""
        return timestamp(row.updated_at)
