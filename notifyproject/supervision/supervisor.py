"""Supervisor: starts programs, restarts them, and stops them gracefully.

honcho stops all programs when one ends. Here a killed worker restarts, as on a server.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial

from ..settings.environment import BASE_DIR
from . import forking
from .forking import ForkedProcess, describe_exit, die_with_parent
from .output import Output

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FIRST_RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""Uptime after which a program that ends is restarted at once."""
POLL_SECONDS = 0.1
FAILED_STARTS = 2
"""Consecutive failed starts of a program that end the supervisor."""
LAST_SECONDS = 3.0
"""Seconds to stop for the programs that others need."""
Process = subprocess.Popen[bytes] | ForkedProcess


class ProgramFailedError(RuntimeError):
    """A program failed to start several times. The message has the last lines of its output."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to run."""

    name: str
    command: Sequence[str]
    is_forked: bool = False
    """Whether this process forks it: a command ``python -m …`` whose code is loaded here."""
    stop_last: bool = False


@dataclass(kw_only=True)
class _RunningProgram:
    program: Program
    process: Process
    started_at: float = field(default_factory=time.monotonic)
    restarts: int = 0
    restart_at: float | None = None
    failed_starts: int = 0
    has_been_steady: bool = False


class Supervisor:
    """Starts programs, restarts them, and stops them.

    ``release`` closes in a forked child what this process has open beside its output.
    """

    def __init__(
        self,
        *,
        output: Output,
        stop_seconds: float,
        release: Callable[[], None] = lambda: None,
    ) -> None:
        self._output = output
        self._stop_seconds = stop_seconds
        self._release = release
        self._running: list[_RunningProgram] = []
        self._is_shutting_down = False

    def start(self, program: Program) -> Process:
        """Start a program, and restart it when it ends."""
        running = _RunningProgram(program=program, process=self.launch(program))
        self._running.append(running)
        return running.process

    def launch(self, program: Program, *, is_labelled: bool = True) -> Process:
        """Start a program once, with its output labelled or as it is."""
        if not is_labelled:
            return self._create(program, None)
        with self._output.open(program.name) as output:
            return self._create(program, output)

    def run_once(self, programs: Sequence[Program]) -> None:
        """Run programs at once, each to its end. Raises ProgramFailedError for one that fails."""
        launched = [(program, self.launch(program)) for program in programs]
        try:
            for program, process in launched:
                while (code := process.poll()) is None:
                    self._output.pump(forking.POLL_SECONDS)
                if code:
                    raise ProgramFailedError(
                        f"{program.name} failed ({describe_exit(code)})."
                        f"{indent(self._output.last_lines(program.name))}"
                    )
        finally:
            for _, process in launched:
                if process.poll() is None:
                    _kill_group(process)

    def last_lines(self, name: str) -> list[str]:
        """Return the last output lines of a program."""
        return self._output.last_lines(name)

    def run(
        self,
        *,
        on_tick: Callable[[], None] = lambda: None,
        before_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Restart programs until a signal or :meth:`request_stop`. Raises ProgramFailedError."""
        for number in SIGNALS:
            signal.signal(number, lambda *_: self.request_stop())
        try:
            while not self._is_shutting_down:
                self._output.pump(POLL_SECONDS)
                on_tick()
                for running in self._running:
                    self._restart_if_ended(running)
        finally:
            before_stop()
            self.stop()

    def request_stop(self) -> None:
        """Make :meth:`run` end."""
        self._is_shutting_down = True

    def stop(self) -> None:
        """Stop all programs, those last that others need."""
        self._is_shutting_down = True
        for stop_last, seconds in ((False, self._stop_seconds), (True, LAST_SECONDS)):
            self._terminate(
                [r.process for r in self._running if r.program.stop_last is stop_last], seconds
            )
        self._running.clear()
        self._output.close()

    def _create(self, program: Program, output: int | None) -> Process:
        if program.is_forked and forking.IS_SAFE:
            return forking.fork(
                partial(forking.run_command, program.command),
                name=program.name,
                output=output,
                release=self._release_in_child,
            )
        return subprocess.Popen(
            program.command,
            cwd=BASE_DIR,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            # Ctrl-C must reach only the supervisor, which stops the programs in order.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )

    def _release_in_child(self) -> None:
        os.chdir(BASE_DIR)
        self._running.clear()
        self._output.release()
        self._release()

    def _restart_if_ended(self, running: _RunningProgram) -> None:
        code, now = running.process.poll(), time.monotonic()
        if code is None:
            return
        if running.restart_at is None:
            if now - running.started_at > STEADY_SECONDS:
                running.restarts, running.has_been_steady = 0, True
            elif code > 0 and not running.has_been_steady:
                self._count_failed_start(running, code)
            wait = min(FIRST_RESTART_SECONDS * 2**running.restarts, MAX_RESTART_SECONDS)
            running.restart_at = now + wait
            name = running.program.name
            self._output.report_end(name, reason=describe_exit(code), seconds=wait)
        elif now >= running.restart_at:
            running.process = self.launch(running.program)
            running.started_at, running.restart_at = now, None
            running.restarts += 1

    def _count_failed_start(self, running: _RunningProgram, code: int) -> None:
        running.failed_starts += 1
        if running.failed_starts >= FAILED_STARTS:
            name = running.program.name
            raise ProgramFailedError(
                f"{name} failed {FAILED_STARTS} times as it started "
                f"({describe_exit(code)})."
                f"{indent(self.last_lines(name))}"
            )

    def _terminate(self, processes: Sequence[Process], seconds: float) -> None:
        for process in processes:
            process.terminate()
        deadline = time.monotonic() + seconds
        while None in [process.poll() for process in processes] and time.monotonic() < deadline:
            # A program that can't write can't end.
            self._output.pump(forking.POLL_SECONDS)
        # A program that ended may have left children.
        for process in processes:
            _kill_group(process)


def _kill_group(process: Process) -> None:
    if process.poll() is None:
        # It may have no group yet.
        os.kill(process.pid, signal.SIGKILL)
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def indent(lines: Sequence[str]) -> str:
    """Return indented lines for the end of a message."""
    return "".join(f"\n  {line}" for line in lines)
