"""The supervisor: one log, restarts, orderly shutdown."""

import signal
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from notifyproject.settings.environment import is_alive
from notifyproject.supervision.output import LabelledLog
from notifyproject.supervision.supervisor import SIGNALS, Program, ProgramFailedError, Supervisor
from tests.support.waiting import LIMIT, ticks


@pytest.fixture(autouse=True)
def _own_signals() -> Iterator[None]:
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.fixture
def pids(tmp_path: Path) -> Path:
    return tmp_path / "pids"


@pytest.fixture
def supervisor() -> Supervisor:
    return Supervisor(output=LabelledLog(is_coloured=False), stop_seconds=LIMIT)


def program(pids: Path, *, then: str) -> Program:
    """Return a program that records its pid, prints hello, and runs ``then``."""
    code = (
        "import os, time, pathlib\n"
        f"open({str(pids)!r}, 'a').write(f'{{os.getpid()}}\\n')\n"
        "print('hello', flush=True)\n"
        f"{then}\n"
    )
    return Program(name="one", command=[sys.executable, "-c", code])


def written(pids: Path) -> list[int]:
    return [int(line) for line in pids.read_text().split()] if pids.exists() else []


def until(holds: Callable[[], bool], supervisor: Supervisor) -> Callable[[], None]:
    """Return a function that stops the supervisor when a condition holds, or after LIMIT."""
    deadline = ticks() + LIMIT

    def tick() -> None:
        if holds() or ticks() > deadline:
            supervisor.request_stop()

    return tick


def test_before_stop_runs_while_programs_live(supervisor: Supervisor, pids: Path) -> None:
    alive: list[bool] = []
    supervisor.start(program(pids, then="time.sleep(60)"))
    supervisor.run(
        on_tick=until(lambda: bool(written(pids)), supervisor),
        before_stop=lambda: alive.extend(map(is_alive, written(pids))),
    )
    assert alive == [True]
    assert [is_alive(pid) for pid in written(pids)] == [False]


def test_ended_program_is_restarted(
    supervisor: Supervisor, pids: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    once = f"if len(open({str(pids)!r}).readlines()) == 1: raise SystemExit(3)\ntime.sleep(60)"
    supervisor.start(program(pids, then=once))
    supervisor.run(on_tick=until(lambda: len(written(pids)) > 1, supervisor))
    assert len(set(written(pids))) > 1
    assert "stack    | one ended (exit code 3); it starts again in" in capfd.readouterr().out


def test_output_is_prefixed_with_the_program_name(
    supervisor: Supervisor, pids: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    output: list[str] = []

    def has_printed() -> bool:
        output.append(capfd.readouterr().out)
        return "one      | hello" in "".join(output)

    supervisor.start(program(pids, then="time.sleep(60)"))
    supervisor.run(on_tick=until(has_printed, supervisor))
    assert has_printed()


def test_program_that_keeps_failing_ends_the_stack(supervisor: Supervisor, pids: Path) -> None:
    supervisor.start(program(pids, then="raise SystemExit('no such module')"))
    with pytest.raises(ProgramFailedError) as caught:
        supervisor.run(on_tick=until(lambda: len(written(pids)) > 2, supervisor))
    assert str(caught.value).startswith("one failed 2 times as it started (exit code 1)")
    assert "no such module" in str(caught.value)
    assert len(written(pids)) == 2


def test_killed_program_is_restarted_every_time(supervisor: Supervisor, pids: Path) -> None:
    supervisor.start(program(pids, then="os.kill(os.getpid(), 9)"))
    supervisor.run(on_tick=until(lambda: len(written(pids)) > 2, supervisor))
    assert len(set(written(pids))) > 2


def test_programs_that_run_once_are_waited_for(supervisor: Supervisor, pids: Path) -> None:
    supervisor.run_once([program(pids, then="time.sleep(0.1)")] * 2)
    assert len(written(pids)) == 2
    assert not any(map(is_alive, written(pids)))


def test_failure_of_one_that_runs_once_ends_the_others(supervisor: Supervisor, pids: Path) -> None:
    fails = program(pids, then="raise SystemExit('no such table')")
    other = replace(program(pids, then="time.sleep(60)"), name="other")
    with pytest.raises(ProgramFailedError) as caught:
        supervisor.run_once([fails, other])
    assert str(caught.value).startswith("one failed (exit code 1).")
    assert "no such table" in str(caught.value)
    assert not any(map(is_alive, written(pids)))


def test_last_words_of_a_stopped_program_are_shown(
    supervisor: Supervisor, pids: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """More than a pipe holds, which a program could not write if nobody read it until its end."""
    speaks = (
        "signal.signal(signal.SIGTERM, lambda *_: sys.exit(print(*['bye'] * 50_000, sep=chr(10))))"
    )
    then = f"import signal, sys\n{speaks}\nopen({str(pids)!r} + '.ready', 'w')\ntime.sleep(60)"
    supervisor.start(program(pids, then=then))
    supervisor.run(on_tick=until(Path(f"{pids}.ready").exists, supervisor))
    assert capfd.readouterr().out.count("| bye\n") == 50_000
