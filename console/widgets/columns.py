"""Chips, icons and addresses in cells, and columns that several lists share."""

import json
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from domain.channels import Channel
from domain.wait_reasons import field
from recipients.masking import mask_address

from ..texts.labels import CHANNELS, delivery_state
from .formats import EMPTY, timestamp
from .links import NOTIFICATION

Column = Callable[[Any, Any], Any]


def time_column(label: str, path: str, *, empty: str = EMPTY) -> Column:
    """Return a column that shows a time of each row."""

    @admin.display(description=label)
    def column(_admin: Any, row: Any) -> SafeString | str:
        return timestamp(getattr(row, path), empty=empty)

    return column


def text_column(label: str, path: str, *, empty: str = EMPTY) -> Column:
    """Return a column that shows an attribute of each row as text."""

    @admin.display(description=label)
    def column(_admin: Any, row: Any) -> str:
        value = getattr(row, path)
        return empty if value in (None, "") else str(value)

    return column


def label_column(label: str, path: str, labels: Mapping[Any, str]) -> Column:
    """Return a column that shows the label of an attribute, or an unknown value unchanged."""

    @admin.display(description=label)
    def column(_admin: Any, row: Any) -> str:
        value = getattr(row, path)
        return EMPTY if value is None else labels.get(value, str(value))

    return column


def active_column(path: str = "is_active") -> Column:
    """Return a column that shows whether each row is active: one word for it on every list."""

    @admin.display(description="Active", boolean=True)
    def column(_admin: Any, row: Any) -> bool:
        return bool(getattr(row, path))

    return column


def id_column() -> Column:
    """Return a column that shows the ID, which may wrap anywhere."""

    @admin.display(description="ID")
    def column(_admin: Any, row: Any) -> SafeString:
        return format_html('<span class="wraps">{}</span>', row.pk)

    return column


def notification_column() -> Column:
    """Return a column that links to the notification of each row."""

    @admin.display(description="Notification")
    def column(_admin: Any, row: Any) -> SafeString | str:
        if row.notification_id is None:
            return EMPTY
        return link(reverse(NOTIFICATION, args=[row.notification_id]), row.notification_id)

    return column


def link(url: str, text: object) -> SafeString:
    """Return a link."""
    return format_html('<a class="text-link" href="{}">{}</a>', url, text)


def chip(text: object, color: str, *, title: str = "") -> SafeString:
    """Return a text in a colored chip. ``title`` is its tooltip."""
    if title:
        return format_html('<span class="chip chip-{}" title="{}">{}</span>', color, title, text)
    return format_html('<span class="chip chip-{}">{}</span>', color, text)


def test_chip() -> SafeString:
    """Return the chip that marks a row as sent in test mode."""
    return chip("Test", "warning", title="Test mode: sent to the sandbox only.")


def deleted_chip() -> SafeString:
    """Return the chip that marks a row as deleted by its client."""
    return chip("Deleted", "calm", title="Deleted by its client: in no list or inbox.")


def channel_icons(deliveries: Iterable[Any], *, now: datetime) -> SafeString:
    """Return an icon for each delivery: the channel, in the color of its state."""
    icons = []
    for delivery in deliveries:
        channel = Channel(field(delivery, "channel"))
        label, color = delivery_state(delivery, now=now)
        text = f"{CHANNELS[channel]}: {label}"
        icons.append((color, text, text, channel.spec.icon))
    return format_html(
        '<span class="channel-icons">{}</span>',
        format_html_join(
            "",
            '<span class="channel-icon color-{}" title="{}" role="img" aria-label="{}">'
            '<span class="material-symbols-outlined" aria-hidden="true">{}</span></span>',
            icons,
        ),
    )


def two_lines(first: Any, second: Any) -> SafeString:
    """Return two lines, of which the second is less prominent."""
    return format_html(
        '<span class="two-lines"><span>{}</span><span class="quiet">{}</span></span>',
        first,
        second or "",
    )


def json_block(text: str) -> SafeString:
    """Return JSON, indented; another text unchanged."""
    with suppress(ValueError, RecursionError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return format_html('<pre class="json">{}</pre>', text)


def address(value: str | None, *, unmasked: bool) -> str:
    """Return an address, masked unless ``unmasked``."""
    return value or "" if unmasked or not value else mask_address(value)
