"""Supervisor of the local stack: one log, restarts, and a graceful shutdown.

honcho stops all programs when one ends. Here a killed worker restarts, as on a server.
"""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..settings.environment import BASE_DIR
from .servers import LOG_LINES, MAX_LOG_LINE, describe_exit, die_with_parent, indent

COLOURS = (36, 32, 33, 35, 34, 96, 92)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
FIRST_RESTART_SECONDS = 0.5
MAX_RESTART_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""Uptime after which a program that ends is restarted at once."""
POLL_SECONDS = 0.1
FAILED_STARTS = 2
"""Consecutive failed starts of a program that end the stack."""
RELAY_SECONDS = 1.0


class ProgramFailedError(RuntimeError):
    """A program failed to start several times. The message has the last lines of its output."""


@dataclass(frozen=True, kw_only=True)
class Program:
    """A program to run."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_last: bool = False


@dataclass(kw_only=True)
class _RunningProgram:
    program: Program
    colour: int
    process: subprocess.Popen[bytes] = field(init=False)
    relay: threading.Thread = field(init=False)
    output: deque[str] = field(default_factory=lambda: deque(maxlen=LOG_LINES))
    started_at: float = field(init=False)
    restarts: int = 0
    restart_at: float | None = None
    failed_starts: int = 0
    has_been_steady: bool = False


class Supervisor:
    """Starts programs, relays their output, restarts them, and stops them."""

    def __init__(self) -> None:
        self._running: list[_RunningProgram] = []
        self._colours = itertools.cycle(COLOURS)
        self._is_shutting_down = threading.Event()
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._width = 8
        self._print_lock = threading.Lock()

    def start(self, program: Program) -> subprocess.Popen[bytes]:
        """Start a program. Call from the main thread: the kernel stops children when it ends."""
        self._width = max(self._width, len(program.name))
        running = _RunningProgram(program=program, colour=next(self._colours))
        self._launch(running)
        self._running.append(running)
        return running.process

    def output_of(self, name: str) -> list[str]:
        """Return the last output lines of a program."""
        running = next(r for r in self._running if r.program.name == name)
        if running.process.poll() is not None:
            running.relay.join(RELAY_SECONDS)
        return list(running.output)

    def print_lines(self, text: str) -> None:
        """Print lines of the stack itself."""
        for line in text.splitlines() or [""]:
            self._print("stack", 37, line)

    def run(
        self,
        *,
        on_tick: Callable[[], None] = lambda: None,
        before_stop: Callable[[], None] = lambda: None,
    ) -> None:
        """Restart programs until a signal or :meth:`request_stop`. Raises ProgramFailedError."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, lambda *_: self.request_stop())
        try:
            while not self._is_shutting_down.wait(POLL_SECONDS):
                on_tick()
                for running in self._running:
                    self._restart_if_ended(running)
        finally:
            before_stop()
            self.stop()

    def request_stop(self) -> None:
        """Make :meth:`run` end."""
        self._is_shutting_down.set()

    def stop(self) -> None:
        """Stop all programs within 10 seconds, servers last."""
        self._is_shutting_down.set()
        self._terminate([r for r in self._running if not r.program.stop_last], timeout=6.0)
        self._terminate([r for r in self._running if r.program.stop_last], timeout=3.0)
        self._running.clear()

    def _launch(self, running: _RunningProgram) -> None:
        running.process = subprocess.Popen(
            running.program.command,
            cwd=BASE_DIR,
            env={**os.environ, **running.program.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C must reach only the supervisor, which stops the programs in order.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        running.started_at = time.monotonic()
        running.output.clear()
        running.relay = threading.Thread(
            target=self._relay, args=(running, running.process), daemon=True
        )
        running.relay.start()

    def _relay(self, running: _RunningProgram, process: subprocess.Popen[bytes]) -> None:
        for line in _lines(process):
            running.output.append(_ANSI.sub("", line)[:MAX_LOG_LINE])
            self._print(running.program.name, running.colour, line)

    def _print(self, name: str, colour: int, line: str) -> None:
        label = f"{name:<{self._width}} |"
        if self._coloured:
            text = f"\x1b[{colour}m{label}\x1b[0m {line}"
        else:
            text = f"{label} {_ANSI.sub('', line)}"
        with self._print_lock:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

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
            self.print_lines(
                f"{running.program.name} ended ({code}); it starts again in {wait:.0f} s"
            )
        elif now >= running.restart_at:
            self._launch(running)
            running.restart_at = None
            running.restarts += 1

    def _count_failed_start(self, running: _RunningProgram, code: int) -> None:
        running.failed_starts += 1
        if running.failed_starts >= FAILED_STARTS:
            name = running.program.name
            raise ProgramFailedError(
                f"{name} failed {FAILED_STARTS} times as it started "
                f"({describe_exit(code)})."
                f"{indent(self.output_of(name))}"
            )

    def _terminate(self, programs: Sequence[_RunningProgram], *, timeout: float) -> None:
        alive = [r.process for r in programs if r.process.poll() is None]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + timeout
        for process in alive:
            try:
                process.wait(max(deadline - time.monotonic(), 0.05))
            except subprocess.TimeoutExpired:
                _kill_group(process)
        # A program that ended may have left children.
        for running in programs:
            _kill_group(running.process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return
    process.wait()


def _lines(process: subprocess.Popen[bytes]) -> Iterator[str]:
    if process.stdout is None:
        return
    with process.stdout as output:
        for raw in output:
            yield raw.decode(errors="replace").rstrip("\n")
