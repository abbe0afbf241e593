"""Chips, icons, addresses, and times in cells."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.states import Channel, DeliveryStatus, NotificationStatus
from recipients.masking import mask_address

from .labels import (
    CHANNEL_ICONS,
    CHANNELS,
    DELIVERY_COLORS,
    DELIVERY_LABELS,
    STATUS_COLORS,
    STATUS_LABELS,
)


def plain_chip(text: object, color: str, *, title: str = "") -> SafeString:
    """Return a word in a colour; ``title``: what it says on hovering."""
    if title:
        return format_html('<span class="chip chip-{}" title="{}">{}</span>', color, title, text)
    return format_html('<span class="chip chip-{}">{}</span>', color, text)


EMPTY = "-"


def chip(text: str, color: str, *, title: str = "") -> SafeString:
    """Return a coloured label."""
    return plain_chip(text, color, title=title or text)


def status_chip(status: str) -> SafeString:
    """Return a notification's overall status as a label."""
    known = NotificationStatus(status)
    return chip(STATUS_LABELS[known], STATUS_COLORS[known])


def test_chip() -> SafeString:
    """Return the label of what went to the sandbox only."""
    return chip("Test", "warning", title="It goes to the sandbox and reaches nobody.")


def delivery_chip(status: str) -> SafeString:
    """Return a delivery's status as a label."""
    known = DeliveryStatus(status)
    return chip(DELIVERY_LABELS[known], DELIVERY_COLORS[known])


def channel_icons(deliveries: Iterable[Any]) -> SafeString:
    """Return an icon for each channel, coloured by what became of it."""
    return format_html(
        '<span class="channel-icons">{}</span>',
        format_html_join(
            "",
            '<span class="channel-icon color-{}" title="{}: {}" role="img" aria-label="{}: {}">'
            '<span class="material-symbols-outlined" aria-hidden="true">{}</span></span>',
            (_icon(Channel(d.channel), DeliveryStatus(d.status)) for d in deliveries),
        ),
    )


def two_lines(first: Any, second: Any) -> SafeString:
    """Return a main line and a quieter one below it."""
    return format_html(
        '<span class="two-lines"><span>{}</span><span class="quiet">{}</span></span>',
        first,
        second or "",
    )


def timestamp(at: datetime | None) -> SafeString | str:
    """Return an instant, day and time in UTC."""
    if at is None:
        return EMPTY
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        f"{at:%Y-%m-%dT%H:%M:%SZ}",
        f"{at:%Y-%m-%d %H:%M:%S}",
        f"{at:%d %b %H:%M:%S}",
    )


def address(value: str | None, *, unmasked: bool) -> str:
    """Return an address, masked unless it may be seen unmasked."""
    if not value:
        return ""
    return value if unmasked else mask_address(value)


def _icon(channel: Channel, status: DeliveryStatus) -> tuple[str, ...]:
    words = (CHANNELS[channel], DELIVERY_LABELS[status])
    return (DELIVERY_COLORS[status], *words, *words, CHANNEL_ICONS[channel])
