"""The proxy restarts while a thousand inbox streams are open through it."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from ...cluster import Cluster
from ...cluster.plan import EDGE, PROXY_PORT
from ...processes import Program, wait_until
from ..findings import Findings, at_most, scenario
from ..installation import SCOPES
from ..load import in_app_body
from ..stream_clients import StreamLog, issue_tokens, read_file, subject, user
from .hosts import ALL, Fault, cluster, finish

OPEN_SECONDS = 120.0
RECONNECT_SECONDS = 30.0
LATE_SECONDS = 15.0
"""How long the last events may take."""


@dataclass(frozen=True, slots=True)
class Readers:
    """Clients of inbox streams, and what they logged."""

    count: int
    log_file: Path

    def log(self) -> StreamLog:
        """Return what the clients have logged so far."""
        return read_file(self.log_file)

    def wait_received(self, count: int) -> int:
        """Wait until ``count`` events have arrived, or are late; return how many haven't."""
        deadline = time.monotonic() + LATE_SECONDS
        while (missing := count - len(self.log().received)) > 0 and time.monotonic() < deadline:
            time.sleep(0.5)
        return missing

    def wait_open(self, *, since: float) -> float:
        """Wait until all streams were opened after a Unix time; return the seconds until then."""

        def are_open() -> bool:
            log = self.log()
            return log.open_count >= self.count and max(log.opened) > since

        wait_until(are_open, timeout=OPEN_SECONDS, what="the streams are not open", poll=0.5)
        return max(self.log().opened) - since


@contextmanager
def reading(running: Cluster, count: int) -> Iterator[Readers]:
    """Keep a stream open for each of ``count`` recipients."""
    client = running.database["api_clients"].find_one({"name": "chaos"})
    if client is None:
        raise RuntimeError("there is no API client")
    tokens, log_file = running.folder / "tokens.txt", running.folder / "streams.txt"
    tokens.write_text("\n".join(issue_tokens(count, client_id=client["_id"])))
    log_file.touch()
    program = Program(
        name="readers",
        command=[
            sys.executable,
            "-m",
            "bench.chaos.stream_clients",
            EDGE.address,
            str(PROXY_PORT),
            str(tokens),
            str(log_file),
        ],
        environment=running.environment,
        log=running.folder / "readers.log",
    )
    with program.running():
        yield Readers(count, log_file)


@scenario(
    26,
    injects="the proxy is killed and started again with 1,000 inbox streams open through it",
    shows="all streams reconnect within 30 s, and no event is missed",
    full={"streams": 1_000, "rate": 20.0, "restarts": 3, "between": 20},
    short={"streams": 200, "rate": 10.0, "restarts": 1, "between": 5},
)
def restarted_proxy(*, streams: int, rate: float, restarts: int, between: float) -> Findings:
    """Post items to the readers in turn while the proxy restarts."""

    def item(number: int) -> dict[str, object]:
        content = {"subject": subject(number, at=time.time()), "body": "An item of the inbox."}
        return {
            **in_app_body(number, user_id=user(number % streams)),
            "type": "transactional",
            "content": content,
            "data": {},
        }

    scopes = (*SCOPES, "inbox:issue")
    with cluster(scopes=scopes) as running, reading(running, streams) as readers:
        readers.wait_open(since=0)
        # A stream resumes after the last event that it has received, so that each gets one first.
        running.client.send_in_bulk(streams, body=item, name="first")
        readers.wait_received(streams)
        load = running.start_load(count=ALL, rate=rate, body=lambda n: item(streams + n))
        running.supervise(between)
        faults, reopened = [], []
        proxy = running.all_programs["proxy"]
        for number in range(restarts):
            since, began = datetime.now(UTC), time.time()
            proxy.kill()
            proxy.start()
            reopened.append(readers.wait_open(since=began))
            running.supervise(between)
            fault = Fault(name=f"restart {number + 1}", since=since, until=datetime.now(UTC))
            faults.append(fault)
        load.stop()
        posted = {answer.notification_id for answer in running.client.answers if answer.is_accepted}
        missed = readers.wait_received(len(posted))
        return finish(
            running,
            faults,
            at_most("seconds until all streams were open again", max(reopened), RECONNECT_SECONDS),
            at_most("events that never arrived", missed, 0),
        )
