"""S10: thousands of inbox streams in one process, their events, and a restart."""

import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bson import ObjectId

from notifyproject.db.collections import collection
from notifyproject.stack import servers

from .. import environment, posting
from ..environment import Bench
from ..figures import Figure, Progress, at_most
from ..processes import Program, ScenarioError, cpu_seconds, resident_megabytes, wait_until
from .stack import Stack, SteadyPosts, run_stack
from .stream_clients import StreamLog, issue_tokens, read_file, subject, user
from .tables import percentile_of

EVENTS_PER_SECOND = 100
BATCH = 10
MAX_MEMORY = 400
MAX_WAIT = 1.0
MAX_RECONNECT = 30.0
OPEN_TIMEOUT = 120.0
LATE_SECONDS = 10.0
"""How long the last events may take."""
MEMORY_POLL = 0.5


@dataclass(kw_only=True)
class EventPosts(SteadyPosts):
    """Posts inbox items for one recipient after another."""

    users: int = 1

    def body(self, number: int, *, at: float) -> dict[str, object]:
        """Return an inbox item whose subject tells when it was posted."""
        return {
            "type": "transactional",
            "user_id": user(number % self.users),
            "channels": ["in_app"],
            "content": {"subject": subject(number, at=at), "body": "An item of the inbox."},
            "data": {},
        }


def measure_streams(
    bench: Bench, *, streams: int, seconds: float, log_progress: Progress
) -> Iterator[Figure]:
    """Measure the memory of the stream process, the time of events, and a restart."""
    key = posting.create_key("inbox:issue")
    folder = bench.fresh_folder("streams")
    tokens, log_file = folder / "tokens.txt", folder / "log.txt"
    tokens.write_text("\n".join(issue_tokens(streams, client_id=_client_id())))
    with (
        run_stack(bench, "web", "stream", INBOX_STREAMS=str(streams)) as stack,
        _run_clients(bench, stack, tokens=tokens, log_file=log_file),
    ):
        stream = stack.programs["stream"]
        began = time.monotonic()
        _wait_open(log_file, streams)
        log_progress(f"{streams:,} streams open after {time.monotonic() - began:.1f} s")
        posts = EventPosts(
            url=stack.addresses.web,
            key=key,
            kind="event",
            priority="normal",
            per_second=EVENTS_PER_SECOND,
            batch=BATCH,
            users=streams,
        )
        with posts:
            memory = _watch_memory(stream, seconds=seconds)
            restarted_at = time.time()
            stream.terminate()
            stream.start()
            stream.wait_ready()
            ready_after = time.time() - restarted_at
            _wait_open(log_file, streams)
            cpu = cpu_seconds(*stream.children())
            memory = max(memory, _watch_memory(stream, seconds=MEMORY_POLL))
        log_progress(f"restarted after {ready_after:.1f} s")
        if posts.errors:
            raise RuntimeError(posts.errors[0])
        try:
            what = "not all events arrived"
            wait_until(
                lambda: len(read_file(log_file).received) >= posts.posted,
                timeout=LATE_SECONDS,
                what=what,
                poll=1.0,
            )
        except ScenarioError:
            log_progress(what)
        log = read_file(log_file)
    steady = waits_before(log, restarted_at)
    yield Figure(
        key="S10 memory",
        label=f"the process of {streams:,} inbox streams, at most",
        unit="MB",
        ours=memory,
        goals=(at_most(MAX_MEMORY),),
    )
    for percent, goals in ((50, ()), (95, (at_most(MAX_WAIT),)), (99, ())):
        yield Figure(
            key=f"S10 p{percent}",
            label=f"POST → reader at {EVENTS_PER_SECOND}/s for {seconds:g} s, p{percent}",
            unit="s",
            ours=percentile_of(steady, percent),
            goals=goals,
        )
    yield Figure(
        key="S10 restart",
        label="all reconnected after a restart of the process",
        unit="s",
        ours=max(log.opened) - restarted_at,
        goals=(at_most(MAX_RECONNECT),),
        note=f"from SIGTERM; the new process was ready after {ready_after:.1f} s, and "
        f"used {cpu:.1f} s of CPU until all were open",
    )
    yield Figure(
        key="S10 missed",
        label="… events that never arrived",
        unit="",
        ours=posts.posted - len(log.received),
        goals=(at_most(0),),
        note=f"refused: {len(log.refusals)} openings",
    )


def waits_before(log: StreamLog, moment: float) -> Sequence[float]:
    """Return the waits of events that were sent, and could arrive, before a Unix time."""
    return [wait for sent_at, wait in log.waits if sent_at < moment - MAX_WAIT]


def _client_id() -> ObjectId:
    found = collection("api_clients").find_one({}, {"_id": 1})
    if found is None:
        raise RuntimeError("there is no API client")
    return ObjectId(found["_id"])


@contextmanager
def _run_clients(bench: Bench, stack: Stack, *, tokens: Path, log_file: Path) -> Iterator[None]:
    log_file.touch()
    port = stack.addresses.stream.rpartition(":")[2]
    command = [sys.executable, "-m", "bench.load.stream_clients", servers.HOST, port]
    clients = environment.program(bench, "clients", [*command, str(tokens), str(log_file)])
    with clients.running():
        yield


def _wait_open(log_file: Path, count: int) -> None:
    what = "the streams are not open"
    wait_until(
        lambda: read_file(log_file).open_count >= count, timeout=OPEN_TIMEOUT, what=what, poll=1
    )


def _watch_memory(stream: Program, *, seconds: float) -> float:
    """Return the most memory of the process that serves the streams."""
    until, largest = time.monotonic() + seconds, 0.0
    while time.monotonic() < until:
        largest = max(largest, *map(resident_megabytes, stream.children()))
        time.sleep(MEMORY_POLL)
    return largest
