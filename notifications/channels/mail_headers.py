"""What a mail says about itself besides its words, the same by every provider."""

from collections.abc import Mapping
from email.utils import parseaddr

from .addresses import ascii_email
from .base import Message


def unsubscribe_headers(message: Message) -> Mapping[str, str]:
    """Return the headers by which a mail program offers to unsubscribe, as RFC 8058 has them.

    The second says that a POST is enough, and nobody has to press anything on a page. Raises
    ValueError if the URL would not be one in a header.
    """
    url = message.unsubscribe_url
    if url is None:
        return {}
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError("a URL is in plain ASCII, without blanks")
    return {
        "List-Unsubscribe": f"<{url}>",
        "List-Unsubscribe-Post": "List-Unsubscribe=One-Click",
    }


def reply_to(message: Message, *, default: str | None) -> tuple[str, str] | None:
    """Return the name and the address that answers go to; None: those of the sender.

    ``default`` is ``Name <address>``. Raises ValueError if the address cannot be one.
    """
    if message.reply_to is not None:
        return "", ascii_email(message.reply_to)
    name, address = parseaddr(default or "")
    return (name, ascii_email(address)) if address else None
