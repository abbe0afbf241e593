"""Programs of ours as processes: started, killed, frozen and ended, each with a log."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR
from notifyproject.stack.servers import die_with_parent

START_SECONDS = 180.0
POLL_SECONDS = 0.05
STOP_SECONDS = 40.0


class ScenarioError(RuntimeError):
    """Something did not happen in time. The message says what, and ends with the log if any."""


@dataclass(kw_only=True)
class Program:
    """One program; start it from the main thread, as the kernel ends it with its starter."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    ready_text: str = ""
    """What it writes to its log when it is ready; empty if it says nothing."""
    is_usable: Callable[[], bool] = lambda: True
    """Whether it can be used, beyond what it says."""
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log_offset: int = field(default=0, init=False)

    @property
    def pid(self) -> int:
        """The process's id; raises Stuck if it was never started."""
        if self.process is None:
            raise ScenarioError(f"{self.name} was not started")
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether it runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether it runs, has said so, and can be used."""
        return self.is_alive and self.has_logged(self.ready_text) and self.is_usable()

    def has_logged(self, text: str) -> bool:
        """Return whether it has written these words to its log since it was started."""
        return not text or self.count_logged(text) > 0

    def count_logged(self, text: str) -> int:
        """Return how often it has written these words to its log since it was started."""
        with self.log.open("rb") as log:
            log.seek(self._log_offset)
            return log.read().count(text.encode())

    def start(self, **changes: str) -> None:
        """Start it, with these variables changed for this once."""
        with self.log.open("ab") as output:
            self._log_offset = output.tell()
            self.process = subprocess.Popen(
                self.command,
                cwd=BASE_DIR,
                env={**os.environ, **self.environment, **changes},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A group of its own: what it starts is killed with it.
                start_new_session=True,
                preexec_fn=die_with_parent,
            )

    def wait_ready(self, *, timeout: float = START_SECONDS) -> None:
        """Wait until it has been ready once; raises Stuck."""
        deadline = time.monotonic() + timeout
        while not self.is_ready:
            if not self.is_alive or time.monotonic() > deadline:
                what = "is not ready" if self.is_alive else "ended"
                raise ScenarioError(f"{self.name} {what}\n{self._log_tail()}")
            time.sleep(POLL_SECONDS)

    def wait_ended(self, *, timeout: float) -> None:
        """Wait until it has ended by itself; raises Stuck."""
        wait_until(lambda: not self.is_alive, timeout=timeout, what=f"{self.name} is still running")

    def kill(self) -> None:
        """End it and what it has started at once, as a power cut would."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def freeze(self) -> None:
        """Stop it where it is; nobody is told."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        self._signal(signal.SIGCONT)

    def terminate(self) -> float | None:
        """Ask it to end and return the seconds that took; None if it had to be killed."""
        if self.process is None:
            return 0.0
        started = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return None
        return time.monotonic() - started

    def children(self) -> list[int]:
        """Return the ids of the processes it has started and that still run."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(child) for child in path.read_text().split()] if path.exists() else []

    def _signal(self, number: int) -> None:
        if self.is_alive:
            os.killpg(self.pid, number)

    def _log_tail(self) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-20:])


def wait_until(
    condition: Callable[[], object], *, timeout: float, what: str, poll: float = POLL_SECONDS
) -> None:
    """Wait until a condition holds; raises Stuck with ``what`` when it does not in time."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise ScenarioError(what)
        time.sleep(poll)
