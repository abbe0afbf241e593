"""MongoDB loses its primary, steps down, and fails at single commands."""

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.errors import PyMongoError

from .. import bodies
from ..bodies import Body
from ..evidence import Answer
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..joining import analyze
from ..load import Load
from ..processes import Program
from ..scenario import Scenario
from ..stand import Installation, run_installation

FINAL_SECONDS = 900.0
DOWNTIME_SECONDS = 8.0
"""Seconds a killed member stays away; the others elect a primary meanwhile."""
STEPDOWN_SECONDS = 20
OUTAGE_SECONDS = 15
"""P12: how long nothing may be accepted."""

CUT = {"closeConnection": True}
NOT_PRIMARY = {"errorCode": 10107, "errorLabels": ["RetryableWriteError"]}
BUSY = {"errorCode": 202, "errorLabels": ["RetryableWriteError"]}
NO_MAJORITY = {"writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}}
FAILURES: Mapping[str, Mapping[str, Any]] = {
    "the connection is cut": CUT,
    "no primary": NOT_PRIMARY,
    "out of resources": BUSY,
    "no majority in time": NO_MAJORITY,
}
COMMANDS = ("insert", "update", "findAndModify", "bulkWrite")
FAILING_SHARE = 0.05
"""Of the commands that fail."""


def lost_primaries(*, rate: float, kills: int, stepdowns: int, workers: int) -> Findings:
    """Kill the primary again and again, and have it step down, while notifications come in."""
    with run_installation(members=3) as installation:
        worker_programs = [installation.worker(f"worker-{number}") for number in range(workers)]
        installation.start(installation.web(), installation.beat(), *worker_programs)
        load = Load(installation.client, count=1_000_000, rate=rate, body=_body)
        load.start()
        for _ in range(kills):
            _record_ends(installation, worker_programs)
            killed = installation.mongo.kill_primary()
            time.sleep(DOWNTIME_SECONDS)
            killed.start()
            installation.mongo.wait_healthy()
        for _ in range(stepdowns):
            _record_ends(installation, worker_programs)
            installation.mongo.step_down(seconds=STEPDOWN_SECONDS)
            time.sleep(STEPDOWN_SECONDS)
            installation.mongo.wait_healthy()
        load.stop()
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        analysis = analyze(evidence)
        return make_findings(
            evidence,
            Bound(
                name="most seconds in which nothing was accepted",
                value=_longest_gap(evidence.answers),
                maximum=OUTAGE_SECONDS,
            ),
            Bound(
                name="requests without an answer within two minutes",
                value=_given_up(evidence.answers),
                maximum=0,
            ),
            Bound(
                name="copies after an unknown outcome",
                value=len(analysis.double_unknown),
                maximum=analysis.in_flight,
            ),
        )


def _record_ends(installation: Installation, workers: Sequence[Program]) -> None:
    """Remember that what these workers send now may stay without a record of its outcome."""
    for one in workers:
        installation.record_end(one)


def _body(number: int) -> Body:
    return bodies.mail(number, to=("user", "no-events", "slow")[number % 3], priority="critical")


def _longest_gap(answers: Sequence[Answer]) -> float | None:
    times = sorted(answer.at for answer in answers if answer.is_accepted)
    gaps = [(later - earlier).total_seconds() for earlier, later in itertools.pairwise(times)]
    return max(gaps, default=None)


def _given_up(answers: Sequence[Answer]) -> int:
    accepted = {answer.key for answer in answers if answer.is_accepted}
    return len({answer.key for answer in answers} - accepted)


def failing_commands(*, count: int, rate: float) -> Findings:
    """Let MongoDB fail at a share of the writes, in each way it has, under load."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        for number, failure in enumerate(FAILURES.values()):
            load = Load(
                installation.client, count=count, rate=rate, body=_body, name=f"trouble-{number}"
            )
            _set_fail_point(installation, {"activationProbability": FAILING_SHARE}, failure)
            load.start()
            load.finish()
            time.sleep(STEPDOWN_SECONDS)
            _set_fail_point(installation, "off", {})
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        return make_findings(
            evidence,
            Bound(name="ways in which writes failed", value=len(FAILURES), minimum=len(FAILURES)),
            Bound(
                name="requests that met a failure",
                value=sum(not answer.is_accepted for answer in evidence.answers),
            ),
            Bound(
                name="requests without an answer within two minutes",
                value=_given_up(evidence.answers),
                maximum=0,
            ),
            Bound(
                name="copies after an unknown outcome", value=len(analyze(evidence).double_unknown)
            ),
        )


def _set_fail_point(
    installation: Installation, mode: str | Mapping[str, float], failure: Mapping[str, Any]
) -> None:
    """Set how commands that write fail; "off" ends it."""
    data = {"failCommands": COMMANDS, **failure} if failure else {}
    command = {
        "configureFailPoint": "failCommand",
        "mode": mode,
        **({"data": data} if data else {}),
    }
    for last in (False, False, True):
        try:
            installation.database.client.admin.command(command)
        except PyMongoError:
            if last:
                raise
        else:
            return


LOST_PRIMARIES = Scenario(
    number=10,
    injects="the primary of three is killed ten times; then steps down each 20 s",
    shows="P12",
    run=lost_primaries,
    full={"rate": 10, "kills": 10, "stepdowns": 6, "workers": 2},
    short={"rate": 5, "kills": 2, "stepdowns": 1, "workers": 1},
)
FAILING_COMMANDS = Scenario(
    number=11,
    injects="5 % of writes fail: cut off, no primary, no resources, no majority in time",
    shows="re-read, never assumed",
    run=failing_commands,
    full={"count": 2_000, "rate": 20},
    short={"count": 60, "rate": 10},
)
