"""A SendGrid with a chosen latency and chosen limits, which logs its load and the arrivals.

``python -m bench.load.sink PORT FOLDER LIMITS`` runs it. It answers 202, or 429 above a limit.
"""

import asyncio
import json
import math
import re
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TextIO, cast

import msgspec

from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server

BACKLOG = 4_096
SAMPLE_SECONDS = 0.25
LENGTH = re.compile(rb"\r\ncontent-length: (\d+)", re.IGNORECASE)
TIMED_ADDRESS = re.compile(rb'"(\w+)\.(\d+)\.\w+@example\.com"')
ACCEPTED = b"HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\nX-Message-Id: %b\r\n\r\n"
REFUSED = b"HTTP/1.1 429 Too Many Requests\r\nContent-Length: 0\r\n%b\r\n"
RATE_LIMITED = b"X-RateLimit-Reset: %d\r\nRetry-After: %d\r\n"


def timed_address(kind: str, *, due_at: float, number: object) -> str:
    """Return a mail's address that tells the sink its kind and when it is due, in Unix time."""
    return f"{kind}.{round(due_at * 1000)}.{number}@example.com"


@dataclass(frozen=True, kw_only=True)
class Limits:
    """The latency of the provider over time, and what it refuses."""

    latencies: Sequence[tuple[float, float]] = ((0.0, 0.0),)
    """From which second after the first request the latency applies, and its seconds."""
    per_second: int | None = None
    """Requests accepted in each second; others get a 429 that says when it ends."""
    concurrent: int | None = None
    """Requests at once; others get a 429 without Retry-After."""

    def latency(self, elapsed: float) -> float:
        """Return the latency ``elapsed`` seconds after the first request."""
        return [seconds for start, seconds in self.latencies if start <= elapsed][-1]


@dataclass(slots=True)
class Admission:
    """Decides which requests are accepted. Times are in seconds."""

    limits: Limits
    in_flight: int = 0
    _second: int = -1
    _count: int = 0

    def refuse(self, now: float) -> bytes | None:
        """Return the headers of the refusal of a request, or None and count it as accepted."""
        if self.limits.concurrent is not None and self.in_flight >= self.limits.concurrent:
            return b""
        if self.limits.per_second is not None:
            if int(now) != self._second:
                self._second, self._count = int(now), 0
            if self._count >= self.limits.per_second:
                # As SendGrid does: when the period ends, in Unix time, and in how many seconds.
                end = self._second + 1
                return RATE_LIMITED % (end, math.ceil(end - now))
            self._count += 1
        self.in_flight += 1
        return None


@dataclass(slots=True)
class Sample:
    """The load during SAMPLE_SECONDS, which end ``at`` a Unix time."""

    at: float = 0.0
    in_flight: int = 0
    """The most requests at once."""
    accepted: int = 0
    refused: int = 0
    busy: float = 0.0
    """Seconds that the accepted requests took, together."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """An accepted mail with a timed address. Times are in Unix seconds."""

    kind: str
    due_at: float
    at: float

    @property
    def wait(self) -> float:
        """Seconds from when the mail was due to its arrival."""
        return self.at - self.due_at


@dataclass(frozen=True, kw_only=True)
class LoadSink:
    """The sink as a program of a benchmark."""

    folder: Path
    limits: Limits = field(default_factory=Limits)
    port: int = field(default_factory=servers.free_port)

    @property
    def url(self) -> str:
        """The URL of the sink."""
        return f"http://{HOST}:{self.port}"

    def server(self) -> Server:
        """Return the server, not started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        options = (str(self.port), str(self.folder), json.dumps(asdict(self.limits)))
        return Server(
            name="load-sink",
            command=[sys.executable, "-m", "bench.load.sink", *options],
            data_dir=self.folder,
            port=self.port,
            is_ready=lambda: not servers.is_free(self.port),
        )

    @contextmanager
    def running(self) -> Iterator["LoadSink"]:
        """Run the sink during the block."""
        server = self.server()
        server.start()
        try:
            yield self
        finally:
            server.stop()

    def samples(self) -> list[Sample]:
        """Return the samples so far, from the first request on."""
        lines = (self.folder / "samples.jsonl").read_text().splitlines()
        return [Sample(**json.loads(line)) for line in lines]

    def arrivals(self) -> list[Arrival]:
        """Return the arrivals of timed addresses so far."""
        return self.arrival_reader().read_new()

    def arrival_reader(self) -> "ArrivalReader":
        """Return a reader that begins with the first arrival."""
        return ArrivalReader(self.folder / "arrivals.txt")

    def count(self, kind: str) -> int:
        """Return the number of arrivals of a kind. Cheap, because it is called beside the load."""
        lines = b"\n" + (self.folder / "arrivals.txt").read_bytes()
        return lines.count(f"\n{kind} ".encode())


@dataclass(slots=True)
class ArrivalReader:
    """Reads the arrivals while they come, each once."""

    path: Path
    _offset: int = 0

    def read_new(self) -> list[Arrival]:
        """Return the arrivals of timed addresses since the last call."""
        with self.path.open("rb") as log:
            log.seek(self._offset)
            found = log.read()
        # The last line may be incomplete.
        complete = found[: found.rfind(b"\n") + 1]
        self._offset += len(complete)
        rows = map(str.split, complete.decode().splitlines())
        return [Arrival(kind, int(due) / 1000, float(at)) for kind, due, at in rows]


class _Sink:
    """The state of a running sink."""

    def __init__(self, limits: Limits, *, samples: TextIO, arrivals: TextIO) -> None:
        self.admission = Admission(limits)
        self.sample = Sample()
        self._samples = samples
        self._arrivals = arrivals
        self._began_at: float | None = None

    def receive(self, body: bytes) -> tuple[float, bytes]:
        """Count a request; return the delay of its response, and the response."""
        now = time.time()
        if self._began_at is None:
            self._began_at = now
        headers = self.admission.refuse(now)
        if headers is not None:
            self.sample.refused += 1
            return 0.0, REFUSED % headers
        self.sample.in_flight = max(self.sample.in_flight, self.admission.in_flight)
        # Equal mails share a request.
        for found in TIMED_ADDRESS.finditer(body):
            self._arrivals.write(f"{found[1].decode()} {found[2].decode()} {now:.3f}\n")
        latency = self.admission.limits.latency(now - self._began_at)
        return latency, ACCEPTED % secrets.token_hex(11).encode()

    def end(self, began_at: float) -> None:
        """Count the response of an accepted request, which began at a monotonic time."""
        self.admission.in_flight -= 1
        self.sample.accepted += 1
        self.sample.busy += time.monotonic() - began_at

    async def log_samples(self) -> None:
        """Write a sample every SAMPLE_SECONDS from the first request on."""
        while True:
            await asyncio.sleep(SAMPLE_SECONDS)
            if self._began_at is None:
                continue
            self.sample.at = time.time()
            self._samples.write(json.dumps(asdict(self.sample)) + "\n")
            self.sample = Sample(in_flight=self.admission.in_flight)
            self._samples.flush()
            self._arrivals.flush()


class _Connection(asyncio.Protocol):
    """A connection to the sink; requests have a Content-Length."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink
        self._received = b""
        self._transport: asyncio.WriteTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.WriteTransport", transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            found = LENGTH.search(self._received, 0, end)
            size = end + 4 + (int(found[1]) if found else 0)
            if len(self._received) < size:
                return
            body, self._received = self._received[end:size], self._received[size:]
            delay, response = self._sink.receive(body)
            if response.startswith(b"HTTP/1.1 202"):
                loop = asyncio.get_running_loop()
                loop.call_later(delay, self._answer, response, time.monotonic())
            else:
                self._write(response)

    def _answer(self, response: bytes, began_at: float) -> None:
        self._sink.end(began_at)
        self._write(response)

    def _write(self, response: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(response)


async def _serve(port: int, folder: Path, limits: Limits) -> None:
    with (
        (folder / "samples.jsonl").open("w") as samples,
        (folder / "arrivals.txt").open("w") as arrivals,
    ):
        sink = _Sink(limits, samples=samples, arrivals=arrivals)
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _Connection(sink), HOST, port, backlog=BACKLOG)
        async with server, asyncio.TaskGroup() as tasks:
            tasks.create_task(sink.log_samples())
            await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(
        _serve(int(sys.argv[1]), Path(sys.argv[2]), msgspec.json.decode(sys.argv[3], type=Limits))
    )
