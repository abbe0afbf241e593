"""What the checks of settings have in common. Their numbers are those of all notifications."""

import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

from django.core import checks

_WORD = re.compile(r"[!-~]+", re.ASCII)
"""Characters allowed in a header: no whitespace, no line breaks, ASCII only."""


def error(message: str, hint: str | None, number: int) -> checks.Error:
    """Return an error with its number."""
    return checks.Error(message, hint=hint, id=f"notifications.E{number:03}")


def is_word(text: str) -> bool:
    """Return whether a text may be the value of a header."""
    return _WORD.fullmatch(text) is not None


def base_url(
    values: Any, name: str, *, number: int, may_be_empty: bool = False
) -> Iterator[checks.Error]:
    """Report an attribute of the values, or of the settings, that is not the address of an API."""
    url = getattr(values, name)
    if not _is_base_url(url) and (url or not may_be_empty):
        hint = (
            "Use a URL such as https://notify.example.com, without a user, a query, or a fragment."
        )
        yield error(f"{name} is not a base URL: {url!r}.", hint, number)


def _is_base_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        return False
    return bool(
        is_word(url)
        and parts.scheme in ("http", "https")
        and parts.hostname
        and has_port
        and not (parts.query or parts.fragment or "@" in parts.netloc or "?" in url or "#" in url)
    )
