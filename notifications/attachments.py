"""What a mail carries along, by reference: where it is, and how much of it there may be. Pure."""

from dataclasses import dataclass
from urllib.parse import urlsplit

MAX_COUNT = 10
MAX_BYTES = 10 * 1024 * 1024
"""Of all attachments of a mail together, before they are encoded for mail."""
HTTPS_PORT = 443


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file that is fetched when the mail is sent."""

    url: str
    filename: str
    """What the recipient sees it called."""
    content_type: str
    """``type/subtype``, without parameters."""


def host_of(url: str) -> str | None:
    """Return the host of a URL that an attachment may have, in lower case; None for any other.

    That is one with https, on its own port, without a user.
    """
    try:
        parts = urlsplit(url)
        port = parts.port or HTTPS_PORT
    except ValueError:
        return None
    if parts.scheme != "https" or port != HTTPS_PORT or "@" in parts.netloc:
        return None
    host = parts.hostname
    # A zone or an escape in a host is nothing that a certificate could be for.
    return host if host and "%" not in host else None
