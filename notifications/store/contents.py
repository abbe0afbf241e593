"""Whom a notification is for and what it says, and how both are read from its document."""

from collections.abc import Mapping
from typing import Any

from domain.content import Attachment, Content, Recipient


def recipient_of(document: Mapping[str, Any]) -> Recipient:
    """Return the recipient stored in a notification's document."""
    stored = document["recipient"]
    return Recipient(**{**stored, "device_ids": tuple(stored.get("device_ids", ()))})


def content_of(document: Mapping[str, Any]) -> Content:
    """Return the content stored in a notification's document."""
    stored = document["content"]
    attachments = tuple(Attachment(**one) for one in stored.get("attachments", ()))
    return Content(**{**stored, "attachments": attachments})
