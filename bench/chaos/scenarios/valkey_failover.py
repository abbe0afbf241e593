"""Valkey's primary dies with a backlog, and is cut off with a part of its clients."""

from datetime import UTC, datetime
from functools import partial

from ...cluster import Cluster
from ...cluster.plan import APPS, HOSTS, INTERNET, Host
from ...processes import Program
from ..findings import Bound, Findings, scenario
from ..load import mail_body
from .hosts import ALL, Fault, cluster, finish, mail, primary_of

FAILOVER_SECONDS = 60.0
"""Within this time, the Sentinels must have chosen another primary."""
news = partial(mail_body, priority="low")


def valkey_of(running: Cluster, host: Host) -> Program:
    """Return the program of the Valkey on a host."""
    [name] = [run for run in host.runs if run.startswith("valkey-")]
    return running.all_programs[name]


def wait_for_other_primary(running: Cluster, before: Host) -> float:
    """Wait until the Sentinels name another primary; return the seconds."""
    return running.supervise_until(
        lambda: running.watched_primary() not in (None, before),
        timeout=FAILOVER_SECONDS,
        what="the Sentinels chose no other primary",
    )


@scenario(
    23,
    injects="kill -9 of Valkey's primary while thousands of mails wait; it comes back as a replica",
    shows="P1, P2: the work that the broker lost is found; 202s resume within 15 s",
    full={"backlog": 4_000, "rate": 25.0, "kills": 2, "between": 15},
    short={"backlog": 500, "rate": 10.0, "kills": 1, "between": 3},
)
def lost_broker(*, backlog: int, rate: float, kills: int, between: float) -> Findings:
    """Kill the primary after a bulk of mails, and start it again after the failover."""
    with cluster() as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        faults, waiting = [], []
        for number in range(kills):
            running.client.send_in_bulk(backlog, body=news, name=f"backlog-{number}")
            primary = primary_of(running.watched_primary)
            waiting.append(running.open_count())
            since = datetime.now(UTC)
            valkey_of(running, primary).kill()
            wait_for_other_primary(running, primary)
            running.supervise(between)
            valkey_of(running, primary).start()
            running.wait_healthy()
            fault = Fault(name=f"kill {number + 1}", since=since, until=datetime.now(UTC))
            faults.append(fault)
        load.stop()
        return finish(running, faults, Bound("open when the broker died, at least", min(waiting)))


@scenario(
    24,
    injects="Valkey's primary is cut off from all but one application host: two brokers take "
    "messages until they are joined",
    shows="P1, P2: what the minority's broker had is found; 202s resume within 15 s",
    full={"backlog": 4_000, "rate": 25.0, "seconds": 45, "between": 15},
    short={"backlog": 500, "rate": 10.0, "seconds": 20, "between": 3},
)
def broker_split(*, backlog: int, rate: float, seconds: float, between: float) -> Findings:
    """Separate the primary from its replica, two Sentinels, and an application host."""
    with cluster() as running:
        load = running.start_load(count=ALL, rate=rate, body=mail)
        running.supervise(between)
        primary = primary_of(running.watched_primary)
        majority = [host for host in HOSTS if host not in (primary, APPS[0], INTERNET)]
        since = datetime.now(UTC)
        running.network.separate((primary,), majority)
        wait_for_other_primary(running, primary)
        running.client.send_in_bulk(backlog, body=news, name="backlog")
        running.supervise(seconds)
        brokers = len(running.valkey_primaries())
        running.network.join((primary,), majority)
        running.wait_healthy()
        running.supervise(between)
        load.stop()
        fault = Fault(name="apart", since=since, until=datetime.now(UTC))
        return finish(running, [fault], Bound("primaries while apart", brokers, minimum=2))
