"""Runs requests together in one thread, so that they share round trips.

Each task is a greenlet. Where it needs a :class:`Trip`, it waits until every other task waits, too,
or has ended. Then one of those that wait for the same trip makes it for all of them. What runs
between trips, such as a view, knows nothing of it, and has context variables of its own.

Never wait for a trip with a lock held: another task of the thread would wait for the lock forever.
Design: docs/decisions/0054-lock-step.md.
"""

import copy
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Generic, TypeVar

from greenlet import getcurrent, greenlet

C = TypeVar("C")
R = TypeVar("R")


class Trip(Generic[C, R]):
    """A round trip that tasks make together. Outside a step, each makes it for itself.

    ``make`` returns an outcome for each call: a value, or an exception that its caller gets. What
    it raises, all get.
    """

    def __init__(self, make: Callable[[Sequence[C]], Sequence[R | Exception]]) -> None:
        self.make = make

    def __call__(self, call: C) -> R:
        """Return the result of a call, or raise its exception."""
        task = getcurrent()
        if isinstance(task, _Task) and not task.is_alone:
            outcome = task.share(self, call)
        else:
            (outcome,) = self.make([call])
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class LockStep:
    """Tasks that run together in the thread that calls :meth:`run`. A task must not raise."""

    def __init__(self, works: Iterable[Callable[[], None]]) -> None:
        self._ready = deque(_Task(work, self) for work in works)
        self._rounds: dict[Trip[Any, Any], _Round] = {}
        """Those that wait for a trip, in the order in which the first of them began to wait."""
        self._resting: deque[_Task] = deque()

    def run(self) -> bool:
        """Run all tasks until each has ended or rests. Return whether any rests.

        Called again, it runs one of those that rest until it has ended or rests again.
        """
        if not self._ready and self._resting:
            self._ready.append(self._resting.popleft())
        while self._ready or self._rounds:
            if not self._ready:
                trip = next(iter(self._rounds))
                self._ready.extend(self._rounds.pop(trip).tasks)
            self._ready.popleft().switch()
        return bool(self._resting)

    def run_alone(self) -> None:
        """Run the tasks that are left, each to its end and with trips of its own."""
        waiting = [task for found in self._rounds.values() for task in found.tasks]
        left = [*self._ready, *waiting, *self._resting]
        for waits in (self._ready, self._rounds, self._resting):
            waits.clear()
        for task in left:
            task.is_alone = True
            while not task.dead:
                task.switch()

    def join(self, trip: Trip[Any, Any], task: "_Task", call: Any) -> "tuple[_Round, int]":
        """Add a task to those that wait for a trip; return them, and the number of its call."""
        found = self._rounds.get(trip)
        if found is None:
            found = self._rounds[trip] = _Round(trip)
        found.tasks.append(task)
        found.calls.append(call)
        return found, len(found.calls) - 1

    def let_others_pass(self, task: "_Task") -> None:
        """Run a task only after those that don't rest."""
        self._resting.append(task)


class _Task(greenlet):
    """A task of a step. A new greenlet has an empty context."""

    def __init__(self, work: Callable[[], None], step: LockStep) -> None:
        super().__init__(work)
        self.step = step
        self.is_alone = False
        """Whether it shares no trips, and waits for nobody."""

    def share(self, trip: Trip[C, R], call: C) -> R | Exception:
        """Return the outcome of a call, after this or another task has made the trip."""
        found, number = self.step.join(trip, self, call)
        self.wait()
        if self.is_alone and found.outcomes is None:
            (outcome,) = trip.make([call])
            return outcome
        # The first to run again leads, and if it has died of it, the next.
        if found.outcomes is None:
            with alone():
                found.make()
        outcomes: Sequence[R | Exception] = found.outcomes
        return outcomes[number]

    def wait(self) -> None:
        """Let the step go on with others."""
        self.parent.switch()


class _Round:
    """Tasks that wait for the same trip."""

    def __init__(self, trip: Trip[Any, Any]) -> None:
        self.trip = trip
        self.tasks: list[_Task] = []
        self.calls: list[Any] = []
        self.outcomes: Any = None

    def make(self) -> None:
        """Make the trip."""
        count = len(self.calls)
        try:
            outcomes = self.trip.make(self.calls)
        except Exception as error:
            outcomes = for_all(error, count)
        if len(outcomes) != count:
            outcomes = for_all(ValueError("a trip has an outcome for each call"), count)
        self.outcomes = outcomes


def rest() -> None:
    """Let the other tasks go first. For code that has taken much CPU time, or may soon."""
    task = getcurrent()
    if isinstance(task, _Task) and not task.is_alone:
        task.step.let_others_pass(task)
        task.wait()


@contextmanager
def alone() -> Iterator[None]:
    """Share no trip in this block, as with a lock held."""
    task = getcurrent()
    if not isinstance(task, _Task) or task.is_alone:
        yield
        return
    task.is_alone = True
    try:
        yield
    finally:
        task.is_alone = False


def for_all(error: Exception, count: int) -> list[Exception]:
    """Return an exception for each of several calls: raising changes it."""
    return [error, *(_copy_of(error) for _ in range(count - 1))]


def _copy_of(error: Exception) -> Exception:
    try:
        return copy.copy(error)
    except Exception:
        # Its constructor takes other arguments. Better its traceback is of several callers.
        return error


def for_each(make: Callable[[C], R], calls: Iterable[C]) -> list[R | Exception]:
    """Return the outcomes of calls that are made one after the other."""
    outcomes: list[R | Exception] = []
    for call in calls:
        try:
            outcomes.append(make(call))
        except Exception as error:
            outcomes.append(error)
    return outcomes
