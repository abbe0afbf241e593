"""Recipient, content, attachments, and sensitive content as values. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import urlsplit

from .states import Channel

MAX_ATTACHMENTS = 10


MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
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


def attachment_host(url: str) -> str | None:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """Whom to reach, and how."""

    device_ids: tuple[str, ...] = ()
    email: str | None = None
    phone: str | None = None
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None

    def address(self, channel: Channel) -> str | None:
        """Return the address on a channel that has one; push goes to devices, in-app to users."""
        return {Channel.EMAIL: self.email, Channel.WHATSAPP: self.phone}.get(channel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """What to say."""

    subject: str | None = None
    body: str | None = None
    template_id: str | None = None
    template_version: int | None = None
    is_masked: bool = False
    """Subject and body hide secrets: they are rendered anew when they are sent."""
    image_url: str | None = None
    deep_link: str | None = None
    payload: Mapping[str, Any] | None = None
    reply_to: str | None = None
    """Where an answer to the mail goes; None: where the service is configured to want it."""
    attachments: tuple[Attachment, ...] = ()
    """Files that go with the mail; they are fetched when it is sent."""


class SecretExpiredError(Exception):
    """It had a secret, and that is not kept any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveContent:
    """What is stored of a notification as dots, as it was given."""

    data: Mapping[str, Any] = field(repr=False)
    """All variables."""
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """Fields of the content, by their names."""
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """What must not be repeated anywhere: the secrets among the variables."""
    has_inline_content: bool = False
    """The app gave the words itself: any part of them may be secret."""

    def unmask(self, content: Content) -> Content:
        """Return the content as it was given."""
        original = dict(self.content)
        if "attachments" in original:
            original["attachments"] = tuple(Attachment(**one) for one in original["attachments"])
        return replace(content, **original)
