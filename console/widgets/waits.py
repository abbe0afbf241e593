"""Why a delivery waits, and until when: the same words on every page."""

from collections.abc import Mapping
from datetime import datetime

from django.utils.html import format_html
from django.utils.safestring import SafeString

from delivery import provider_pauses
from delivery.accounts import brand_providers
from delivery.provider_pauses import Pause
from domain.channels import Channel
from domain.wait_reasons import OUTAGES, WaitReason
from providers.registry import all_providers_for

from ..texts.labels import provider_label
from ..texts.wait_reasons import GOALS, WAIT_LABELS, WAITS_UNTIL
from .formats import clock

Pauses = Mapping[Channel, str]
"""By channel: which of its providers is paused, by whom, and why."""


def wait_text(
    reason: WaitReason,
    channel: Channel,
    until: datetime | None,
    *,
    goal: str | None = None,
    limit: str | None = None,
    pauses: Pauses,
    now: datetime,
) -> SafeString | str:
    """Return why a delivery waits, and until when: "Rate limited until 12:05".

    ``limit`` is the name of the limit that holds it. ``goal`` is that of the notification's plan:
    "Held: later step at 12:05 unless read by then".
    """
    if reason is WaitReason.OVER_LIMIT and limit and until is not None and until > now:
        return format_html("Held: limit {} until {}", limit, clock(until, now=now))
    if reason in WAITS_UNTIL and until is not None and until > now:
        text = format_html(WAITS_UNTIL[reason], clock(until, now=now))
        if reason is WaitReason.STEP and goal is not None:
            return format_html("{} unless {} by then", text, GOALS[goal])
        return text
    text = WAIT_LABELS[reason][0]
    if reason is WaitReason.PROVIDER_PAUSED and channel in pauses:
        text = f"Held: {pauses[channel]}"
    if reason in OUTAGES and until is not None and until > now:
        return format_html("{} (next check {})", text, clock(until, now=now))
    return text


def pause_text(pause: Pause) -> str:
    """Return a provider's pause as text: "SendGrid paused by maria (OPS-12)"."""
    text = f"{provider_label(pause.provider)} paused"
    text += f" by {pause.by}" if pause.by else ""
    return f"{text} ({pause.reason})" if pause.reason else text


def find_pauses() -> Pauses:
    """Return the pause of each channel's first paused provider. Raises PyMongoError."""
    paused = provider_pauses.pauses()
    found: dict[Channel, str] = {}
    for channel in Channel if paused else ():
        providers = (*all_providers_for(channel), *brand_providers(channel, known=paused))
        names = [provider.name for provider in providers]
        for pause in (paused[name] for name in names if name in paused):
            found.setdefault(channel, pause_text(pause))
    return found
