"""Faults between any two writes: a killed process, a lost response, a lost request.

A killed process does nothing more: every later command, send, and message of it raises
:class:`KilledError` until the engine starts another one. Its locks and memory are gone; what it
wrote stays.
"""

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from unittest.mock import patch

from pymongo.errors import NetworkTimeout
from pymongo.synchronous.pool import Connection

from notifications.store import collections as store_collections
from notifyproject.platform import broker, crash_points
from notifyproject.platform.crash_points import Boundary

WRITES = frozenset({"insert", "update", "delete", "findAndModify"})
EXEMPT = frozenset({"hello", "ismaster", "endSessions", "ping"})
"""Commands of the driver itself."""


class KilledError(BaseException):
    """The process is killed. Not an Exception, so that nothing handles it."""


class Kind(StrEnum):
    """What goes wrong."""

    KILLED_BEFORE_WRITE = "killed before a write"
    KILLED_AFTER_WRITE = "killed after a write"
    KILLED_AT_BOUNDARY = "killed at a boundary"
    RESPONSE_LOST = "applied, response lost"
    REQUEST_LOST = "not applied, request lost"


KILLS = frozenset({Kind.KILLED_BEFORE_WRITE, Kind.KILLED_AFTER_WRITE, Kind.KILLED_AT_BOUNDARY})


@dataclass(slots=True)
class Fault:
    """A fault at the n-th write, or at the n-th time that a boundary is reached."""

    kind: Kind
    number: int
    boundary: Boundary | None = None
    times: int = 1
    """Responses or requests in a row that are lost: the driver repeats some writes once."""


@dataclass(slots=True)
class FaultInjector:
    """Counts the commands of the simulated process, and lets one of them fail."""

    random: random.Random
    counts: Counter[str] = field(default_factory=Counter)
    """Faults that happened, by kind."""
    boundaries: Counter[str] = field(default_factory=Counter)
    """Boundaries at which a process was killed."""
    sequence: int = 0
    """Commands so far: an order of what was committed."""
    started_at: int = 0
    """The sequence number of the last write that started attempts, when it was first applied."""
    before_write: Callable[[Any], None] | None = None
    """Called with a write before it is sent: another process may do something first."""
    _fault: Fault | None = None
    _is_armed: bool = False
    _is_dead: bool = False
    _is_nested: bool = False
    _writes: int = 0
    _applied: tuple[Any, int] | None = None
    """The last write, if its response was lost, and when it was first applied. Its repetition
    changes nothing."""
    _seen: Counter[Boundary] = field(default_factory=Counter)
    _usual_writes: float = 10.0
    _usual_boundaries: Counter[Boundary] = field(default_factory=Counter)

    def draw(self, probability: float) -> Fault | None:
        """Return a random fault, or None. It fits the number of writes of the last runs."""
        rng = self.random
        if rng.random() >= probability:
            return None
        kind = rng.choice(list(Kind))
        if kind is Kind.KILLED_AT_BOUNDARY and self._usual_boundaries:
            boundary = rng.choice(sorted(self._usual_boundaries))
            return Fault(kind, rng.randint(1, self._usual_boundaries[boundary]), boundary)
        number = rng.randint(1, max(round(self._usual_writes), 1))
        return Fault(kind, number, times=rng.choice((1, 1, 2)))

    @contextmanager
    def process(self, fault: Fault | None) -> Iterator[None]:
        """Run a process, which ``fault`` may kill. Raises KilledError if it does."""
        self._fault, self._is_armed = fault, True
        self._writes, self._applied, self._seen = 0, None, Counter()
        try:
            yield
        finally:
            self._is_armed = self._is_dead = False
            if fault is None and self._writes:
                self._usual_writes += (self._writes - self._usual_writes) / 4
                self._usual_boundaries = self._seen

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Intercept the commands, boundaries, and messages of this Python process."""
        command = Connection.command

        def intercepted(
            connection: Connection, name: str, spec: Any, *args: Any, **more: Any
        ) -> Any:
            return self._command(lambda: command(connection, name, spec, *args, **more), spec)

        with ExitStack() as stack:
            stack.enter_context(patch.object(Connection, "command", intercepted))
            stack.enter_context(patch.object(crash_points, "reach", self._reach))
            stack.enter_context(patch.object(broker, "publish", self._publish))
            # Real time passes, and virtual time doesn't.
            stack.enter_context(patch.object(store_collections, "PAUSE", 0))
            yield

    def check_alive(self) -> None:
        """Raise KilledError if the process is killed."""
        if self._is_dead:
            raise KilledError

    def _command(self, run: Callable[[], Any], spec: Any) -> Any:
        name = next(iter(spec))
        if not self._is_armed or self._is_nested or name in EXEMPT:
            self.sequence += 1
            return run()
        self.check_alive()
        if name not in WRITES:
            return run()
        if self.before_write is not None and threading.current_thread() is threading.main_thread():
            self._is_nested = True
            try:
                self.before_write(spec)
            finally:
                self._is_nested = False
        self._writes += 1
        self.sequence += 1
        statements = spec.get("updates")
        if self._applied is not None and self._applied[0] != statements:
            self._applied = None
        fault = self._fault
        if fault is None or fault.boundary is not None or self._writes < fault.number:
            return run()
        self.counts[fault.kind.value] += 1
        if fault.kind is Kind.KILLED_BEFORE_WRITE:
            self._kill()
        if fault.kind is Kind.KILLED_AFTER_WRITE:
            run()
            self._kill()
        fault.times -= 1
        if not fault.times:
            self._fault = None
        if fault.kind is Kind.RESPONSE_LOST:
            run()
            self._applied = self._applied or (statements, self.sequence)
        raise NetworkTimeout("the simulation lost it")

    def _reach(self, boundary: Boundary) -> None:
        if boundary is Boundary.START_WRITTEN:
            self.started_at = self._applied[1] if self._applied is not None else self.sequence
        if not self._is_armed or self._is_nested:
            return
        self.check_alive()
        self._seen[boundary] += 1
        fault = self._fault
        if fault is None or fault.boundary is not boundary:
            return
        if self._seen[boundary] == fault.number:
            self.counts[fault.kind.value] += 1
            self.boundaries[boundary.value] += 1
            self._kill()

    def _publish(self, *_: Any, **__: Any) -> bool:
        """Lose every message: what is due is found in MongoDB."""
        if self._is_armed and not self._is_nested:
            self.check_alive()
        return True

    def _kill(self) -> None:
        self._is_dead = True
        raise KilledError
