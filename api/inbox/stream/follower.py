"""Reads the next events of a stream from MongoDB. Wake-ups contain no events."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import pymongo
from bson import ObjectId

from access.clients import inbox_tokens
from access.clients.authentication import inbox_user_of
from access.clients.inbox_tokens import InboxUser
from notifications.documents.notification import NotificationDocument
from notifications.inbox import feed
from notifications.inbox.feed import FeedCounts
from notifications.store.inbox import Inbox

from ..schemas import inbox_counts, inbox_item

DATABASE_TIMEOUT = 5
"""Seconds per poll; after a timeout, the stream stays open and polls again later."""
MAX_EVENTS_PER_POLL = 100
"""New notifications per poll. If there are more, the newest follow a ``reload`` event."""
OVERLAP = timedelta(seconds=10)
"""A poll starts this long before the newest notification sent. Processes use their own clocks, so
notifications can become visible out of order."""
HEARTBEAT = b":\n\n"


def authenticate(header: str, *, now: datetime) -> InboxUser | None:
    """Return the user of an Authorization header's inbox token. Raises PyMongoError."""
    with pymongo.timeout(DATABASE_TIMEOUT):
        return inbox_user_of(header, now=now)


@dataclass(slots=True, kw_only=True)
class Follower:
    """One stream's position in an inbox, and the notifications it has sent."""

    user: InboxUser
    last_event_id: ObjectId | None  # Received on an earlier connection
    # The request of the stream was authenticated, so the first poll doesn't check the token.
    _is_just_authenticated: bool = True
    _since: datetime | None = None
    _sent: dict[ObjectId, datetime] = field(default_factory=dict)
    _counts: FeedCounts | None = None

    @property
    def inbox(self) -> Inbox:
        """The inbox that the stream follows."""
        return Inbox(self.user.client_id, self.user.user_id)

    def is_token_valid(self, now: datetime) -> bool:
        """Return whether the stream's token is still valid. Raises PyMongoError."""
        with pymongo.timeout(DATABASE_TIMEOUT):
            return inbox_tokens.is_valid(self.user, now=now)

    def poll(self, now: datetime) -> list[bytes] | None:
        """Return the events since the last successful poll; None if the token isn't valid."""
        with pymongo.timeout(DATABASE_TIMEOUT):
            is_first, self._is_just_authenticated = self._is_just_authenticated, False
            if not is_first and not inbox_tokens.is_valid(self.user, now=now):
                return None
            since, sent, has_gap = self._resume_position(now)
            # Counted first, so that no count includes a notification before its event is sent.
            counts = feed.counts(self.inbox)
            found = feed.since(self.inbox, moment=since, limit=MAX_EVENTS_PER_POLL + 1)
        unsent = [
            document
            for document in reversed(found[:MAX_EVENTS_PER_POLL])
            # One that comes back from a snooze is new again, at another time.
            if sent.get(document["_id"]) != document["inbox_at"]
        ]
        events = [encode_event("reload", {})] if has_gap or len(found) > MAX_EVENTS_PER_POLL else []
        items = (inbox_item(document, now=now) for document in unsent)
        events += [encode_event("notification", item, event_id=item.id) for item in items]
        if counts != self._counts:
            # Without an ID, a stream without notifications could not be resumed.
            position = _position_id(now) if is_first and not unsent else None
            events.append(encode_event("counts", inbox_counts(counts), event_id=position))
        self._record_sent(since, sent, found[:MAX_EVENTS_PER_POLL], counts)
        return events

    def _resume_position(self, now: datetime) -> tuple[datetime, Mapping[ObjectId, datetime], bool]:
        """Return the time to read from, notifications sent since then, and if any were missed."""
        if self._since is not None:
            return self._since, self._sent, False
        if self.last_event_id and (position := _position(self.last_event_id)):
            return min(position, now) - OVERLAP, {}, False
        last = feed.get(self.inbox, self.last_event_id) if self.last_event_id else None
        if last is not None:
            return last["inbox_at"] - OVERLAP, {last["_id"]: last["inbox_at"]}, False
        # The client gets older notifications by GET /inbox.
        since = now - OVERLAP
        existing = feed.since(self.inbox, moment=since, limit=MAX_EVENTS_PER_POLL)
        return since, {d["_id"]: d["inbox_at"] for d in existing}, self.last_event_id is not None

    def _record_sent(
        self,
        since: datetime,
        sent: Mapping[ObjectId, datetime],
        found: Sequence[NotificationDocument],
        counts: FeedCounts,
    ) -> None:
        if found:
            since = max(since, found[0]["inbox_at"] - OVERLAP)
        all_sent = {**sent, **{document["_id"]: document["inbox_at"] for document in found}}
        self._since = since
        self._sent = {
            notification_id: at for notification_id, at in all_sent.items() if at >= since
        }
        self._counts = counts


def _position_id(now: datetime) -> ObjectId:
    """Return an event ID that stands for a time in full seconds. No notification has it."""
    return ObjectId.from_datetime(now)


def _position(event_id: ObjectId) -> datetime | None:
    """Return the time of an ID that is a position; None for a notification's."""
    moment = event_id.generation_time
    return moment if event_id == _position_id(moment) else None


def encode_event(name: str, data: object, *, event_id: object = None) -> bytes:
    """Encode a server-sent event, with an ID if it has one. Its data is JSON in one line."""
    id_line = "" if event_id is None else f"id: {event_id}\n"
    return f"{id_line}event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
