"""Unused memory of a process goes back to the operating system."""

import subprocess
import sys

KEPT_TUPLES = """
import sys
from notifyproject.platform import memory
memory.freeze_gc()
first = sys.getallocatedblocks()
for _ in range(3_000):
    # Of a generator, so that it is resized, and not one of those that are kept.
    tuple(number for number in range(17))
grown = sys.getallocatedblocks()
memory.release()
print(grown - first, sys.getallocatedblocks() - first)
"""
BURST = """
from notifyproject.platform import memory
from notifyproject.platform.watchdog import memory_megabytes
burst = [bytes(4_000) for _ in range(20_000)]
kept = bytes(4_000)
del burst
before = memory_megabytes()
memory.release()
print(before - memory_megabytes())
"""
"""80 MB that are free again, below a block that is kept at the end of the heap."""
CYCLE = """
import gc, time, weakref
from notifyproject.platform import memory
class Node: pass
node = Node()
node.itself = node
seen = weakref.ref(node)
gc.disable()
del node
memory.RELEASE_SECONDS = 0.01
memory.start_releasing()
while seen() is not None:
    time.sleep(0.01)
"""

LOADS = """
import gc
from notifyproject.platform import memory
found = []
with memory.loading():
    loaded = [[] for _ in range(10_000)]
    with memory.loading():
        found.append(gc.isenabled())
    found.append(gc.isenabled())
found += [gc.isenabled(), gc.get_freeze_count() > 10_000]
print(*map(int, found))
"""
WEB = """
import threading
from gunicorn.workers.gthread import ThreadWorker
from notifyproject.serving.worker import WebWorker
ThreadWorker.init_process = lambda self: None
worker = WebWorker.__new__(WebWorker)
worker._max_connections = 8
worker.init_process()
print([thread.name for thread in threading.enumerate()].count("memory"))
"""


def output_of(program: str) -> list[float]:
    """Return the numbers that a program prints in a process of its own."""
    command = [sys.executable, "-c", program]
    found = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    return [float(number) for number in found.stdout.split()]


def test_tuples_that_python_keeps_for_reuse_are_freed() -> None:
    grown, left = output_of(KEPT_TUPLES)
    assert grown > 1_900
    assert left < 100


def test_memory_of_a_burst_is_returned() -> None:
    assert output_of(BURST)[0] > 50


def test_memory_is_released_regularly() -> None:
    assert output_of(CYCLE) == []


def test_no_garbage_is_looked_for_in_code_and_while_it_is_loaded() -> None:
    assert output_of(LOADS) == [False, False, True, True]


def test_each_web_process_releases_memory() -> None:
    """A thread of the arbiter would not be in the processes that it forks (gunicorn#1666)."""
    assert output_of(WEB) == [1]
