"""Programs of the service as processes: start, kill, freeze, and stop them, each with a log."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from notifyproject.settings.environment import BASE_DIR
from notifyproject.supervision.forking import die_with_parent

START_SECONDS = 180.0
POLL_SECONDS = 0.05
STOP_SECONDS = 40.0


class ScenarioError(RuntimeError):
    """Something did not happen in time. The message ends with the log, if there is one."""


@dataclass(kw_only=True)
class Program:
    """A program with a log. Start it from the main thread: it is killed when that thread ends."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str]
    log: Path
    folder: Path = BASE_DIR
    """The working directory: that of the service's code."""
    inherited: tuple[int, ...] = ()
    """File descriptors that the program inherits."""
    ready_text: str = ""
    """The log text that shows that the program is ready; empty if it logs none."""
    is_usable: Callable[[], bool] = lambda: True
    process: subprocess.Popen[bytes] | None = field(default=None, init=False)
    _log_offset: int = field(default=0, init=False)

    @property
    def pid(self) -> int:
        """The process ID. Raises ScenarioError if the program was never started."""
        if self.process is None:
            raise ScenarioError(f"{self.name} was not started")
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process is not None and self.process.poll() is None

    @property
    def is_ready(self) -> bool:
        """Whether the process runs, has logged ``ready_text``, and is usable."""
        return self.is_alive and self.has_logged(self.ready_text) and self.is_usable()

    def has_logged(self, text: str) -> bool:
        """Return whether the log since the start contains a text."""
        return not text or self.count_logged(text) > 0

    def count_logged(self, text: str) -> int:
        """Count the occurrences of a text in the log since the start."""
        with self.log.open("rb") as log:
            log.seek(self._log_offset)
            return log.read().count(text.encode())

    def start(self, **changes: str) -> None:
        """Start the program; ``changes`` are environment variables for this run only."""
        with self.log.open("ab") as output:
            self._log_offset = output.tell()
            self.process = subprocess.Popen(
                self.command,
                cwd=self.folder,
                env={**os.environ, **self.environment, **changes},
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                # A process group of its own: a kill reaches the children, and Ctrl-C reaches none.
                start_new_session=True,
                preexec_fn=die_with_parent,
                pass_fds=self.inherited,
            )

    def wait_ready(self, *, timeout: float = START_SECONDS) -> None:
        """Wait until the program is ready. Raises ScenarioError after the timeout or its end."""
        deadline = time.monotonic() + timeout
        while not self.is_ready:
            if not self.is_alive or time.monotonic() > deadline:
                what = "is not ready" if self.is_alive else "ended"
                log_tail = self.log.read_text(errors="replace").splitlines()[-20:]
                raise ScenarioError("\n".join([f"{self.name} {what}", *log_tail]))
            time.sleep(POLL_SECONDS)

    def wait_ended(self, *, timeout: float) -> None:
        """Wait until the program has ended by itself. Raises ScenarioError after the timeout."""
        wait_until(lambda: not self.is_alive, timeout=timeout, what=f"{self.name} is still running")

    def kill(self) -> None:
        """Kill the program and its children, as a power failure would."""
        self._signal(signal.SIGKILL)
        if self.process is not None:
            self.process.wait()

    def resume(self) -> None:
        """Resume a stopped program (SIGCONT)."""
        self._signal(signal.SIGCONT)

    def terminate(self) -> float | None:
        """Stop the program with SIGTERM; return the seconds, or None if it had to be killed."""
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

    @contextmanager
    def running(self, *, timeout: float = START_SECONDS) -> Iterator[None]:
        """Run the program during the block, which begins when the program is ready."""
        self.start()
        try:
            self.wait_ready(timeout=timeout)
            yield
        finally:
            self.terminate()

    @property
    def is_stopped(self) -> bool:
        """Whether the process is stopped (SIGSTOP)."""
        return _stat(self.pid)[0] in "Tt"

    def children(self) -> list[int]:
        """Return the IDs of the program's running child processes."""
        path = Path(f"/proc/{self.pid}/task/{self.pid}/children")
        return [int(child) for child in path.read_text().split()] if path.exists() else []

    def _signal(self, number: int) -> None:
        if self.is_alive:
            os.killpg(self.pid, number)


def worker_command(name: str, *options: str) -> list[str]:
    """Return the command of a Celery worker, as the stack starts it."""
    return [
        sys.executable,
        "-m",
        "celery",
        "-q",
        "-A",
        "notifyproject",
        "worker",
        "--hostname",
        f"{name}@%h",
        "--without-gossip",
        "--without-mingle",
        "--without-heartbeat",
        *options,
    ]


def web_command(
    application: str, address: str, *, processes: int, options: Sequence[str]
) -> list[str]:
    """Return the gunicorn command for ``processes`` processes of eight threads."""
    return [
        sys.executable,
        "-m",
        "gunicorn",
        application,
        "--bind",
        address,
        "--worker-class",
        "notifyproject.serving.worker.WebWorker",
        "--workers",
        str(processes),
        "--threads",
        "8",
        *options,
    ]


def wait_until(
    condition: Callable[[], object], *, timeout: float, what: str, poll: float = POLL_SECONDS
) -> None:
    """Wait until a condition holds. Raises ScenarioError with ``what`` after the timeout."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            raise ScenarioError(what)
        time.sleep(poll)


@dataclass(frozen=True, slots=True)
class CPUTimes:
    """The machine's CPU time since its start, in ticks: used, and stolen by the hypervisor."""

    used: int
    stolen: int

    def stolen_share_since(self, earlier: "CPUTimes") -> float:
        """Return which share of the CPU time that was wanted since then was stolen."""
        used, stolen = self.used - earlier.used, self.stolen - earlier.stolen
        return stolen / max(used + stolen, 1)


def cpu_times() -> CPUTimes:
    """Return the machine's CPU times; see proc(5) on /proc/stat."""
    fields = Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, _idle, _iowait, irq, softirq, stolen = map(int, fields)
    return CPUTimes(user + nice + system + irq + softirq, stolen)


def cpu_seconds(*pids: int) -> float:
    """Return the sum of the user and system CPU time of processes, in seconds."""
    ticks = sum(int(field) for pid in pids for field in _stat(pid)[11:13])
    return ticks / os.sysconf("SC_CLK_TCK")


def _stat(pid: int) -> list[str]:
    """Return the fields of ``/proc/PID/stat`` after the process name, the state first."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process in MiB."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, value = line.partition(":")
        if name == "VmRSS":
            return int(value.split()[0]) / 1024
    raise RuntimeError(f"process {pid} has no memory any more")
