"""Runs programs side by side: one log, restarts, an orderly end.

honcho does this too, but takes everything down when one program ends; here a worker that is killed
comes back, as it would on a server.
"""

import itertools
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import FrameType

from notifyproject.settings.environment import BASE_DIR

from .servers import die_with_parent

COLOURS = (36, 32, 33, 35, 34, 96, 92)
_ANSI = re.compile(r"\x1b\[[0-9;]*m")
FIRST_RESTART_SECONDS = 0.5
LONGEST_RESTART_SECONDS = 10.0
STEADY_SECONDS = 30.0
"""A program that ran this long is restarted at once when it ends."""
POLL_SECONDS = 0.1


@dataclass(frozen=True, kw_only=True)
class Program:
    """Something to run."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    stop_last: bool = False
    """Stopped when all others are gone: the servers the others need."""


@dataclass(kw_only=True)
class _Running:
    program: Program
    colour: int
    process: subprocess.Popen[bytes]
    started_at: float
    restarts: int = 0
    restart_at: float | None = None


class Supervisor:
    """Starts programs, shows what they say, restarts what ends, and stops them all."""

    def __init__(self) -> None:
        self._running: list[_Running] = []
        self._colours = itertools.cycle(COLOURS)
        self._stopping = threading.Event()
        self._coloured = sys.stdout.isatty() and "NO_COLOR" not in os.environ
        self._width = 8
        self._output = threading.Lock()

    def start(self, program: Program) -> None:
        """Start a program. Call it from the main thread: the kernel ends its children with it."""
        self._width = max(self._width, len(program.name))
        colour = next(self._colours)
        process = self._launch(program, colour)
        self._running.append(
            _Running(program=program, colour=colour, process=process, started_at=time.monotonic())
        )

    def say(self, text: str) -> None:
        """Print lines of our own, between those of the programs."""
        for line in text.splitlines() or [""]:
            self._print("stack", 37, line)

    def run(
        self,
        *,
        tick: Callable[[], None] = lambda: None,
        before_the_end: Callable[[], None] = lambda: None,
    ) -> None:
        """Watch over the programs until SIGINT, SIGTERM or :meth:`stop_soon`, then stop them."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._on_signal)
        try:
            while not self._stopping.wait(POLL_SECONDS):
                tick()
                for running in self._running:
                    self._look_after(running)
        finally:
            before_the_end()
            self.stop()

    def stop_soon(self) -> None:
        """Make :meth:`run` end."""
        self._stopping.set()

    @property
    def is_stopping(self) -> bool:
        """Whether the end has begun."""
        return self._stopping.is_set()

    def stop(self) -> None:
        """End every program within 10 seconds: first those that work, then the servers."""
        self._stopping.set()
        self._end([r for r in self._running if not r.program.stop_last], patience=6.0)
        self._end([r for r in self._running if r.program.stop_last], patience=3.0)
        self._running.clear()

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        self._stopping.set()

    def _launch(self, program: Program, colour: int) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            program.command,
            cwd=BASE_DIR,
            env={**os.environ, **program.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            # Ctrl-C reaches the supervisor alone, which stops the others in order.
            start_new_session=True,
            preexec_fn=die_with_parent,
        )
        threading.Thread(
            target=self._relay, args=(program.name, colour, process), daemon=True
        ).start()
        return process

    def _relay(self, name: str, colour: int, process: subprocess.Popen[bytes]) -> None:
        for line in _lines(process):
            self._print(name, colour, line)

    def _print(self, name: str, colour: int, line: str) -> None:
        label = f"{name:<{self._width}} |"
        if self._coloured:
            text = f"\x1b[{colour}m{label}\x1b[0m {line}"
        else:
            text = f"{label} {_ANSI.sub('', line)}"
        with self._output:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    def _look_after(self, running: _Running) -> None:
        """Start a program again if it has ended, later each time if it ends at once."""
        code, now = running.process.poll(), time.monotonic()
        if code is None:
            return
        if running.restart_at is None:
            if now - running.started_at > STEADY_SECONDS:
                running.restarts = 0
            wait = min(FIRST_RESTART_SECONDS * 2**running.restarts, LONGEST_RESTART_SECONDS)
            running.restart_at = now + wait
            self.say(f"{running.program.name} ended ({code}); it starts again in {wait:.0f} s")
        elif now >= running.restart_at:
            running.process = self._launch(running.program, running.colour)
            running.started_at, running.restart_at = now, None
            running.restarts += 1

    def _end(self, some: Sequence[_Running], *, patience: float) -> None:
        alive = [r.process for r in some if r.process.poll() is None]
        for process in alive:
            process.terminate()
        deadline = time.monotonic() + patience
        for process in alive:
            try:
                process.wait(max(deadline - time.monotonic(), 0.05))
            except subprocess.TimeoutExpired:
                _kill_group(process)
        # A program that had ended may have left children of its own.
        for running in some:
            _kill_group(running.process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Kill a program with all it has started; it leads a process group of its own."""
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
