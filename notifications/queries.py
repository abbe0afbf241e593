"""Frequent reads of notifications. A test checks that each is an index scan without a sort."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

from bson import ObjectId

from domain.addresses import AddressKind
from domain.channels import Channel
from domain.digests import DigestStatus
from domain.states import PHASES, AttemptStatus, DeliveryStatus, NotificationStatus, Phase
from notifications.documents.notification import NOTIFICATIONS, NotificationDocument
from notifications.documents.policies import DIGESTS, DigestDocument
from notifications.documents.records import (
    DELIVERY_ATTEMPTS,
    PROVIDER_EVENTS,
    TEST_OUTBOX,
    DeliveryAttemptDocument,
    ProviderEventDocument,
    SentTestMessageDocument,
)
from notifications.store.digests import match_members
from notifications.store.inbox import FEED_INDEX, MATCH_SENT
from notifications.store.reading import recipient_of
from notifications.store.references import AttemptReference
from notifications.store.search_keys import (
    INACTIVE_KEY,
    SEARCH_INDEX,
    KeyKind,
    address_search_key,
    search_key,
    source_key,
)
from notifyproject.db import paging
from notifyproject.db.collections import collection
from notifyproject.db.paging import Cursor, Page
from notifyproject.db.trips import find_few

S = DeliveryStatus
MAX_SCHEDULED_LOCAL = 1_000
MAX_OF_ENTITY = 500
MAX_TESTED = 200  # Messages of test clients to one address that are read
NOT_SENT = (AttemptStatus.FAILED, AttemptStatus.EXPIRED)
MAX_RECEIPTS = 200  # Mail programs may open an email any number of times
COUNT_CAP = 10_000  # Upper limit of displayed counts
ANY_STATUS = {"$in": [status.value for status in NotificationStatus]}
"""Matches any notification, so that queries name the status and use its index in order of time."""


class Ordering(StrEnum):
    """The orders of a client's notification list that an index serves. ``-`` means descending."""

    NEWEST = "-created_at"
    OLDEST = "created_at"
    SCHEDULED = "scheduled_at"
    SCHEDULED_LAST = "-scheduled_at"

    @property
    def order(self) -> paging.Order:
        """The order in MongoDB's form."""
        return paging.order_of([self.value, "-id" if self.value.startswith("-") else "id"])

    @property
    def is_by_schedule(self) -> bool:
        """Whether the order is by scheduled time: only scheduled notifications are listed."""
        return self in (Ordering.SCHEDULED, Ordering.SCHEDULED_LAST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Filter:
    """Filter of a client's notification list. Fields that are None don't filter."""

    client_id: ObjectId
    user_id: str | None = None
    type: str | None = None
    category: str | None = None
    category_types: Sequence[str] | None = None
    """The types that have, or had, the category. The index on the type serves the category."""
    channel: str | None = None
    statuses: tuple[str, ...] = ()
    """Matches any of these. Empty means all."""
    phases: tuple[Phase, ...] = ()
    delivery_statuses: tuple[str, ...] = ()
    entity_id: str | None = None
    external_id: str | None = None
    source: str | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    scheduled_after: datetime | None = None
    scheduled_before: datetime | None = None
    unread: bool = False
    is_active: bool = True
    """False selects only deleted or erased notifications."""

    def match(self, ordering: Ordering = Ordering.NEWEST) -> dict[str, Any]:
        """Return the filter as a MongoDB query for a list in this order."""
        fields = ("user_id", "type", "category")
        match: dict[str, Any] = {"client_id": self.client_id, "is_active": self.is_active}
        match |= {name: value for name in fields if (value := getattr(self, name)) is not None}
        if keys := self._search_keys():
            match["search_keys"] = keys[0] if len(keys) == 1 else {"$all": keys}
        if self.category_types is not None and self.type is None:
            match["type"] = {"$in": list(self.category_types)}
        if self.statuses or self.phases:
            match["status"] = _any_of(self._overall_statuses())
        if self.unread:
            match |= {"is_read": False, **MATCH_SENT}
        if self.channel is not None or self.delivery_statuses:
            # Always both fields, so that one index serves every combination in order of creation.
            channels = (self.channel,) if self.channel is not None else tuple(Channel)
            statuses = self.delivery_statuses or tuple(S)
            wanted = {"channel": _any_of(channels), "status": _any_of(statuses)}
            match["delivery"] = {"$elemMatch": wanted}
        if created := _range(self.created_after, self.created_before):
            match["created_at"] = created
        scheduled = _range(self.scheduled_after, self.scheduled_before)
        if ordering.is_by_schedule:
            # The status always takes part, because it precedes the time in the index. The index
            # holds scheduled notifications only.
            match.setdefault("status", ANY_STATUS)
            scheduled = {"$exists": True, **scheduled}
        if scheduled:
            match["scheduled_at"] = scheduled
        return match

    def _search_keys(self) -> list[str]:
        keys = [
            search_key(kind, value)
            for kind, value in (
                (KeyKind.ENTITY_ID, self.entity_id),
                (KeyKind.EXTERNAL_ID, self.external_id),
            )
            if value is not None
        ]
        if self.source is not None:
            keys.append(source_key(self.client_id, self.source))
        return keys if self.is_active else [*keys, INACTIVE_KEY]

    def _overall_statuses(self) -> Sequence[str]:
        """Return the overall statuses that both ``statuses`` and ``phases`` allow."""
        if not self.phases:
            return self.statuses
        wanted = self.statuses or tuple(NotificationStatus)
        return [status for status in wanted if PHASES[NotificationStatus(status)] in self.phases]


def _any_of(values: Sequence[str]) -> Any:
    plain = [str(value) for value in values]
    return plain[0] if len(plain) == 1 else {"$in": plain}


def _range(after: datetime | None, before: datetime | None) -> dict[str, Any]:
    limits = {"$gte": after, "$lt": before}
    return {operator: at for operator, at in limits.items() if at is not None}


def get(
    *, notification_id: ObjectId, client_id: ObjectId | None = None
) -> NotificationDocument | None:
    """Return a notification, with ``client_id`` only if it is that client's."""
    wanted: dict[str, Any] = {"_id": notification_id}
    if client_id is not None:
        wanted["client_id"] = client_id
    return next(iter(find_few(NOTIFICATIONS, wanted, limit=1)), None)


def pending_of_entity(
    *, client_id: ObjectId, entity_id: str, type_slug: str | None, user_id: str | None
) -> list[ObjectId]:
    """Return the IDs of up to 500 notifications about an entity that have a pending delivery."""
    wanted: dict[str, Any] = {
        "search_keys": search_key(KeyKind.ENTITY_ID, entity_id),
        "client_id": client_id,
        "is_active": True,
        "delivery.status": S.PENDING.value,
    }
    wanted |= {"type": type_slug} if type_slug is not None else {}
    wanted |= {"user_id": user_id} if user_id is not None else {}
    found = NOTIFICATIONS().find(wanted, {"_id": 1}).hint(SEARCH_INDEX).limit(MAX_OF_ENTITY)
    return [document["_id"] for document in found]


def newest_of_key(*, client_id: ObjectId, idempotency_key: str) -> list[NotificationDocument]:
    """Return the newest two notifications that a client created with a key, newest first."""
    wanted = {
        "search_keys": search_key(KeyKind.IDEMPOTENCY_KEY, idempotency_key),
        "client_id": client_id,
    }
    newest_first = {"created_at": -1, "_id": -1}
    return list(NOTIFICATIONS().find(wanted).hint(SEARCH_INDEX).sort(newest_first).limit(2))


def get_many(ids: Sequence[ObjectId]) -> list[NotificationDocument]:
    """Return notifications by ID, in no particular order."""
    return list(NOTIFICATIONS().find({"_id": {"$in": list(ids)}}))


def existing_ids(ids: Sequence[ObjectId]) -> set[ObjectId]:
    """Return which of these IDs exist."""
    found = NOTIFICATIONS().find({"_id": {"$in": list(ids)}}, {"_id": 1})
    return {document["_id"] for document in found}


def traceparents(ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the trace context of these notifications' acceptance, for those that were traced."""
    found = NOTIFICATIONS().find({"_id": {"$in": list(ids)}}, {"traceparent": 1})
    return {
        document["_id"]: document["traceparent"] for document in found if "traceparent" in document
    }


def phones(ids: Collection[ObjectId]) -> dict[ObjectId, str]:
    """Return the numbers that notifications were sent to. Test notifications are left out."""
    wanted = {"_id": {"$in": list(ids)}, "is_test": {"$ne": True}}
    found = NOTIFICATIONS().find(wanted, {"recipient.phone": 1})
    numbers = {document["_id"]: document.get("recipient", {}).get("phone") for document in found}
    return {notification: phone for notification, phone in numbers.items() if phone}


def scheduled_local_of(user_id: str) -> list[NotificationDocument]:
    """Return up to 1,000 open notifications that follow a recipient's local time."""
    # Of all of the recipient's notifications, which are few.
    wanted = {"user_id": user_id, "scheduled_local": {"$exists": True}, "due_at": {"$exists": True}}
    found = NOTIFICATIONS().find(wanted, {"scheduled_local": 1, "scheduled_at": 1})
    return list(found.hint(FEED_INDEX).limit(MAX_SCHEDULED_LOCAL))


def page(
    filters: Filter,
    *,
    ordering: Ordering = Ordering.NEWEST,
    limit: int,
    cursor: Cursor | None = None,
) -> Page[NotificationDocument]:
    """Return up to ``limit`` notifications in this order, from a cursor on."""
    return paging.page(
        NOTIFICATIONS,
        filters.match(ordering),
        order=ordering.order,
        limit=limit,
        cursor=cursor,
    )


@dataclass(frozen=True, slots=True)
class SentMessage:
    """An attempt that a provider's message ID names, who made it, and the address it went to."""

    reference: AttemptReference
    provider: str | None
    address: str | None


def by_provider_message(provider_ids: Sequence[str]) -> dict[str, list[SentMessage]]:
    """Return attempts by the provider's message ID. Emails of one send batch share the ID."""
    if not provider_ids:
        return {}
    wanted = set(provider_ids)
    keys = [search_key(KeyKind.PROVIDER_MESSAGE_ID, provider_id) for provider_id in wanted]
    found = NOTIFICATIONS().find(
        {"search_keys": {"$in": keys}},
        {
            "delivery.channel": 1,
            "delivery.provider": 1,
            "delivery.provider_message_id": 1,
            "delivery.attempt_count": 1,
            "recipient": 1,
        },
        hint=SEARCH_INDEX,
    )
    sent: dict[str, list[SentMessage]] = {}
    for document in found:
        recipient = recipient_of(document)
        for delivery in document["delivery"]:
            if (provider_id := delivery.get("provider_message_id")) in wanted:
                channel, attempt = Channel(delivery["channel"]), delivery["attempt_count"]
                reference = AttemptReference(document["_id"], channel, attempt)
                sent.setdefault(provider_id, []).append(
                    SentMessage(reference, delivery.get("provider"), recipient.address(channel))
                )
    return sent


def only_tested(channel: Channel, addresses: Collection[str]) -> set[str]:
    """Return which of these addresses got messages of test clients, and no other.

    An address with more than MAX_TESTED of them doesn't count: not all of its messages are read.
    """
    kind = channel.spec.address
    return {address for address in set(addresses) if kind and _is_only_tested(kind, address)}


def _is_only_tested(kind: AddressKind, address: str) -> bool:
    keys = [address_search_key(kind, spelling) for spelling in {address, address.lower()}]
    wanted, limit = {"search_keys": {"$in": keys}}, MAX_TESTED + 1
    found = NOTIFICATIONS().find(
        wanted, {"_id": 0, "is_test": 1}, hint=SEARCH_INDEX, limit=limit, batch_size=limit
    )
    flags = [document.get("is_test", False) for document in found]
    return 0 < len(flags) <= MAX_TESTED and all(flags)


def was_sent_to(user_id: str) -> bool:
    """Return whether there is a notification to a user, sent or not."""
    found = NOTIFICATIONS().find({"user_id": user_id}, {"_id": 1}).hint(FEED_INDEX).limit(1)
    return next(iter(found), None) is not None


def receipts_of(notification_id: ObjectId) -> list[ProviderEventDocument]:
    """Return the providers' receipts about a notification, of the last 30 days, oldest first."""
    found = PROVIDER_EVENTS().find({"notification_id": notification_id})
    return sorted(found.limit(MAX_RECEIPTS), key=lambda receipt: (receipt["at"], receipt["_id"]))


def attempts_with_receipts(document: NotificationDocument) -> list[DeliveryAttemptDocument]:
    """Return all attempts of a notification, oldest first, with the times of their receipts.

    A device's receipt is stored on its attempt. Other receipts are stored on the delivery. They
    belong to its last attempt that may have been sent, if all such attempts went to one address or
    device.
    """
    found = attempts_of(document["_id"])
    for delivery in document["delivery"]:
        sent = [
            document
            for document in found
            if document["channel"] == delivery["channel"] and document["status"] not in NOT_SENT
        ]
        if len({document.get("device_id") for document in sent}) == 1:
            if (delivered_at := delivery.get("delivered_at")) is not None:
                sent[-1].setdefault("delivered_at", delivered_at)
            if (read_at := delivery.get("read_at")) is not None:
                sent[-1].setdefault("opened_at", read_at)
    return found


def attempts_of(notification_id: ObjectId) -> list[DeliveryAttemptDocument]:
    """Return all attempts of a notification, oldest first."""
    found = DELIVERY_ATTEMPTS().find({"notification_id": notification_id})
    return sorted(found, key=lambda attempt: (attempt["attempted_at"], attempt["_id"]))


def sent_units(ids: Sequence[ObjectId]) -> dict[tuple[ObjectId, str], int]:
    """Return how many parts the texts of notifications had when they were sent, by channel."""
    found = (
        DELIVERY_ATTEMPTS().find(
            {"notification_id": {"$in": list(ids)}, "units": {"$exists": True}},
            {"notification_id": 1, "channel": 1, "units": 1},
        )
        if ids
        else ()
    )
    return {(row["notification_id"], row["channel"]): row["units"] for row in found}


DIGESTS_NEWEST = (("opened_at", -1), ("_id", -1))
MAX_MEMBERS = 100


def digest(digest_id: ObjectId, *, client_id: ObjectId | None = None) -> DigestDocument | None:
    """Return a digest, with ``client_id`` only if it is that client's. Raises PyMongoError."""
    wanted: dict[str, Any] = {"_id": digest_id}
    if client_id is not None:
        wanted["client_id"] = client_id
    return DIGESTS().find_one(wanted)


def digest_page(
    match: dict[str, Any], *, limit: int, cursor: Cursor | None = None
) -> Page[DigestDocument]:
    """Return up to ``limit`` digests, newest first. Raises PyMongoError."""
    return paging.page(DIGESTS, match, order=DIGESTS_NEWEST, limit=limit, cursor=cursor)


def open_digests_of(user_id: str, *, limit: int) -> list[DigestDocument]:
    """Return a recipient's open digests, newest first. Raises PyMongoError."""
    wanted = {"user_id": user_id, "status": DigestStatus.OPEN.value}
    found = DIGESTS().find(wanted, hint="dig_user").sort(list(DIGESTS_NEWEST))
    return list(found.limit(limit))


def count_waiting_members(ids: Sequence[ObjectId]) -> Mapping[ObjectId, int]:
    """Return how many deliveries wait for each of these digests; 0 is left out."""
    waiting = {"delivery.digest_id": {"$in": list(ids)}, "delivery.status": S.PENDING.value}
    pipeline: list[Mapping[str, Any]] = [
        {"$match": match_members(ids)},
        {"$unwind": "$delivery"},
        {"$match": waiting},
        {"$group": {"_id": "$delivery.digest_id", "count": {"$sum": 1}}},
    ]
    found = collection(NOTIFICATIONS.name).aggregate(pipeline, hint=SEARCH_INDEX)
    return {document["_id"]: document["count"] for document in found}


def members_of_digest(digest_id: ObjectId) -> list[NotificationDocument]:
    """Return up to 100 notifications that wait for a digest or are part of it, oldest first."""
    found = NOTIFICATIONS().find(match_members([digest_id]), hint=SEARCH_INDEX)
    found.sort([("created_at", 1), ("_id", 1)])
    return list(found.limit(MAX_MEMBERS))


def statuses(ids: Sequence[ObjectId]) -> dict[ObjectId, NotificationStatus]:
    """Return the statuses of notifications by ID. Raises PyMongoError."""
    found = NOTIFICATIONS().find({"_id": {"$in": list(ids)}}, {"status": 1})
    return {document["_id"]: NotificationStatus(document["status"]) for document in found}


OUTBOX_NEWEST = (("sent_at", -1), ("_id", -1))


def outbox_page(
    match: dict[str, Any], *, limit: int, cursor: Cursor | None = None
) -> Page[SentTestMessageDocument]:
    """Return up to ``limit`` messages that a test key sent, newest first. Raises PyMongoError."""
    return paging.page(TEST_OUTBOX, match, order=OUTBOX_NEWEST, limit=limit, cursor=cursor)
