"""Reads the next events of a stream from MongoDB; a wake-up only sets the time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import msgspec
import pymongo
from bson import ObjectId

from access.clients import inbox_tokens
from access.clients.authentication import inbox_user_of
from access.clients.inbox_tokens import InboxUser
from notifications.inbox import feed
from notifications.inbox.feed import FeedCounts
from notifications.store import Document, Inbox

from ..schemas import InboxCounts, inbox_item

DATABASE_TIMEOUT = 5
"""Seconds per poll; after a timeout, the stream stays open and polls again later."""
MAX_EVENTS_PER_POLL = 100
"""New notifications per poll. Of more, the newest are sent, after a ``reload`` event."""
OVERLAP = timedelta(seconds=10)
"""How far a poll reads back before the newest notification sent. Processes stamp notifications with
their own clocks, so they may become visible in another order than that of their times."""
HEARTBEAT = b":\n\n"


def authenticate(header: str, *, now: datetime) -> InboxUser | None:
    """Return the user of an Authorization header's inbox token; raises PyMongoError."""
    with pymongo.timeout(DATABASE_TIMEOUT):
        return inbox_user_of(header, now=now)


@dataclass(slots=True, kw_only=True)
class Follower:
    """One stream's position in an inbox: what it has sent."""

    user: InboxUser
    last_event_id: ObjectId | None  # The last event received, on an earlier connection
    _since: datetime | None = None
    _sent: dict[ObjectId, datetime] = field(default_factory=dict)
    _counts: FeedCounts | None = None

    @property
    def inbox(self) -> Inbox:
        """The inbox it follows."""
        return Inbox(self.user.client_id, self.user.user_id)

    def is_token_valid(self, now: datetime) -> bool:
        """Return whether its token is still valid; raises PyMongoError."""
        with pymongo.timeout(DATABASE_TIMEOUT):
            return inbox_tokens.is_valid(self.user, now=now)

    def poll(self, now: datetime) -> list[bytes] | None:
        """Return the events since the last successful poll; None if the token isn't valid."""
        with pymongo.timeout(DATABASE_TIMEOUT):
            if not inbox_tokens.is_valid(self.user, now=now):
                return None
            since, sent, has_gap = self._resume_position(now)
            # Counted first, so that no count includes a notification before its event is sent.
            counts = feed.counts(self.inbox)
            found = feed.since(self.inbox, moment=since, limit=MAX_EVENTS_PER_POLL + 1)
        unsent = [
            document
            for document in reversed(found[:MAX_EVENTS_PER_POLL])
            if document["_id"] not in sent
        ]
        events = [encode_event("reload", {})] if has_gap or len(found) > MAX_EVENTS_PER_POLL else []
        items = (inbox_item(document, now=now) for document in unsent)
        events += [f"id: {one.id}\n".encode() + encode_event("notification", one) for one in items]
        if counts != self._counts:
            shown = InboxCounts(unread=counts.unread, unseen=counts.unseen)
            events.append(encode_event("counts", shown))
        self._record_sent(since, sent, found[:MAX_EVENTS_PER_POLL], counts)
        return events

    def _resume_position(self, now: datetime) -> tuple[datetime, Mapping[ObjectId, datetime], bool]:
        """Return the poll's start, what was sent since then, and whether events were missed."""
        if self._since is not None:
            return self._since, self._sent, False
        last = feed.get(self.inbox, self.last_event_id) if self.last_event_id else None
        if last is not None:
            return last["inbox_at"] - OVERLAP, {last["_id"]: last["inbox_at"]}, False
        # Older notifications come from GET /inbox.
        since = now - OVERLAP
        existing = feed.since(self.inbox, moment=since, limit=MAX_EVENTS_PER_POLL)
        return since, {d["_id"]: d["inbox_at"] for d in existing}, self.last_event_id is not None

    def _record_sent(
        self,
        since: datetime,
        sent: Mapping[ObjectId, datetime],
        found: Sequence[Document],
        counts: FeedCounts,
    ) -> None:
        if found:
            since = max(since, found[0]["inbox_at"] - OVERLAP)
        all_sent = {**sent, **{document["_id"]: document["inbox_at"] for document in found}}
        self._since = since
        self._sent = {one: at for one, at in all_sent.items() if at >= since}
        self._counts = counts


def encode_event(name: str, data: object) -> bytes:
    """Return an encoded event; the JSON has no line breaks."""
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(data) + b"\n\n"
