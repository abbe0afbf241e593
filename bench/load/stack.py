"""The programs of ``make up`` for a benchmark, and mail that is posted to them at a steady rate."""

import json
import socket
import threading
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial

import urllib3

from notifyproject.stack import servers
from notifyproject.stack.running import Addresses, programs

from .. import environment, mail
from ..environment import Bench
from ..processes import Program
from .sink import timed_address

PATH = "/api/v1/notifications"
CRITICAL_PER_SECOND = 5
CRITICAL_SCOPE = "notifications:critical"
POSTING_THREADS = 16
READY_TEXTS = {name: f"{name}@{socket.gethostname()} ready" for name in ("worker", "urgent")}
PORT_OFFSETS = {"web": 0, "stream": 2}


@dataclass(frozen=True, kw_only=True)
class Stack:
    """The running programs."""

    programs: Mapping[str, Program]
    addresses: Addresses

    def pids(self) -> dict[str, int]:
        """Return the IDs of the processes that do the work, by name, gunicorn's parent included."""
        found: dict[str, int] = {}
        for name, program in self.programs.items():
            found[name] = program.pid
            children = program.children() if name in PORT_OFFSETS else []
            found |= {f"{name} {number}": pid for number, pid in enumerate(children, start=1)}
        return found


@contextmanager
def run_stack(bench: Bench, *names: str, **variables: str) -> Iterator[Stack]:
    """Run some programs of the stack, and stop them after the block."""
    addresses = Addresses(port=_free_ports())
    chosen = {one.name: one for one in programs(addresses, {}) if one.name in names}
    started = {}
    with ExitStack() as stack:
        for name in names:
            own = {**chosen[name].environment, **variables}
            one = environment.program(bench, name, chosen[name].command, own)
            one.ready_text = READY_TEXTS.get(name, "")
            if name in PORT_OFFSETS:
                one.is_usable = partial(_is_listening, addresses.port + PORT_OFFSETS[name])
            stack.enter_context(one.running())
            started[name] = one
        yield Stack(programs=started, addresses=addresses)


def _is_listening(port: int) -> bool:
    return not servers.is_free(port)


def _free_ports() -> int:
    """Return the first of three consecutive free ports."""
    while True:
        port = servers.free_port()
        if servers.is_free(port + 1) and servers.is_free(port + 2):
            return port


@dataclass(kw_only=True)
class SteadyPosts:
    """Posts ``per_second`` mails, ``batch`` in each request, from other threads in a block."""

    url: str
    """The base URL of the web."""
    key: str
    kind: str
    priority: str
    per_second: float
    batch: int = 1
    posted: int = field(default=0, init=False)
    took: list[float] = field(default_factory=list, init=False)
    """Seconds of each accepted POST."""
    errors: list[str] = field(default_factory=list, init=False)
    _stop: threading.Event = field(default_factory=threading.Event, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)

    def __enter__(self) -> "SteadyPosts":
        """Begin to post."""
        self._http = urllib3.PoolManager(maxsize=POSTING_THREADS, block=True, retries=False)
        self._callers = ThreadPoolExecutor(POSTING_THREADS)
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()
        self._callers.shutdown()
        self._http.clear()

    def body(self, number: int, *, at: float) -> dict[str, object]:
        """Return the body of a mail whose address tells the sink when it was posted."""
        recipient = {"email": timed_address(self.kind, due_at=at, number=number)}
        return {**mail.request_body(number), "recipient": recipient, "priority": self.priority}

    def _run(self) -> None:
        began, number = time.monotonic(), 0
        while not self._stop.is_set():
            self._callers.submit(self._post, number * self.batch)
            number += 1
            next_at = began + number * self.batch / self.per_second
            self._stop.wait(max(next_at - time.monotonic(), 0))

    def _post(self, first: int) -> None:
        at = time.time()
        numbers = range(first, first + self.batch)
        bodies = [self.body(number, at=at) for number in numbers]
        is_bulk = self.batch > 1
        path, body = (f"{PATH}/bulk", {"notifications": bodies}) if is_bulk else (PATH, bodies[0])
        headers = {
            "Authorization": f"Bearer {self.key}",
            "Content-Type": "application/json",
            "Idempotency-Key": f"{self.kind}-{first}-{at}",
        }
        try:
            answer = self._http.request(
                "POST", self.url + path, body=json.dumps(body), headers=headers, timeout=60
            )
            is_accepted = answer.status == (200 if is_bulk else 202)
            if is_accepted and is_bulk:
                is_accepted = answer.json()["accepted"] == self.batch
            problem = "" if is_accepted else f"{answer.status} {answer.data[:500]!r}"
        except urllib3.exceptions.HTTPError as error:
            problem = repr(error)
        with self._lock:
            if problem:
                self.errors.append(problem)
            else:
                self.posted += self.batch
                self.took.append(time.time() - at)
