"""The providers: how each is doing, pause and resume, and a test message."""

from datetime import datetime
from typing import Any

from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from delivery import circuit_breaker
from delivery.circuit_breaker import State
from domain.states import Channel
from domain.time import utc_now
from monitoring import provider_health
from monitoring.provider_health import Health, ProviderHealth
from notifications import validation
from notifications.intake import preview
from notifications.models import ProviderState
from notifyproject.platform import audit

from .notifications.actions import DETAIL
from .notifications.summary import PROVIDER_LABELS, duration
from .widgets.actions import require_post
from .widgets.labels import CHANNEL_ICONS, CHANNELS
from .widgets.lists import ReadOnlyAdmin

PAGE = "admin:notifications_providerstate_changelist"
MAY_PAUSE, MAY_TEST = "notifications.pause_provider", "notifications.test_provider"
ADDRESS_LENGTH = 320
MINUTE = 60
HEALTH_LABELS = {
    Health.PAUSED: ("Paused", "warning"),
    Health.OPEN: ("Takes nothing", "danger"),
    Health.PROBING: ("Being tried again", "warning"),
    Health.PARTLY_OPEN: ("Partly down", "warning"),
    Health.RATE_LIMITED: ("Slowed down", "warning"),
    Health.UNKNOWN: ("Not known", "calm"),
    Health.HEALTHY: ("Well", "success"),
}
CIRCUIT_LABELS = {
    State.CLOSED: ("Closed", "success"),
    State.OPEN: ("Open", "danger"),
    State.HALF_OPEN: ("Half open", "warning"),
}
TEST_ADDRESSES = {
    Channel.EMAIL: ("Mail address", "email"),
    Channel.PUSH: ("Id of a device", "text"),
    Channel.WHATSAPP: ("Phone number, +351…", "tel"),
}


@admin.register(ProviderState)
class ProviderStateAdmin(ReadOnlyAdmin):
    """One page with every provider that is set up."""

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Return whether the user may look at the page; a provider has none of its own."""
        return obj is None and super().has_view_permission(request)

    def get_urls(self) -> list[URLPattern]:
        """Return the page's address, and those of what is done on it."""
        views = (
            ("pause", self.pause_view),
            ("resume", self.resume_view),
            ("close", self.close_view),
            ("test", self.test_view),
        )
        own = [
            path(
                f"<str:name>/{word}/",
                self.admin_site.admin_view(view),
                name=f"notifications_providerstate_{word}",
            )
            for word, view in views
        ]
        return own + super().get_urls()

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the providers."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = utc_now()
        context = {
            **self.admin_site.each_context(request),
            "title": "Providers",
            "opts": self.opts,
            "providers": rows(now=now),
            "may_pause": request.user.has_perm(MAY_PAUSE),
            "may_test": request.user.has_perm(MAY_TEST),
            "now": now,
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/notifications/providerstate/page.html", context)

    def pause_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Let nothing more go to a provider; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        reason = request.POST.get("reason", "").strip()[: circuit_breaker.REASON_LENGTH]
        user = request.user.get_username()
        if circuit_breaker.pause(name, by=user, reason=reason, now=utc_now()):
            _record(request, name, f"Paused{f': {reason}' if reason else '.'}")
            messages.success(request, f"{provider_label(name)} is paused: nothing more goes there.")
        else:
            messages.warning(request, f"{provider_label(name)} was paused already.")
        return HttpResponseRedirect(reverse(PAGE))

    def resume_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Let a provider be used again; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        if circuit_breaker.resume(name, by=request.user.get_username()):
            _record(request, name, "Resumed.")
            messages.success(
                request, f"{provider_label(name)} is used again, within half a minute."
            )
        else:
            messages.warning(request, f"{provider_label(name)} was not paused.")
        return HttpResponseRedirect(reverse(PAGE))

    def close_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Close a provider's circuit, because somebody knows that it is well again; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        account = request.POST.get("circuit", "")
        found = [
            circuit
            for one in provider_health.provider_health(now=utc_now())
            for circuit in one.circuits
            if one.name == name and circuit.account == account
        ]
        if not found:
            messages.warning(request, "There is no such circuit.")
        elif circuit_breaker.close(account):
            _record(request, name, f"Closed the circuit {account}.")
            messages.success(
                request, f"The circuit of {provider_label(name)} is closed: all goes there."
            )
        else:
            messages.error(request, "Nothing was done: Valkey does not answer.")
        return HttpResponseRedirect(reverse(PAGE))

    def test_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Send a test by a provider's channel; POST only."""
        if refused := _require_provider(request, name, MAY_TEST):
            return refused
        now = utc_now()
        channel = next(
            p.channel for p in provider_health.provider_health(now=now) if p.name == name
        )
        address = request.POST.get("address", "").strip()[:ADDRESS_LENGTH]
        try:
            notification_id = preview.send_test(channel=channel, address=address, now=now)
        except validation.InvalidRequestError as error:
            detail = " ".join(dict.fromkeys(problem.detail for problem in error.problems))
            messages.error(request, f"Nothing was sent: {detail}")
        else:
            _record(request, name, f"Sent a test by {CHANNELS[channel]}: {notification_id}.")
            link = reverse(DETAIL, args=[notification_id])
            text = format_html('The test is on its way: <a href="{}">follow it</a>.', link)
            messages.success(request, text)
        return HttpResponseRedirect(reverse(PAGE))


def rows(*, now: datetime) -> list[dict[str, Any]]:
    """Return the providers as the pages show them."""
    return [_row(one, now) for one in provider_health.provider_health(now=now)]


def _row(one: ProviderHealth, now: datetime) -> dict[str, Any]:
    words, color = HEALTH_LABELS[one.health]
    label, input_type = TEST_ADDRESSES[one.channel]
    return {
        "health": one,
        "label": provider_label(one.name),
        "channel": CHANNELS[one.channel],
        "icon": CHANNEL_ICONS[one.channel],
        "words": words,
        "color": color,
        "paused_for": duration((now - one.pause.since).total_seconds()) if one.pause else "",
        "circuits": [_circuit(one, circuit) for circuit in one.circuits],
        "rate": _rate(one),
        "p95": short_duration(one.p95),
        "address_label": label,
        "address_type": input_type,
    }


def _circuit(one: ProviderHealth, circuit: Any) -> dict[str, Any]:
    words, color = CIRCUIT_LABELS[circuit.state]
    scope = circuit.account.removeprefix(one.account).removeprefix(":")
    return {
        "circuit": circuit,
        "scope": scope or "all of it",
        "words": words,
        "color": color,
        "is_closed": circuit.state is State.CLOSED,
    }


def _rate(one: ProviderHealth) -> str:
    if one.rate is None:
        limit = "no limit"
    elif one.current_rate == one.rate:
        limit = f"{one.rate:,.0f} a second"
    else:
        limit = f"{one.current_rate:,.1f} a second now, of {one.rate:,.0f}"
    until = one.rate_status.blocked_until if one.rate_status else None
    return f"{limit}; nothing before {until:%H:%M:%S}" if until else limit


def short_duration(wait: float | None) -> str:
    """Return a wait in words; a dash for none."""
    if wait is None:
        return "-"
    if wait < 1:
        return f"{wait * 1000:.0f} ms"
    return f"{wait:.1f} s" if wait < MINUTE else duration(wait)


def provider_label(name: str) -> str:
    return PROVIDER_LABELS.get(name, name)


def _require_provider(request: HttpRequest, name: str, permission: str) -> HttpResponse | None:
    """Return why nothing is done; None if it may be."""
    if refused := require_post(request, allowed=request.user.has_perm(permission)):
        return refused
    if name not in provider_health.provider_names():
        messages.warning(request, "There is no such provider.")
        return HttpResponseRedirect(reverse(PAGE))
    return None


def _record(request: HttpRequest, name: str, message: str) -> None:
    audit.record(
        by=request.user.pk,
        model=ProviderState,
        object_id=name,
        name=provider_label(name),
        message=message,
    )
