"""Words that have a colour."""

from django.utils.html import format_html
from django.utils.safestring import SafeString


def chip(text: object, tone: str, *, title: str = "") -> SafeString:
    """Return a word in a colour; ``title``: what it says on hovering."""
    if title:
        return format_html('<span class="chip chip-{}" title="{}">{}</span>', tone, title, text)
    return format_html('<span class="chip chip-{}">{}</span>', tone, text)
