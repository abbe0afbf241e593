"""What an inbox shows: what its owner may see of a notification, and nothing of how it was sent."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.content import Content, SecretExpiredError
from domain.states import Category, Channel
from notifications.content import engine, rendering
from notifications.store import Document, content_of, is_shown_in_inbox, recipient_of, secret_in
from notifyproject.platform.encryption import DecryptionError

UNSEEN_DESCRIPTION = (
    "Of the unread, what was delivered since GET /inbox was last asked for its beginning."
)


class InboxItem(msgspec.Struct, kw_only=True, frozen=True):
    """A notification in the inbox. Its texts are plain text: escape them where HTML is expected."""

    id: str
    type: str
    category: Category
    subject: str | None = None
    body: str | None = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    delivered_at: datetime
    is_read: bool
    read_at: datetime | None = None
    is_archived: bool
    archived_at: datetime | None = None


class InboxList(msgspec.Struct, kw_only=True, frozen=True):
    """Part of an inbox. ``next`` and ``previous`` are values for the parameter ``cursor``."""

    results: list[InboxItem]
    next: str | None
    previous: str | None


class InboxCounts(msgspec.Struct, kw_only=True, frozen=True):
    """How much waits, without what is archived; 10,000 is the most that is counted."""

    unread: int
    unseen: Annotated[int, Meta(description=UNSEEN_DESCRIPTION)]


def inbox_item(document: Document, *, now: datetime) -> InboxItem:
    """Return a stored notification as its owner sees it."""
    content, data = _visible_content(document, now)
    subject, body = _subject_and_body(document, content, data)
    return InboxItem(
        id=str(document["_id"]),
        type=document["type"],
        category=Category(document["category"]),
        subject=subject,
        body=body,
        image_url=content.image_url,
        deep_link=content.deep_link,
        payload=None if content.payload is None else dict(content.payload),
        delivered_at=document["inbox_at"],
        is_read=document["is_read"],
        read_at=document.get("read_at"),
        is_archived=document["is_archived"],
        archived_at=document.get("archived_at"),
    )


def _visible_content(document: Document, now: datetime) -> tuple[Content, Mapping[str, Any] | None]:
    """Return what it says; with the variables of a template, if it hides something of them.

    Its owner sees a secret while it is good for anything. Afterwards, and when it is not kept any
    more, they see what everybody else does: the mask.
    """
    content = content_of(document)
    if not is_shown_in_inbox(document, now=now):
        return content, None
    try:
        secret = secret_in(document)
    except (SecretExpiredError, DecryptionError):
        return content, None
    return (content, None) if secret is None else (secret.unmask(content), secret.data)


def _subject_and_body(
    document: Document, content: Content, data: Mapping[str, Any] | None
) -> tuple[str | None, str | None]:
    """Return subject and body; rendered anew from the variables, if they are given."""
    if data is None:
        return content.subject, content.body
    try:
        message = rendering.render_message(
            channel=Channel.IN_APP,
            content=content,
            data=data,
            recipient=recipient_of(document),
        )
    except engine.TemplateError:
        return content.subject, content.body
    return message.subject, message.text
