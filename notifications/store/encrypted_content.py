"""What a notification says that nobody may read in the database: sealed while it is needed.

Stored beside the notification as one sealed text, ``sealed``. It is there while a channel is open,
and for a while in the inbox; the write that ends the last of them removes it. The rule stands in
:mod:`notifications.store.pipelines` once more, for MongoDB to follow.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

import msgspec
from bson import ObjectId

from domain.content import Content, SecretExpiredError, SensitiveContent
from domain.states import OPEN
from notifyproject.platform import encryption

from .collections import notifications
from .documents import content_of
from .pipelines import INBOX_SECRET_LIFETIME

Document = Mapping[str, Any]


def encrypt(secret: SensitiveContent, *, notification_id: ObjectId) -> str:
    """Return a secret as it is stored with its notification, and with no other."""
    fields = (secret.data, secret.content, secret.secrets, secret.has_inline_content)
    return encryption.encrypt(
        msgspec.json.encode(fields), associated_data=_associated_data(notification_id)
    )


def decrypt(
    *, notification_id: ObjectId, content: Content, encrypted: str | None
) -> SensitiveContent | None:
    """Return what a notification hides; None if that is nothing.

    Raises SecretExpiredError, and DecryptionError if no key of this process opens it.
    """
    if encrypted is None:
        if content.is_masked:
            raise SecretExpiredError("What it says is not kept any more.")
        return None
    data, given, values, has_inline_content = msgspec.json.decode(
        encryption.decrypt(encrypted, associated_data=_associated_data(notification_id))
    )
    return SensitiveContent(
        data=data, content=given, secrets=tuple(values), has_inline_content=has_inline_content
    )


def secret_in(document: Document) -> SensitiveContent | None:
    """Return what a stored notification hides; see :func:`secret_of`."""
    return decrypt(
        notification_id=document["_id"],
        content=content_of(document),
        encrypted=document.get("sealed"),
    )


def is_secret_expired(document: Document) -> bool:
    """Return whether a stored notification had a secret that is not kept any more."""
    return bool(document["content"].get("is_masked")) and "sealed" not in document


def encrypted_fields(
    secret: SensitiveContent | None,
    *,
    notification_id: ObjectId,
    statuses: Collection[str],
    inbox_at: datetime | None,
    expires_at: datetime | None,
) -> dict[str, Any]:
    """Return how a new notification's secret is stored: not at all if nobody needs it."""
    is_open = not OPEN.isdisjoint(statuses)
    if secret is None or (not is_open and inbox_at is None):
        return {}
    stored: dict[str, Any] = {"sealed": encrypt(secret, notification_id=notification_id)}
    if inbox_at is not None and not is_open:
        stored["sealed_until"] = _inbox_end(inbox_at, expires_at)
    return stored


def is_shown_in_inbox(document: Document, *, now: datetime) -> bool:
    """Return whether the owner of an inbox may still see the secret of what is in it."""
    return now < _inbox_end(document["inbox_at"], document.get("expires_at"))


def purge_secrets(*, now: datetime) -> int:
    """Remove the secrets that were kept for inboxes and whose time is over; return how many."""
    over = {"sealed_until": {"$lte": now}}
    gone = {"$unset": {"sealed": "", "sealed_until": ""}, "$set": {"updated_at": now}}
    return notifications().update_many(over, gone).modified_count


def _inbox_end(inbox_at: datetime, expires_at: datetime | None) -> datetime:
    last = inbox_at + INBOX_SECRET_LIFETIME
    return last if expires_at is None else min(last, expires_at)


def _associated_data(notification_id: ObjectId) -> str:
    return f"notification:{notification_id}"
