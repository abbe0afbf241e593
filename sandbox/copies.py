"""How often each message was accepted: a message that was sent twice shows here."""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice

from .log import Record
from .providers.base import Provider

MAX_REMEMBERED = 100_000


@dataclass(frozen=True, slots=True)
class Case:
    """One reference for one recipient."""

    provider: str
    channel: str
    reference: str
    recipient: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Copies:
    """The requests that were accepted for each case; the oldest cases are forgotten."""

    _requests: OrderedDict[Case, list[int]] = field(default_factory=OrderedDict)

    def add(self, request: int, cases: Iterable[Case]) -> bool:
        """Remember an accepted request; return whether any of its cases had been accepted."""
        again = False
        for case in dict.fromkeys(cases):
            known = self._requests.setdefault(case, [])
            again = again or bool(known)
            known.append(request)
            if len(self._requests) > MAX_REMEMBERED:
                self._requests.popitem(last=False)
        return again

    def of(self, cases: Iterable[Case]) -> list[int]:
        """Return the requests that were accepted for the most frequent of these cases."""
        return max((self._requests.get(case, []) for case in cases), key=len, default=[])

    def find(
        self, wanted: Callable[[Case], bool], *, at_least: int, limit: int
    ) -> list[tuple[Case, list[int]]]:
        """Return cases, the newest first, that were accepted at least so often."""
        return list(islice(self._newest(wanted, at_least), limit))

    def clear(self) -> None:
        """Forget everything."""
        self._requests.clear()

    def _newest(
        self, wanted: Callable[[Case], bool], at_least: int
    ) -> Iterator[tuple[Case, list[int]]]:
        for case, requests in reversed(self._requests.items()):
            if len(requests) >= at_least and wanted(case):
                yield case, requests


def cases(provider: Provider, record: Record) -> list[Case]:
    """Return what a request was accepted for; nothing if it was refused."""
    if not record.accepted:
        return []
    return [
        Case(provider.name, provider.channel, reference, recipient)
        for recipient, reference in provider.deliveries(record)
    ]
