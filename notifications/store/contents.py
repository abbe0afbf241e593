"""Whom a notification is for and what it says, and how both are read from its document."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..attachments import Attachment
from ..states import Channel


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


def recipient_of(document: Mapping[str, Any]) -> Recipient:
    """Return the recipient stored in a notification's document."""
    stored = document["recipient"]
    return Recipient(**{**stored, "device_ids": tuple(stored.get("device_ids", ()))})


def content_of(document: Mapping[str, Any]) -> Content:
    """Return the content stored in a notification's document."""
    stored = document["content"]
    attachments = tuple(Attachment(**one) for one in stored.get("attachments", ()))
    return Content(**{**stored, "attachments": attachments})
