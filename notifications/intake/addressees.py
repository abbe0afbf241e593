"""One recipient of a broadcast, as its audience names them."""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from bson import ObjectId

from .requests import NotificationRecipientRequest, NotificationRequest

_TIME_BYTES, _DIGEST_BYTES = 4, 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Addressee:
    """A recipient, and what their message has of its own."""

    key: str
    """Different for each recipient of an audience: a user ID, or the number of a file's row."""
    user_id: str | None = None
    recipient: NotificationRecipientRequest | None = None
    data: Mapping[str, Any] = field(default_factory=dict)

    def request_of(self, shared: NotificationRequest) -> NotificationRequest:
        """Return the request for this recipient, from what all recipients share."""
        if self.recipient is None:
            return msgspec.structs.replace(shared, user_id=self.user_id)
        return msgspec.structs.replace(
            shared,
            user_id=self.user_id,
            recipient=self.recipient,
            data={**shared.data, **self.data},
        )


def share_of(own_id: ObjectId) -> float:
    """Return a number from 0 to 1 of a notification's ID, as if drawn at random."""
    return int.from_bytes(own_id.binary[_TIME_BYTES:]) / 256**_DIGEST_BYTES


def users(user_ids: Iterable[str]) -> list[Addressee]:
    """Return registered recipients by their user IDs."""
    return [Addressee(key=user_id, user_id=user_id) for user_id in user_ids]


def notification_id(broadcast_id: ObjectId, key: str) -> ObjectId:
    """Return the ID of the notification to an addressee's key, which is the same at each call."""
    # It begins with the broadcast's time, so that a broadcast's IDs are adjacent in their index.
    # The rest is 64 bits of a digest: with a million recipients, a collision occurs in one of 37
    # million broadcasts.
    digest = hashlib.sha256(f"broadcast:{broadcast_id}:{key}".encode()).digest()
    return ObjectId(broadcast_id.binary[:_TIME_BYTES] + digest[:_DIGEST_BYTES])
