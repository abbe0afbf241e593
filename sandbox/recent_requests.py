"""The latest requests and their events in memory, for the control API and the outbox."""

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from itertools import islice
from typing import Any

from .duplicates import AcceptanceCounts, accepted_messages
from .log import Record
from .providers.base import Provider

MAX_REQUESTS = 5_000
MAX_BYTES = 256 * 1024 * 1024


class EventState(StrEnum):
    """The progress of an event's webhook."""

    PLANNED = "planned"
    SENDING = "sending"
    SENT = "sent"
    FAILED = "failed"


@dataclass(slots=True, kw_only=True, eq=False)
class Event:
    """An event about a request, updated while its webhook is sent."""

    request_id: int
    """0: an inbound message, which belongs to no request."""
    kind: str
    payload: dict[str, Any]
    planned_at: datetime
    url: str | None = None
    """The receiver; None: that of the provider."""
    state: EventState = EventState.PLANNED
    sent_at: datetime | None = None
    tries: int = 0
    answer: str | None = None


@dataclass(slots=True, kw_only=True, eq=False)
class Exchange:
    """A request and its events."""

    record: Record
    events: list[Event] = field(default_factory=list)
    version: int = 0
    """Increases with each change, so that the outbox redraws only changed messages."""


@dataclass(slots=True, kw_only=True)
class WebhookCounts:
    """Counters of webhooks: requests that were posted and refused, and events by state."""

    requests: int = 0
    refused: int = 0
    sent: int = 0
    failed: int = 0
    waiting: int = 0
    """Due events that the receiver hasn't accepted yet."""


@dataclass(slots=True, kw_only=True)
class ProviderCounts:
    """Counters of one provider."""

    requests: int = 0
    connections: int = 0
    accepted: int = 0


@dataclass(slots=True, kw_only=True)
class Counts(ProviderCounts):
    """Counters since the start or the last reset."""

    duplicates: int = 0
    """Accepted requests with a message that was accepted before."""
    outcomes: dict[str, int] = field(default_factory=dict)
    providers: dict[str, ProviderCounts] = field(default_factory=dict)
    webhooks: WebhookCounts = field(default_factory=WebhookCounts)

    def of_provider(self, provider: str) -> ProviderCounts:
        """Return the counters of one provider."""
        return self.providers.setdefault(provider, ProviderCounts())


class RecentRequests:
    """The latest exchanges by ID, and the counters."""

    def __init__(self) -> None:
        self.counts = Counts()
        self.acceptances = AcceptanceCounts()
        self.revision = 0
        self.generation = 0
        """Increases with each reset. Events of an earlier generation are not sent."""
        self._webhook_errors: dict[str, str] = {}
        self._exchanges: OrderedDict[int, Exchange] = OrderedDict()
        self._bytes = 0

    def add(self, record: Record, provider: Provider) -> None:
        """Add and count a request; evict the oldest."""
        counts = self.counts
        for counters in (counts, counts.of_provider(record.provider)):
            counters.requests += 1
            counters.accepted += record.accepted
        counts.outcomes[record.outcome] = counts.outcomes.get(record.outcome, 0) + 1
        counts.duplicates += self.restore(record, provider)

    def restore(self, record: Record, provider: Provider) -> bool:
        """Add a request without counting it; return whether a message was accepted before."""
        self._exchanges[record.id] = Exchange(record=record)
        self._bytes += memoryview(record.body).nbytes
        self.revision += 1
        while len(self._exchanges) > MAX_REQUESTS or (
            self._bytes > MAX_BYTES and len(self._exchanges) > 1
        ):
            _, oldest = self._exchanges.popitem(last=False)
            self._bytes -= memoryview(oldest.record.body).nbytes
        return self.acceptances.add(record.id, accepted_messages(provider, record))

    def copies(self, record: Record, provider: Provider) -> list[int]:
        """Return the request IDs of this request's message that was accepted most often."""
        return self.acceptances.accepted_requests(accepted_messages(provider, record))

    def add_event(self, event: Event) -> None:
        """Add an event to its request, unless the request was evicted."""
        exchange = self._exchanges.get(event.request_id)
        if exchange is not None:
            exchange.events.append(event)
            self.mark_changed(event.request_id)

    def mark_changed(self, request_id: int) -> None:
        """Increase the revision, and the version of a request, so that pages are redrawn."""
        self.revision += 1
        exchange = self._exchanges.get(request_id)
        if exchange is not None:
            exchange.version += 1

    def get(self, request_id: int) -> Exchange | None:
        """Return a request with its events; None if unknown or evicted."""
        return self._exchanges.get(request_id)

    def find(
        self, predicate: Callable[[Record], bool], *, limit: int, before: int | None = None
    ) -> list[Exchange]:
        """Return matching requests with an ID below ``before``, newest first."""
        newest = (
            exchange
            for number, exchange in reversed(self._exchanges.items())
            if (before is None or number < before) and predicate(exchange.record)
        )
        return list(islice(newest, limit))

    @property
    def webhook_error(self) -> str | None:
        """The last webhook error of each receiver, as text; None if there is none."""
        return "; ".join(f"{url}: {answer}" for url, answer in self._webhook_errors.items()) or None

    def record_webhook_error(self, url: str, answer: str | None) -> bool:
        """Set a receiver's error, or clear it with None; return whether it changed."""
        if self._webhook_errors.get(url) == answer:
            return False
        if answer is None:
            del self._webhook_errors[url]
        else:
            self._webhook_errors[url] = answer
        return True

    def clear(self) -> None:
        """Delete everything and reset the counters."""
        self._exchanges.clear()
        self._bytes = 0
        self.counts, self.acceptances = Counts(), AcceptanceCounts()
        self._webhook_errors.clear()
        self.revision += 1
        self.generation += 1
