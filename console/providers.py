"""Providers: health, pause, circuit breaker and test sends."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.conf import settings
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery import circuit_breaker, provider_pauses
from delivery.circuit_breaker import MIN_RECIPIENTS, CircuitState, Refusals, State
from domain.daily_units import day_of
from domain.time import utc_now
from monitoring import provider_health
from monitoring.provider_health import ProviderHealth
from notifications import validation
from notifications.catalog.texts import total_price
from notifications.intake import preview
from notifications.models import ProviderState
from notifications.receipts import lag
from notifications.store import country_units
from providers.accounts import account_of, spec_of
from providers.labels import PROVIDERS
from rooms import registry as rooms

from .sends import address_of_test, offered_devices
from .texts.labels import CHANNELS, CIRCUIT_LABELS, HEALTH_LABELS, PLATFORM_LABELS
from .widgets.actions import ask, is_confirmed, record_change, render_page, require_post
from .widgets.columns import chip
from .widgets.formats import clock, count_of, duration, latency, percent
from .widgets.links import NOTIFICATION, next_page
from .widgets.lists import ListOnlyAdmin
from .widgets.prices import parts_and_price

PAGE = "admin:notifications_providerstate_changelist"
MAY_PAUSE, MAY_TEST = "notifications.pause_provider", "notifications.test_provider"


@admin.register(ProviderState)
class ProviderStateAdmin(ListOnlyAdmin):
    """The page of all configured providers."""

    def own_urls(self) -> list[URLPattern]:
        """Return the URLs of the actions."""
        return [
            self.url("<str:name>/pause/", self.pause_view, "pause"),
            self.url("<str:name>/resume/", self.resume_view, "resume"),
            self.url("<str:name>/close/", self.close_view, "close"),
            self.url("<str:name>/test/", self.test_view, "test"),
        ]

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        """Show the providers."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        now = utc_now()
        return render_page(
            self,
            request,
            "console/providers.html",
            title="Providers",
            providers=rows(now=now),
            may_pause=request.user.has_perm(MAY_PAUSE),
            may_test=request.user.has_perm(MAY_TEST),
            test_devices=offered_devices(request) if request.user.has_perm(MAY_TEST) else [],
            now=now,
        )

    def pause_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Pause a provider; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        reason = request.POST.get("reason", "").strip()[: circuit_breaker.REASON_LENGTH]
        user = request.user.get_username()
        if provider_pauses.pause(name, by=user, reason=reason, now=utc_now()):
            _record(request, name, f"Paused{f': {reason}' if reason else '.'}")
            messages.success(request, f"{_label(name)} paused.")
        else:
            messages.warning(request, f"No change: {_label(name)} is already paused.")
        return HttpResponseRedirect(reverse(PAGE))

    def resume_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Resume a provider; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        if provider_pauses.resume(name, by=request.user.get_username()):
            _record(request, name, "Resumed.")
            messages.success(request, f"{_label(name)} resumed. Sending restarts within 1 min.")
        else:
            messages.warning(request, f"No change: {_label(name)} isn't paused.")
        has_next = "next" in request.POST
        return HttpResponseRedirect(next_page(request) if has_next else reverse(PAGE))

    def close_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Close a provider's circuit without a probe, after a confirmation; POST only."""
        if refused := _require_provider(request, name, MAY_PAUSE):
            return refused
        circuit_name = request.POST.get("circuit", "")
        known = {
            circuit.name
            for health in provider_health.provider_health(now=utc_now())
            for circuit in health.circuits
            if health.name == name
        }
        if circuit_name not in known:
            messages.warning(request, "Circuit not found.")
        elif not is_confirmed(request):
            minutes = circuit_breaker.WINDOW.total_seconds() / 60
            risk = (
                f"If {_label(name)} still fails, each delivery that is sent uses an attempt. The "
                f"circuit opens again after {circuit_breaker.MIN_FAILURES} failures in "
                f"{minutes:.0f} min, or {MIN_RECIPIENTS} recipients refused in a row."
            )
            return ask(
                self,
                request,
                question=f"Close the circuit of {_label(name)}?",
                consequences=["What it holds is sent within minutes, without a probe first.", risk],
                button="Close circuit",
                back=reverse(PAGE),
                hidden={"circuit": circuit_name},
            )
        elif circuit_breaker.close(circuit_name):
            _record(request, name, f"Closed the circuit {circuit_name}.")
            messages.success(request, f"Circuit of {_label(name)} closed.")
        else:
            messages.error(request, "No change: Valkey is unavailable.")
        return HttpResponseRedirect(reverse(PAGE))

    def test_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Send a test on a provider's channel; POST only."""
        if refused := _require_provider(request, name, MAY_TEST):
            return refused
        now = utc_now()
        channel = next(
            p.channel for p in provider_health.provider_health(now=now) if p.name == name
        )
        address = address_of_test(request, channel=channel)
        try:
            notification_id = preview.send_test(channel=channel, address=address, now=now)
        except validation.InvalidRequestError as error:
            show_not_sent(request, error)
        else:
            _record(request, name, f"Sent a test by {CHANNELS[channel]}: {notification_id}.")
            show_test_sent(request, notification_id)
        return HttpResponseRedirect(reverse(PAGE))


def show_test_sent(request: HttpRequest, notification_id: Any) -> None:
    """Tell the user that a test was sent, with a link to it."""
    url = reverse(NOTIFICATION, args=[notification_id])
    messages.success(request, format_html('Test sent. <a href="{}">View notification</a>.', url))


def show_not_sent(request: HttpRequest, error: validation.InvalidRequestError) -> None:
    """Tell the user why a test wasn't sent."""
    detail = " ".join(dict.fromkeys(problem.detail for problem in error.problems))
    messages.error(request, f"Test not sent: {detail}")


def rows(*, now: datetime) -> list[dict[str, Any]]:
    """Return the providers as the pages show them: of rooms, those that a room uses."""
    kinds = {room.kind for room in rooms.find_rooms().values()}
    return [
        _row(health, now)
        for health in provider_health.provider_health(now=now)
        if health.channel.is_personal or health.name in kinds or health.pause
    ]


def _row(health: ProviderHealth, now: datetime) -> dict[str, Any]:
    pause = health.pause
    reach = health.channel.spec.reach
    webhook = _webhook(health.name)
    return {
        "health": health,
        "label": _label(health.name),
        "channel": CHANNELS[health.channel],
        "icon": health.channel.spec.icon,
        "chip": chip(*HEALTH_LABELS[health.health]),
        "paused_for": duration((now - pause.since).total_seconds()) if pause else "",
        "circuits": [
            {
                "circuit": circuit,
                "scope": circuit.scope,
                "chip": chip(*CIRCUIT_LABELS[circuit.state]),
                "is_closed": circuit.state is State.CLOSED,
                "counts": _counts(circuit),
                "refusals": [
                    _evidence_and_effect(refusal, circuit, now) for refusal in circuit.refusals
                ],
                "next_probe": _next_probe(circuit, now),
            }
            for circuit in health.circuits
        ],
        "warnings": _warnings(health),
        "webhook": webhook,
        "spend": _spend(health, now) if health.channel.pays_by_part else (),
        "last_receipt": lag.newest_receipt_at(health.name) if webhook else None,
        "failed_share": percent(health.failures / health.attempts) if health.failures else "",
        "rate": _rate(health, now),
        "p95": latency(health.p95),
        "address_label": reach.test_label,
        "address_type": reach.test_input,
    }


def _counts(circuit: CircuitState) -> str:
    """Return the results that a circuit counts, and of which minute they are."""
    if circuit.opened_at is None and not circuit.failures + circuit.successes:
        return "No results in the last 1 min"
    successes = f"{circuit.successes} success{'' if circuit.successes == 1 else 'es'}"
    results = f"{count_of(circuit.failures, 'failure')}, {successes}"
    return f"{results} in 1 min{' before it opened' if circuit.opened_at else ''}"


def _evidence(refusals: Refusals, circuit: CircuitState) -> str:
    """Return how much evidence there is: "3 of 5 recipients refused in a row"."""
    is_rate = refusals.scope == circuit_breaker.RATE
    scope = circuit.scope if is_rate else refusals.scope or circuit.scope
    scope_label = next((name for key, name in PLATFORM_LABELS.items() if key == scope), scope)
    what = "rate-limited" if is_rate else "refused"
    found = f"{refusals.recipients} of {MIN_RECIPIENTS} recipients {what} in a row"
    return f"{scope_label}: {found}" if scope else found


def _evidence_and_effect(refusals: Refusals, circuit: CircuitState, now: datetime) -> SafeString:
    is_rate = refusals.scope == circuit_breaker.RATE
    return format_html(
        "{}, last {}. At {}, the {}.",
        _evidence(refusals, circuit),
        clock(refusals.last_at, now=now),
        MIN_RECIPIENTS,
        "rate is halved" if is_rate else "circuit opens",
    )


def _warnings(health: ProviderHealth) -> list[str]:
    """Return the evidence that could soon open a circuit, for Home."""
    return [
        _evidence(refusal, circuit)
        for circuit in health.circuits
        if circuit.state is State.CLOSED
        for refusal in circuit.refusals
    ]


def _next_probe(circuit: CircuitState, now: datetime) -> SafeString | str:
    """Return when the next probe may be sent: "18:39, in 8 min"."""
    if circuit.open_until is None:
        return ""
    left = (circuit.open_until - now).total_seconds()
    if left <= 0:
        return "with the next message"
    return format_html("{}, in {}", clock(circuit.open_until, now=now), duration(left))


def _rate(health: ProviderHealth, now: datetime) -> str:
    if health.rate is None:
        limit = "no limit"
    elif health.current_rate == health.rate:
        limit = f"{health.rate:,.0f}/s"
    else:
        limit = f"{health.current_rate:,.1f}/s now (limit {health.rate:,.0f}/s)"
    until = health.rate_status.blocked_until if health.rate_status else None
    return format_html("{}, blocked until {}", limit, clock(until, now=now)) if until else limit


def _spend(health: ProviderHealth, now: datetime) -> Sequence[tuple[str, str]]:
    """Return how many parts a provider sent today and this month, and what they cost."""
    today = day_of(now)
    days = country_units.days_since(today.replace(day=1), provider=health.name)
    month = Counter[str]()
    for units in days.values():
        month.update(units)
    # What has no price today has none in the month.
    return [
        ("today", parts_and_price(total_price(days.get(today, {})), is_short=True)),
        (f"in {today:%B}", parts_and_price(total_price(month))),
    ]


def _webhook(name: str) -> str:
    """Return the address that staff give to the provider. Empty: it reports nothing."""
    path = account_of(name).webhook_path if spec_of(name).webhook else ""
    return f"{settings.PUBLIC_URL}{path}" if path else ""


def _label(name: str) -> str:
    return PROVIDERS.get(name, name)


def _require_provider(request: HttpRequest, name: str, permission: str) -> HttpResponse | None:
    if refused := require_post(request, allowed=request.user.has_perm(permission)):
        return refused
    if name not in provider_health.provider_names():
        messages.warning(request, "Provider not found.")
        return HttpResponseRedirect(reverse(PAGE))
    return None


def _record(request: HttpRequest, name: str, message: str) -> None:
    record_change(request, ProviderState, name, message, name=_label(name))
