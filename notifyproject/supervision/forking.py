"""Forks programs from this process. Its loaded code is in memory once, for all of them.

A child must share nothing that changes. So its parent opens no connection and starts no thread, and
the child drops what the parent has for itself: docs/decisions/0055-one-parent.md.
"""

import atexit
import ctypes
import os
import runpy
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, cast

IS_SAFE = sys.platform == "linux"
"""Elsewhere, libraries of the system start threads by themselves."""
POLL_SECONDS = 0.02
FAILED = 1
_PR_SET_PDEATHSIG, _PR_SET_NAME = 1, 15
_THREADS = Path("/proc/self/task")
_HANDLED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class UnsafeForkError(RuntimeError):
    """A process has threads, which its child would lack. The message has their names."""


class ForkedProcess:
    """A forked child, with the part of ``subprocess.Popen`` that a supervisor uses."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        """Return the exit code, negative for a signal; None while the child runs."""
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        """Return the exit code once the child has ended. Raises subprocess.TimeoutExpired."""
        deadline = time.monotonic() + (float("inf") if timeout is None else timeout)
        while (code := self.poll()) is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired("fork", timeout or 0)
            time.sleep(POLL_SECONDS)
        return code

    def terminate(self) -> None:
        """Send SIGTERM, unless the child has ended."""
        if self.poll() is None:
            os.kill(self.pid, signal.SIGTERM)


def run_command(command: Sequence[str]) -> None:
    """Run ``python -m module argument …`` in this process, with what is loaded."""
    _python, _option, module, *arguments = command
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def fork(
    main: Callable[[], None], *, name: str, output: int | None, release: Callable[[], None]
) -> ForkedProcess:
    """Run ``main`` in a child, in a session of its own, until it ends with its parent.

    ``output`` is the child's standard output and error, if not this process's. ``release`` closes
    there what this process has open. Raises UnsafeForkError.
    """
    _refuse_threads()
    sys.stdout.flush()
    sys.stderr.flush()
    parent = os.getpid()
    # A signal that came before the child has dropped the handlers would be lost in a copy of them.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, _HANDLED)
    try:
        pid = os.fork()
        if pid == 0:
            _live(main, parent=parent, name=name, output=output, release=release, mask=mask)
        return ForkedProcess(pid)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def die_with_parent() -> None:
    """Have the kernel stop this process when its parent ends (Linux only). For ``preexec_fn``."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)


def describe_exit(code: int) -> str:
    """Describe the exit code of a process."""
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def _refuse_threads() -> None:
    """Locks that another thread holds would stay locked in a child.

    The kernel also knows the threads of libraries.
    """
    count = len(list(_THREADS.iterdir())) if _THREADS.exists() else threading.active_count()
    if count > 1:
        names = ", ".join(thread.name for thread in threading.enumerate())
        raise UnsafeForkError(f"This process has {count} threads: {names}.")


def _live(
    main: Callable[[], None],
    *,
    parent: int,
    name: str,
    output: int | None,
    release: Callable[[], None],
    mask: set[int | signal.Signals],
) -> NoReturn:
    """Run the child and end it. It never returns to the frames of its parent."""
    status = FAILED
    try:
        os.setsid()
        die_with_parent()
        if os.getppid() != parent:
            # It ended before the kernel knew that the child goes with it.
            os._exit(FAILED)
        _show_name(name)
        _drop_handlers()
        _redirect(output)
        release()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = _run(main)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(status)


def _run(main: Callable[[], None]) -> int:
    """Run the child as Python runs a program, to the end of its threads; return its status."""
    status = 0
    try:
        main()
    except SystemExit as end:
        if end.code is not None and not isinstance(end.code, int):
            sys.stderr.write(f"{end.code}\n")
        status = end.code if isinstance(end.code, int) else FAILED if end.code else 0
    except BaseException:
        traceback.print_exc()
        status = FAILED
    # As multiprocessing does at the end of a child, and Python at its own.
    cast("Any", threading)._shutdown()
    atexit._run_exitfuncs()
    return status


def _drop_handlers() -> None:
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals():
        # Ignored signals stay ignored, as across an exec.
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _redirect(output: int | None) -> None:
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    if output is not None:
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
    # As with PYTHONUNBUFFERED, each line is written at once.
    cast("Any", sys.stdout).reconfigure(line_buffering=True)


def _show_name(name: str) -> None:
    """Name the process, as ``ps`` and ``top`` show it: its command line is that of its parent."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_NAME, name.encode())
