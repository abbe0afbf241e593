"""Where apps are called back, and how their receivers do."""

from typing import Any

from django.contrib import admin, messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.http import urlencode
from django.utils.safestring import SafeString

from notifyproject.console.posts import refusal
from notifyproject.console.words import chip

from ..events import CallbackState, DisabledReason
from ..models import Callback
from ..retry import FAILURES_TO_OPEN
from . import operations
from .naming import OfAnApp
from .showing import MEANINGS, NOTHING, REASONS, moment

CHANGE_URL = "admin:callbacks_callback_change"


@admin.register(Callback)
class CallbackAdmin(OfAnApp):
    """The callbacks, one for each app that wants one. The apps keep them.

    Of a URL only the host is shown: what follows it may be as good as a password.
    """

    list_display = ("app", "host", "standing", "succeeded", "failing", "error")
    fieldsets = (
        (None, {"fields": ("app", "host", "standing", "meaning", "told_of", "everything_told")}),
        ("Receiver", {"fields": ("succeeded", "failed", "failing", "error", "left_alone")}),
        ("More", {"fields": ("signed_with", "made", "changed")}),
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
        if refused := refusal(request, may=request.user.has_perm("callbacks.switch_callback")):
            return refused
        callback = self.get_object(request, object_id)
        if callback is None:
            messages.warning(request, "There is no such callback any more.")
            return HttpResponseRedirect(reverse("admin:callbacks_callback_changelist"))
        operations.switch(request, callback, on=on)
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
    def standing(self, row: Any) -> SafeString:
        """Whether it is called, and whether that comes through."""
        if row.state != CallbackState.ACTIVE:
            return chip(REASONS[DisabledReason(row.disabled_reason)], "danger")
        if row.failures >= FAILURES_TO_OPEN:
            return chip("Failing", "danger")
        return chip("Failing now and then", "warning") if row.failures else chip("On", "success")

    @admin.display(description="What that means")
    def meaning(self, row: Any) -> str:
        """What it means, and what brings it back."""
        if row.state != CallbackState.ACTIVE:
            what = MEANINGS[DisabledReason(row.disabled_reason)]
            return f"Off since {moment(row.disabled_at)} UTC. {what}"
        if row.failing_since:
            return "What does not come through is tried again for a day; then it can be sent again."
        return "The app is told at once."

    @admin.display(description="Is told of")
    def told_of(self, row: Any) -> str:
        """What it is for."""
        return ", ".join(row.events)

    @admin.display(description="Messages")
    def everything_told(self, row: Any) -> SafeString:
        """Where the app's messages are listed."""
        url = reverse("admin:callbacks_callbackmessage_changelist")
        query = urlencode({"client": row.client_id})
        return format_html('<a class="text-link" href="{}?{}">Show messages</a>', url, query)

    @admin.display(description="Last success (UTC)")
    def succeeded(self, row: Any) -> str:
        """When something last came through."""
        return moment(row.last_success_at)

    @admin.display(description="Last failure (UTC)")
    def failed(self, row: Any) -> str:
        """When something last did not."""
        return moment(row.last_failure_at)

    @admin.display(description="Failing since (UTC)")
    def failing(self, row: Any) -> str:
        """Since when nothing comes through."""
        return moment(row.failing_since)

    @admin.display(description="Last error")
    def error(self, row: Any) -> str:
        """What the last failure was."""
        return row.last_error or NOTHING

    @admin.display(description="Left alone until (UTC)")
    def left_alone(self, row: Any) -> str:
        """Until when nothing is sent, for too much has failed in a row."""
        return moment(row.open_until)

    @admin.display(description="Signed with")
    def signed_with(self, row: Any) -> str:
        """Since when it has its secret, and until when the one before it is valid."""
        newest, *others = row.secrets
        ends = [other.until for other in others if other.until]
        overlap = f"; the one before it until {moment(max(ends))}" if ends else ""
        return f"A secret of {moment(newest.created_at)}{overlap}"

    @admin.display(description="Made (UTC)")
    def made(self, row: Any) -> str:
        """When it was made."""
        return moment(row.created_at)

    @admin.display(description="Last change (UTC)")
    def changed(self, row: Any) -> str:
        """When the app or staff last changed it."""
        return moment(row.updated_at)
