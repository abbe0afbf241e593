"""Exports everything that is stored about a recipient, with notifications in pages."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from bson import ObjectId

from devices import queries as devices
from devices.documents import DeviceDocument
from domain.channels import addresses_in
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.documents.records import DELIVERY_ATTEMPTS, DeliveryAttemptDocument
from notifyproject.db import paging
from notifyproject.db.paging import Cursor
from recipients import (
    registration,
    service_windows,
    suppressions,
    topics,
    whatsapp_identities,
)
from recipients.documents import RecipientDocument, SuppressionDocument

NEWEST_FIRST = (("created_at", -1), ("_id", -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Export:
    """Data about a recipient, with one page of notifications."""

    recipient: RecipientDocument | None
    devices: Sequence[DeviceDocument]
    topics: Sequence[str]
    suppressions: Sequence[SuppressionDocument]
    whatsapp_ids: Sequence[str]
    """What else WhatsApp calls the person: user IDs, and other forms of the number."""
    last_inbound_at: datetime | None
    notifications: Sequence[NotificationDocument]
    attempts: Sequence[DeliveryAttemptDocument]
    has_more: bool

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored about the recipient."""
        return not any((self.recipient, self.devices, self.topics, self.notifications))


def export(
    user_id: str, *, client_id: ObjectId | None, limit: int, cursor: Cursor | None = None
) -> Export:
    """Return a recipient's data and a page of notifications, of one client or of all."""
    recipient = registration.get(user_id)
    phone = recipient.get("phone") if recipient else None
    match: dict[str, Any] = {"user_id": user_id}
    if client_id is not None:
        match["client_id"] = client_id
    page = paging.page(NOTIFICATIONS, match, order=NEWEST_FIRST, limit=limit, cursor=cursor)
    ids = [document["_id"] for document in page.documents]
    people = whatsapp_identities.identifiers_of([phone] if phone else ())
    names = people[phone] if phone else ()
    addresses = [
        (channel.value, name)
        for channel, address in addresses_in(recipient or {})
        for name in (names if channel.spec.has_identities else (address,))
    ]
    attempts = DELIVERY_ATTEMPTS().find({"notification_id": {"$in": ids}})
    return Export(
        recipient=recipient,
        devices=devices.page(user_id=user_id, limit=devices.MAX_PAGE).documents,
        topics=[membership["topic"] for membership in topics.memberships_of(user_id)],
        suppressions=[
            suppression
            for channel, address in addresses
            for suppression in suppressions.find_by_address(channel=channel, address=address)
        ],
        whatsapp_ids=names[1:],
        last_inbound_at=service_windows.last_inbound(phone) if phone else None,
        notifications=page.documents,
        attempts=sorted(
            attempts, key=lambda a: (ids.index(a["notification_id"]), a["attempted_at"], a["_id"])
        ),
        has_more=page.has_next,
    )
