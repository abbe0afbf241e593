"""Value types for recipients, content, attachments, and sensitive content. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import urlsplit

from .channels import Channel
from .stored import known_fields

MAX_ATTACHMENTS = 10
MAX_ATTACHMENT_BYTES = 10 * 1024 * 1024
"""Total size of an email's attachments, before MIME encoding."""
HTTPS_PORT = 443
PROFILE_FIELDS = ("email", "phone", "name", "locale", "timezone")
"""Fields of a recipient that the request or the registry supplies."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file attached to an email, downloaded at send time."""

    url: str
    filename: str
    content_type: str
    """``type/subtype``, without parameters."""


def attachment_host(url: str) -> str | None:
    """Return the lower-case host of an HTTPS URL on port 443 without a user name, else None."""
    try:
        parts = urlsplit(url)
        port = parts.port or HTTPS_PORT
    except ValueError:
        return None
    if parts.scheme != "https" or port != HTTPS_PORT or "@" in parts.netloc:
        return None
    host = parts.hostname
    # A certificate can't cover a host with an IPv6 zone or a percent-escape.
    return host if host and "%" not in host else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipient:
    """The recipient of a notification, with contact details."""

    device_ids: tuple[str, ...] = ()
    email: str | None = None
    phone: str | None = None
    room: str | None = None
    """The ID of a room, beside the person."""
    name: str | None = None
    locale: str | None = None
    timezone: str | None = None
    given: tuple[str, ...] = field(default=(), compare=False)
    """Names of the fields that the request contained; the others come from the registry."""

    def as_given(self) -> "Recipient":
        """Return the recipient with only the fields that the request contained."""
        known = [name for name in PROFILE_FIELDS if getattr(self, name) is not None]
        hidden: Any = {name: None for name in known if name not in self.given}
        return replace(self, **hidden) if hidden else self

    def address(self, channel: Channel) -> str | None:
        """Return the address for a channel, None for a channel without addresses."""
        kind = channel.spec.address
        return None if kind is None else getattr(self, kind.field)


class InterruptionLevel(StrEnum):
    """How strongly an Apple device presents a push."""

    PASSIVE = "passive"
    """In the list, without light or sound."""
    ACTIVE = "active"
    TIME_SENSITIVE = "time-sensitive"
    """Also during a Focus, if the app has Apple's entitlement."""


NO_SOUND = "none"
MAX_BADGE = 99_999


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOptions:
    """How a device presents a push. None is the default of its priority."""

    sound: str | None = None
    """``default``, the name of a sound file in the app, or NO_SOUND."""
    badge: int | None = None
    """Number on the app's icon; 0 removes it. Apple devices only."""
    interruption_level: InterruptionLevel | None = None
    """Apple devices only."""
    android_channel_id: str | None = None
    """The app's channel on Android 8 and later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """The design that a notification was accepted with, and what of it gives it its look."""

    design: int
    brand: str | None = None
    layout: str | None = None
    """None: the built-in layout."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """The content of a notification."""

    subject: str | None = None
    body: str | None = None
    template_id: str | None = None
    template_version: int | None = None
    is_masked: bool = False
    """Subject and body are redacted. They are rendered again at send time."""
    image_url: str | None = None
    deep_link: str | None = None
    payload: Mapping[str, Any] | None = None
    reply_to: str | None = None
    attachments: tuple[Attachment, ...] = ()
    has_own_subject: bool = False
    """The subject is the request's own, beside a template's body."""
    event_at: datetime | None = None
    """The event of a reminder whose remaining time the template shows, computed when sending."""
    push: PushOptions | None = None
    look: Look | None = None
    """None: the built-in layout, without a brand and partials."""


class SecretExpiredError(Exception):
    """The notification's sensitive data has been destroyed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SensitiveContent:
    """The original values of those that a notification stores masked."""

    data: Mapping[str, Any] = field(repr=False)
    content: Mapping[str, Any] = field(default_factory=dict, repr=False)
    secrets: tuple[str, ...] = field(default=(), repr=False)
    """Sensitive variable values, which must not appear in logs or stored responses."""
    has_inline_content: bool = False
    """The client supplied the text instead of a template: any part of the text may be sensitive."""

    def unmask(self, content: Content) -> Content:
        """Return ``content`` with the original values restored."""
        original = known_fields(Content, self.content)
        if "attachments" in original:
            original["attachments"] = tuple(
                Attachment(**known_fields(Attachment, attachment))
                for attachment in original["attachments"]
            )
        return replace(content, **original)
