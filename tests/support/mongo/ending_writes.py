"""Ends a process, as far as it can tell, before or after one of its writes."""

from collections.abc import Iterator
from contextlib import contextmanager

from pymongo import monitoring

from tests.support.mongo.written_collections import WRITES, StartedListener

COMMITS = frozenset({"commitTransaction"})


class Ended(BaseException):
    """The end of the process: nothing catches it, as nothing catches a kill."""


class _EndingWrites(StartedListener):
    """Counts writes. At one of them it raises Ended, before it is sent or once it is applied."""

    def __init__(self) -> None:
        self.count = 0
        self._at: int | None = None
        self._is_before = False

    @contextmanager
    def at(self, number: int | None, *, is_before: bool = False) -> Iterator[None]:
        """End at the write of this number, the first being 0; with None, only count them."""
        self.count, self._at, self._is_before = 0, number, is_before
        try:
            yield
        finally:
            self._at = None

    def started(self, event: monitoring.CommandStartedEvent) -> None:
        if event.command_name in WRITES | COMMITS:
            self.count += 1
            self._end(is_before=True)

    def succeeded(self, event: monitoring.CommandSucceededEvent) -> None:
        if event.command_name in WRITES | COMMITS:
            self._end(is_before=False)

    def _end(self, *, is_before: bool) -> None:
        if self._at == self.count - 1 and is_before is self._is_before:
            raise Ended


ending = _EndingWrites()
monitoring.register(ending)
