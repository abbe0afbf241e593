"""Encrypts the sensitive content of a notification, in its field ``encrypted_content``.

It is kept while a delivery is open, and for a day from when the inbox got the notification, or
until the notification expires.
:mod:`notifications.store.pipelines` has the same rule.
"""

from collections.abc import Callable, Collection, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import msgspec
from bson import ObjectId

from domain.content import Content, SecretExpiredError, SensitiveContent
from domain.states import OPEN
from notifications.documents.notification import NotificationDocument
from notifyproject.platform import encryption

from .collections import notifications
from .pipelines import INBOX_SECRET_LIFETIME
from .reading import content_of


def encrypt(secret: SensitiveContent, *, notification_id: ObjectId) -> str:
    """Return sensitive content in encrypted form, bound to this notification."""
    fields = (secret.data, secret.content, secret.secrets, secret.has_inline_content)
    return encryption.encrypt(
        msgspec.json.encode(fields), associated_data=_associated_data(notification_id)
    )


def decrypt(
    *, notification_id: ObjectId, content: Content, encrypted: str | None
) -> SensitiveContent | None:
    """Return the sensitive content, or None. Raises SecretExpiredError or DecryptionError."""
    if encrypted is None:
        if content.is_masked:
            raise SecretExpiredError("Its sensitive data was destroyed.")
        return None
    # A newer version may append others.
    data, given, values, has_inline_content, *_ = msgspec.json.decode(
        encryption.decrypt(encrypted, associated_data=_associated_data(notification_id))
    )
    return SensitiveContent(
        data=data, content=given, secrets=tuple(values), has_inline_content=has_inline_content
    )


def secret_in(document: NotificationDocument) -> SensitiveContent | None:
    """Return the sensitive content in a notification's document, as :func:`decrypt` does."""
    content, encrypted = content_of(document), document.get("encrypted_content")
    return decrypt(notification_id=document["_id"], content=content, encrypted=encrypted)


def is_secret_expired(document: NotificationDocument) -> bool:
    """Return whether a notification's sensitive content was destroyed."""
    return bool(document["content"].get("is_masked")) and "encrypted_content" not in document


def encrypted_fields(
    secret: SensitiveContent | None,
    *,
    notification_id: ObjectId,
    statuses: Collection[str],
    inbox_at: datetime | None,
    expires_at: datetime | None,
) -> dict[str, Any]:
    """Return the stored fields for a new notification's sensitive content, if any are needed."""
    if secret is None:
        return {}
    is_open = not OPEN.isdisjoint(statuses)
    if not is_open and inbox_at is None:
        return {}
    stored: dict[str, Any] = {"encrypted_content": encrypt(secret, notification_id=notification_id)}
    if inbox_at is not None and not is_open:
        stored["encrypted_until"] = _inbox_end(inbox_at, expires_at)
    return stored


def is_shown_in_inbox(document: NotificationDocument, *, now: datetime) -> bool:
    """Return whether the inbox still shows the sensitive content of a notification."""
    inbox_at = document.get("inbox_at")
    return inbox_at is not None and now < _inbox_end(inbox_at, document.get("expires_at"))


def purge_secrets(*, now: datetime) -> int:
    """Destroy sensitive content that the inbox no longer shows. Return how many."""
    over = {"encrypted_until": {"$lte": now}}
    gone = {"$unset": {"encrypted_content": "", "encrypted_until": ""}, "$set": {"updated_at": now}}
    return notifications().update_many(over, gone).modified_count


def encrypted_contents() -> Iterator[tuple[str, Callable[[], bool]]]:
    """Yield each stored secret, and a function that re-encrypts it: False if it changed."""
    for document in notifications().find(
        {"encrypted_content": {"$exists": True}}, {"encrypted_content": 1}
    ):
        yield (
            document["encrypted_content"],
            partial(_reencrypt, document["_id"], document["encrypted_content"]),
        )


def _reencrypt(notification_id: ObjectId, stored: str) -> bool:
    changed = encryption.reencrypt(stored, associated_data=_associated_data(notification_id))
    result = notifications().update_one(
        {"_id": notification_id, "encrypted_content": stored},
        {"$set": {"encrypted_content": changed}},
    )
    return result.modified_count == 1


def _inbox_end(inbox_at: datetime, expires_at: datetime | None) -> datetime:
    last = inbox_at + INBOX_SECRET_LIFETIME
    return last if expires_at is None else min(last, expires_at)


def _associated_data(notification_id: ObjectId) -> str:
    return f"notification:{notification_id}"
