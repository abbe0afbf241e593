"""How a forked child begins and ends, each case in a process of its own."""

import subprocess
import sys

from notifyproject.settings.environment import BASE_DIR, is_alive
from tests.support.tables import each_case
from tests.support.waiting import LIMIT, until

PARENT = """
import os, signal, sys, threading, time
from functools import partial
from notifyproject.supervision import forking
def fork(main, **options):
    found = {"name": "child", "output": None, "release": lambda: None, **options}
    return forking.fork(main, **found)
"""


def run(code: str) -> str:
    command = [sys.executable, "-c", PARENT + code]
    done = subprocess.run(
        command, cwd=BASE_DIR, capture_output=True, text=True, timeout=LIMIT, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@each_case(
    "ends, expected",
    [
        ("pass", "0"),
        ("sys.exit()", "0"),
        ("sys.exit(3)", "3"),
        ("sys.exit('no such file')", "no such file 1"),
        ("os.kill(os.getpid(), signal.SIGKILL)", "-9"),
    ],
)
def test_exit_code_is_that_of_a_program(ends: str, expected: str) -> None:
    found = run(f"def main():\n    {ends}\nprint(fork(main).wait(60))")
    assert sorted(found.split()) == sorted(expected.split())


def test_failure_of_a_child_is_shown_and_never_reaches_its_parents_frames() -> None:
    code = """
def main():
    raise ValueError("no such type")
try:
    print("code", fork(main).wait(60))
finally:
    print("cleaned up")
"""
    found = run(code)
    assert "ValueError: no such type" in found
    assert "code 1" in found
    assert found.count("cleaned up") == 1


def test_process_with_a_thread_does_not_fork() -> None:
    """A lock that the thread holds would stay locked in the child (DataDog/dd-trace-py#18900)."""
    code = """
threading.Thread(target=time.sleep, args=[60], name="exporter", daemon=True).start()
try:
    fork(lambda: print("forked"))
except forking.UnsafeForkError as error:
    print(error)
"""
    assert run(code) == "This process has 2 threads: MainThread, exporter.\n"


def test_signal_that_comes_as_a_child_begins_ends_the_child() -> None:
    """The handlers of its parent would take it in the child, and forget it."""
    code = """
signal.signal(signal.SIGTERM, lambda *_: print("asked to stop"))
def release():
    os.kill(os.getpid(), signal.SIGTERM)
print(fork(partial(time.sleep, 60), release=release).wait(60))
"""
    assert run(code) == "-15\n"


def test_child_ends_with_its_parent() -> None:
    code = """
child = fork(partial(time.sleep, 60))
print(child.pid, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""
    command = [sys.executable, "-c", PARENT + code]
    with subprocess.Popen(command, cwd=BASE_DIR, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        pid = int(parent.stdout.readline())
    until(lambda: not is_alive(pid))


def test_wait_times_out() -> None:
    code = """
import subprocess
child = fork(partial(time.sleep, 60))
try:
    child.wait(0.01)
except subprocess.TimeoutExpired:
    child.terminate()
    print(child.wait(60), child.poll())
"""
    assert run(code) == "-15 -15\n"
