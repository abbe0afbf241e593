"""Tables of cases that one test goes through.

Pytest takes several milliseconds for a test, with its fixtures and the traffic between processes,
and each process collects it. A case of a pure function takes microseconds.
"""

import functools
import inspect
import itertools
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

Test = Callable[..., None]
Row = dict[str, Any]
Cases = Iterable[Any] | Callable[[], Iterable[Any]]
LONGEST = 1_000
"""Characters of a case and of its failure in the report."""


def each_case(names: str, cases: Cases, *, at_once: bool = False) -> Callable[[Test], Test]:
    """Call a test with each case, and report every case that fails.

    It takes the place of ``pytest.mark.parametrize`` where a case leaves nothing behind: its
    fixtures are the same for all cases. Several of them give every combination. Cases that take
    long to find come from a function, which the test calls. Cases that each wait for a time limit
    run ``at_once``, in threads.
    """
    keys = [name.strip() for name in names.split(",")]

    def decorate(test: Test) -> Test:
        body, inner = getattr(test, "tables", (test, []))
        tables = [(keys, cases), *inner]

        @functools.wraps(body)
        def run(*instance: Any, **fixtures: Any) -> None:
            __tracebackhide__ = True
            rows = list(_rows(tables))
            call = functools.partial(_failure, functools.partial(body, *instance, **fixtures))
            with ThreadPoolExecutor(len(rows) if at_once else 1) as threads:
                outcomes = list((threads.map if at_once else map)(call, rows))
            failures = [
                (row, failure)
                for row, failure in zip(rows, outcomes, strict=True)
                if failure is not None
            ]
            if failures:
                first = failures[0][1]
                raise AssertionError(_in_words(failures, of=len(rows))) from first

        known = {key for named, _ in tables for key in named}
        parameters = inspect.signature(body).parameters
        fixtures = [parameter for name, parameter in parameters.items() if name not in known]
        vars(run).update(__signature__=inspect.Signature(fixtures), tables=(body, tables))
        return run

    return decorate


def _failure(body: Test, row: Row) -> BaseException | None:
    try:
        body(**row)
    except (Exception, pytest.fail.Exception) as failure:
        return failure
    return None


def _rows(tables: list[tuple[list[str], Cases]]) -> Iterator[Row]:
    columns = [list(cases if isinstance(cases, Iterable) else cases()) for _, cases in tables]
    assert all(columns), "a table without cases"
    for combined in itertools.product(*columns):
        row: Row = {}
        for (keys, _), case in zip(tables, combined, strict=True):
            row |= zip(keys, case if len(keys) > 1 else (case,), strict=True)
        yield row


def _in_words(failures: list[tuple[Row, BaseException]], *, of: int) -> str:
    lines = [f"{len(failures)} of {of} cases failed:"]
    for row, failure in failures:
        case = ", ".join(f"{name}={value!r}" for name, value in row.items())
        lines.append(f"- {case[:LONGEST]}\n  {type(failure).__name__}: {failure!s:.{LONGEST}}")
    return "\n".join(lines)
