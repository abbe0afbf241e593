"""The inbox's view of a notification: content and state, but nothing of its delivery."""

from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from domain.channels import INBOX
from domain.content import Content, SecretExpiredError
from domain.states import Category
from notifications.catalog import types
from notifications.catalog.types import ActionStyle
from notifications.content import engine, rendering
from notifications.documents.notification import NotificationDocument
from notifications.inbox.feed import FeedCounts
from notifications.intake.requests import Timestamp
from notifications.store.encrypted_content import is_shown_in_inbox, secret_in
from notifications.store.reading import content_of, recipient_of
from notifyproject.platform.encryption import DecryptionError

from ..http.fields import Count, NotificationId, TypeSlug
from ..http.paging import PageView


class InboxAction(msgspec.Struct, kw_only=True, frozen=True):
    """A button of a notification."""

    id: Annotated[str, Meta(examples=["approve"])]
    label: Annotated[str, Meta(examples=["Approve"])]
    style: ActionStyle
    link: str | None = None
    """Followed once it is chosen."""


class InboxItem(msgspec.Struct, kw_only=True, frozen=True):
    """A notification of the recipient. Texts are plain text: escape them in HTML."""

    id: NotificationId
    type: TypeSlug
    category: Annotated[Category, Meta(examples=["transactional"])]
    subject: Annotated[str | None, Meta(examples=["Paid"])] = None
    body: Annotated[str | None, Meta(examples=["We have your 49.90 for Sunrise."])] = None
    image_url: str | None = None
    deep_link: str | None = None
    payload: dict[str, Any] | None = None
    delivered_at: datetime
    """Time of arrival in the inbox or, without the in-app channel, of sending."""
    is_read: bool
    read_at: datetime | None = None
    is_archived: bool
    archived_at: datetime | None = None
    snoozed_until: datetime | None = None
    actions: Annotated[list[InboxAction], Meta(examples=[[]])] = []
    action: str | None = None
    """The action that the recipient chose."""
    acted_at: datetime | None = None


class InboxList(PageView[InboxItem], kw_only=True, frozen=True):
    """A page of an inbox. ``next`` and ``previous`` are values for the parameter ``cursor``."""


class SnoozeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The end of a snooze."""

    until: Timestamp


class InboxCounts(msgspec.Struct, kw_only=True, frozen=True):
    """Counts of an inbox without archived and snoozed notifications; each at most 10,000."""

    unread: Count
    unseen: Annotated[
        int,
        Meta(
            description="Unread ones delivered since the first page of GET /inbox was last read.",
            examples=[1],
        ),
    ]
    as_of: Annotated[
        str,
        Meta(
            description="When they were counted, by the database's clock: seconds since 1970 and "
            "a number. Of two counts, the one with the greater text is newer.",
            examples=["1795485318.0000000002"],
        ),
    ]


def inbox_counts(counts: FeedCounts) -> InboxCounts:
    """Return counts as the API shows them."""
    as_of = f"{counts.as_of.time:010}.{counts.as_of.inc:010}"
    return InboxCounts(unread=counts.unread, unseen=counts.unseen, as_of=as_of)


def inbox_item(document: NotificationDocument, *, now: datetime) -> InboxItem:
    """Return a stored notification as its recipient sees it."""
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
        delivered_at=document.get("inbox_at") or document["sent_at"],
        is_read=document["is_read"],
        read_at=document.get("read_at"),
        is_archived=document["is_archived"],
        archived_at=document.get("archived_at"),
        snoozed_until=document.get("snoozed_until"),
        actions=_actions(document["type"]),
        action=document.get("action"),
        acted_at=document.get("acted_at"),
    )


def _actions(type_slug: str) -> list[InboxAction]:
    kind = types.find_type(type_slug)
    return [
        InboxAction(id=action.id, label=action.label, style=action.style, link=action.link)
        for action in (kind.actions if kind else ())
    ]


def _visible_content(
    document: NotificationDocument, now: datetime
) -> tuple[Content, Mapping[str, Any] | None]:
    """Return the content and, if sensitive values may be shown, the variables to render."""
    # The recipient sees sensitive values until they expire, and then the redacted content.
    content = content_of(document)
    if not is_shown_in_inbox(document, now=now):
        return content, None
    try:
        secret = secret_in(document)
    except (SecretExpiredError, DecryptionError):
        return content, None
    return (content, None) if secret is None else (secret.unmask(content), secret.data)


def _subject_and_body(
    document: NotificationDocument, content: Content, data: Mapping[str, Any] | None
) -> tuple[str | None, str | None]:
    """Return subject and body, rendered again if ``data`` is given."""
    if data is None and content.event_at is None:
        return content.subject, content.body
    try:
        message = rendering.render_message(
            channel=INBOX,
            content=content,
            data=document["data"] if data is None else data,
            recipient=recipient_of(document),
            now=document.get("inbox_at"),
        )
    except engine.TemplateError:
        return content.subject, content.body
    return message.subject, message.text
