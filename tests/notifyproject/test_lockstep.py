"""Tasks that run together in one thread, and the round trips that they share."""

import threading
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any

import pymongo
import pytest
import structlog
from django.utils import timezone, translation
from opentelemetry import context
from pymongo.errors import AutoReconnect

from notifyproject import lockstep
from notifyproject.lockstep import LockStep, Trip
from tests.support.together import together

VARIABLE: ContextVar[str] = ContextVar("VARIABLE", default="unset")


class Recorder:
    """A trip that doubles its calls, and the calls of each time that it was made."""

    def __init__(self) -> None:
        self.made: list[list[Any]] = []
        self.trip: Trip[Any, Any] = Trip(self._make)

    def _make(self, calls: Sequence[Any]) -> list[Any]:
        self.made.append(list(calls))
        return [call * 2 for call in calls]


def test_trip_is_made_once_for_all() -> None:
    doubled = Recorder()
    assert together(*(partial(doubled.trip, number) for number in range(4))) == [0, 2, 4, 6]
    assert doubled.made == [[0, 1, 2, 3]]


def test_trip_outside_a_step_is_made_for_its_caller() -> None:
    doubled = Recorder()
    assert [doubled.trip(number) for number in range(3)] == [0, 2, 4]
    assert doubled.made == [[0], [1], [2]]


def test_tasks_meet_at_each_trip() -> None:
    first, second = Recorder(), Recorder()
    results = together(*(lambda n=n: second.trip(first.trip(n)) for n in range(3)))
    assert results == [0, 4, 8]
    assert (first.made, second.made) == ([[0, 1, 2]], [[0, 2, 4]])


def test_task_without_a_trip_delays_none() -> None:
    doubled = Recorder()
    order = []

    def wait() -> None:
        doubled.trip(1)
        order.append("waited")

    together(wait, partial(order.append, "none"))
    assert order == ["none", "waited"]


def test_exception_of_a_call_is_its_callers() -> None:
    def make(calls: Sequence[int]) -> list[Any]:
        return [ValueError(call) if call == 1 else call for call in calls]

    trip = Trip(make)
    first, second, third = together(*(partial(trip, number) for number in range(3)))
    assert (first, third) == (0, 2)
    assert isinstance(second, ValueError)


def test_exception_of_a_trip_is_that_of_each_and_none_is_another_ones() -> None:
    def fail(calls: Sequence[int]) -> list[int]:
        raise AutoReconnect("no primary", {"errors": ["127.0.0.1"]})

    trip = Trip(fail)
    found = together(*(partial(trip, number) for number in range(3)))
    assert {type(error) for error in found} == {AutoReconnect}
    assert {str(error) for error in found} == {"no primary"}
    assert {str(error.details) for error in found} == {"{'errors': ['127.0.0.1']}"}
    assert len({id(error) for error in found}) == 3


def test_trip_without_an_outcome_for_each_fails_for_all() -> None:
    trip = Trip(lambda calls: [1])
    found = together(*(partial(trip, number) for number in range(3)))
    assert {type(error) for error in found} == {ValueError}


def test_next_one_leads_if_the_first_has_died_of_a_trip() -> None:
    made = []

    def make(calls: Sequence[int]) -> list[int]:
        made.append(list(calls))
        if len(made) == 1:
            raise SystemExit
        return list(calls)

    trip = Trip(make)
    results: list[Any] = []

    def run(number: int) -> None:
        try:
            results.append(trip(number))
        except SystemExit:
            results.append("died")

    LockStep([partial(run, number) for number in range(3)]).run()
    assert results == ["died", 1, 2]
    assert made == [[0, 1, 2], [0, 1, 2]]


def test_each_task_has_a_context_of_its_own() -> None:
    doubled = Recorder()
    VARIABLE.set("of the thread")

    def work(language: str, zone: str, seconds: float) -> tuple[Any, ...]:
        found = [VARIABLE.get()]
        VARIABLE.set(language)
        token = context.attach(context.set_value("span", language))
        with (
            translation.override(language),
            timezone.override(zone),
            structlog.contextvars.bound_contextvars(request_id=language),
            pymongo.timeout(seconds),
        ):
            doubled.trip(1)
            found.append(context.get_value("span"))
            context.detach(token)
            return (
                *(*found, VARIABLE.get(), translation.get_language()),
                timezone.get_current_timezone_name(),
                structlog.contextvars.get_contextvars(),
                pymongo._csot.get_timeout(),
            )

    cases = [("de", "Europe/Berlin", 3.0), ("ja", "Asia/Tokyo", 5.0), ("en", "UTC", 7.0)]
    assert together(*(partial(work, *case) for case in cases)) == [
        ("unset", *[language] * 3, zone, {"request_id": language}, seconds)
        for language, zone, seconds in cases
    ]
    assert VARIABLE.get() == "of the thread"


def test_trip_is_made_under_the_deadline_of_the_first() -> None:
    found = []

    def make(calls: Sequence[int]) -> list[int]:
        found.append(pymongo._csot.get_timeout())
        return list(calls)

    trip = Trip(make)

    def work(seconds: float) -> None:
        with pymongo.timeout(seconds):
            trip(1)

    together(partial(work, 3.0), partial(work, 5.0))
    assert found == [3.0]


def test_task_that_rests_lets_all_others_end() -> None:
    doubled = Recorder()
    order = []

    def work(name: str, *, rests: bool) -> None:
        if rests:
            lockstep.rest()
        doubled.trip(1)
        doubled.trip(2)
        order.append(name)

    step = LockStep(
        [
            partial(work, "heavy", rests=True),
            partial(work, "light", rests=False),
            partial(work, "heavy too", rests=True),
            partial(work, "light too", rests=False),
        ]
    )
    assert step.run()
    assert order == ["light", "light too"]
    assert step.run()
    assert not step.run()
    assert order == ["light", "light too", "heavy", "heavy too"]


def test_block_alone_shares_no_trip_and_waits_for_nobody() -> None:
    doubled = Recorder()
    lock = threading.Lock()

    def work() -> None:
        with lockstep.alone(), lock:
            doubled.trip(1)
            lockstep.rest()
            doubled.trip(2)
        doubled.trip(3)

    together(work, work)
    assert doubled.made == [[1], [2], [1], [2], [3, 3]]


def test_nested_trip_is_made_by_the_one_that_leads() -> None:
    inner = Recorder()
    outer: Trip[int, int] = Trip(lambda calls: [inner.trip(call) for call in calls])
    assert together(partial(outer, 1), partial(outer, 2)) == [2, 4]
    assert inner.made == [[1], [2]]


def test_tasks_that_are_left_go_on_alone() -> None:
    first, second = Recorder(), Recorder()
    results = []

    def work(number: int) -> None:
        if number == 2:
            lockstep.rest()
        results.append(second.trip(first.trip(number)))
        if number == 3:
            raise RuntimeError("a defect of the step")

    step = LockStep([partial(work, number) for number in range(5)])
    with pytest.raises(RuntimeError):
        step.run()
    step.run_alone()
    assert sorted(results) == [0, 4, 8, 12, 16]
    assert not step.run()
