"""A host of the cluster is gone, and MongoDB's primary is cut off from its majority."""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial

from ...cluster import Cluster, run_cluster
from ...cluster.network import remove_leftovers
from ...cluster.plan import APPS, DATA, EDGE, HOSTS, INTERNET, Host
from ..analysis import longest_gap
from ..evidence import Evidence
from ..findings import Bound, Findings, at_most, make_findings, scenario
from ..installation import SCOPES
from ..load import mail_body
from .failover import given_up

FINAL_SECONDS = 900.0
RESUME_SECONDS = 15.0
"""The longest time after a fault until a request is accepted again."""
ALL = 1_000_000
mail = partial(mail_body, priority="critical")


@contextmanager
def cluster(*, scopes: Sequence[str] = SCOPES) -> Iterator[Cluster]:
    """Run the cluster, on a machine without remains of earlier ones."""
    remove_leftovers()
    log_progress = partial(print, "  ", flush=True)
    with run_cluster(scopes=scopes, log_progress=log_progress) as running:
        yield running


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault, and the time from which requests should be accepted until the check."""

    name: str
    since: datetime
    until: datetime

    def bound(self, evidence: Evidence) -> Bound:
        """Return the longest time without an acceptance, limited to RESUME_SECONDS."""
        gap = longest_gap(evidence, since=self.since, until=self.until)
        return at_most(f"seconds without an acceptance, {self.name}", gap, RESUME_SECONDS)


def primary_of(find: Callable[[], Host | None]) -> Host:
    """Return the host of a primary, as soon as there is one."""
    while (host := find()) is None:
        time.sleep(0.2)
    return host


@scenario(
    21,
    injects="one host after the other is gone for 20 s: of MongoDB's primary, of Valkey's primary, "
    "of the third vote, of web and workers, of the proxy",
    shows="202s resume within 15 s",
    full={"rate": 25.0, "away": 20, "between": 15},
    short={"rate": 10.0, "away": 15, "between": 3},
)
def lost_hosts(*, rate: float, away: float, between: float) -> Findings:
    """Cut the cable of the host of each role in turn, under load."""
    with cluster() as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        roles: dict[str, Callable[[], Host | None]] = {
            "MongoDB's primary": running.mongodb_primary,
            "Valkey's primary": running.watched_primary,
            "the third vote": lambda: DATA[2],
            "web and workers": lambda: APPS[0],
            "after the proxy's return": lambda: EDGE,
        }
        faults = [
            _lose(running, name, primary_of(find), away=away, between=between)
            for name, find in roles.items()
        ]
        load.stop()
        return finish(running, faults)


def finish(running: Cluster, faults: Sequence[Fault], *bounds: Bound) -> Findings:
    """Wait until all is sent, and return the findings with the time of each fault."""
    running.wait_final(timeout=FINAL_SECONDS, restarted=running.programs)
    evidence = running.collect_evidence()
    return make_findings(
        evidence,
        *(fault.bound(evidence) for fault in faults),
        *bounds,
        given_up(evidence),
        Bound("programs that ended and were started again", len(running.restarts)),
        copies="any",
    )


def _lose(running: Cluster, name: str, host: Host, *, away: float, between: float) -> Fault:
    since = datetime.now(UTC)
    running.network.cut(host)
    running.supervise(away)
    running.network.repair(host)
    if host is EDGE:
        # Nothing can be accepted while the only proxy is away.
        since = datetime.now(UTC)
    running.wait_healthy()
    running.supervise(between)
    return Fault(name=name, since=since, until=datetime.now(UTC))


@scenario(
    22,
    injects="MongoDB's primary is cut off from its majority, then with a web and two workers "
    "on its side",
    shows="P12; nothing written by the minority counts",
    full={"rate": 25.0, "seconds": 45, "between": 30},
    short={"rate": 10.0, "seconds": 15, "between": 3},
)
def primary_without_majority(*, rate: float, seconds: float, between: float) -> Findings:
    """Separate the primary from the other members, then it and an application host from all."""
    with cluster() as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        faults = []
        for name, beside in (("cut off alone", ()), ("cut off with a web", (APPS[0],))):
            primary = primary_of(running.mongodb_primary)
            minority = (primary, *beside)
            others = tuple(host for host in HOSTS if host not in minority)
            # Alone, it still reaches everything but the other members.
            majority = others if beside else tuple(host for host in others if host in DATA)
            if beside:
                majority = tuple(host for host in majority if host is not INTERNET)
            since = datetime.now(UTC)
            running.network.separate(minority, majority)
            running.supervise(seconds)
            running.network.join(minority, majority)
            running.wait_healthy()
            running.supervise(between)
            faults.append(Fault(name=name, since=since, until=datetime.now(UTC)))
        load.stop()
        return finish(running, faults)
