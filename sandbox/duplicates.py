"""Accepted requests for each message, to detect messages that were sent more than once."""

from collections import OrderedDict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import islice

from .log import Record
from .providers.base import Provider

MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Message:
    """The identity of a message: one of its references, and one recipient."""

    provider: str
    channel: str
    reference: str
    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptanceCounts:
    """The IDs of the accepted requests for each message; the oldest messages are evicted."""

    _requests: OrderedDict[Message, list[int]] = field(default_factory=OrderedDict)

    def add(self, request: int, messages: Iterable[Message]) -> bool:
        """Record an accepted request; return whether one of its messages was accepted before."""
        is_duplicate = False
        for message in dict.fromkeys(messages):
            known = self._requests.setdefault(message, [])
            is_duplicate = is_duplicate or bool(known)
            known.append(request)
            if len(self._requests) > MAX_REMEMBERED:
                self._requests.popitem(last=False)
        return is_duplicate

    def accepted_requests(self, messages: Iterable[Message]) -> list[int]:
        """Return the IDs of the accepted requests of the message that was accepted most often."""
        return max((self._requests.get(message, []) for message in messages), key=len, default=[])

    def find(
        self, predicate: Callable[[Message], bool], *, at_least: int, limit: int
    ) -> list[tuple[Message, list[int]]]:
        """Return messages with at least ``at_least`` accepted requests, newest first."""
        newest = (
            (message, requests)
            for message, requests in reversed(self._requests.items())
            if len(requests) >= at_least and predicate(message)
        )
        return list(islice(newest, limit))


def accepted_messages(provider: Provider, record: Record) -> list[Message]:
    """Return the messages of a request; empty if the request was refused."""
    if not record.accepted:
        return []
    return [
        Message(provider.name, provider.channel, reference, recipient)
        for recipient, reference in provider.deliveries(record)
    ]
