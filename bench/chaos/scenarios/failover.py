"""Faults of MongoDB: a killed primary, a step-down, and failing commands."""

import time
from collections.abc import Mapping, Sequence
from typing import Any

from pymongo.errors import PyMongoError

from ...processes import Program
from ..analysis import longest_gap
from ..evidence import Evidence
from ..findings import Bound, Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import Body, mail_body

FINAL_SECONDS = 900.0
DOWNTIME_SECONDS = 8.0
"""How long a killed member stays away, while the others elect a primary."""
STEPDOWN_SECONDS = 20
OUTAGE_SECONDS = 15
"""P12: the longest time without an acceptance."""
FAILURES: Sequence[Mapping[str, Any]] = (
    {"closeConnection": True},
    {"errorCode": 10107, "errorLabels": ["RetryableWriteError"]},
    {"errorCode": 202, "errorLabels": ["RetryableWriteError"]},
    {"writeConcernError": {"code": 64, "errmsg": "waiting for replication timed out"}},
)
"""Fail points: closed connection, not primary, no resources, and write concern timeout."""
COMMANDS = ("insert", "update", "findAndModify", "bulkWrite")
FAILING_SHARE = 0.05


@scenario(
    10,
    injects="the primary of three is killed ten times; then steps down each 20 s",
    shows="P12",
    full={"rate": 10, "kills": 10, "stepdowns": 6, "workers": 2},
    short={"rate": 5, "kills": 2, "stepdowns": 1, "workers": 1},
)
def lost_primaries(*, rate: float, kills: int, stepdowns: int, workers: int) -> Findings:
    """Kill the primary repeatedly, then make it step down, while notifications arrive."""
    with run_installation(members=3) as installation:
        worker_programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *worker_programs)
        load = installation.start_load(count=1_000_000, rate=rate, body=_body)
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
        evidence = installation.finish(timeout=FINAL_SECONDS)
        gap = longest_gap(evidence)
        return make_findings(
            evidence,
            at_most("longest time without an acceptance in seconds", gap, OUTAGE_SECONDS),
            given_up(evidence),
            copies="in flight",
        )


def _record_ends(installation: Installation, workers: Sequence[Program]) -> None:
    """Count the workers' current sends as in progress, because their outcomes may be lost."""
    for worker in workers:
        installation.record_end(worker)


def _body(number: int) -> Body:
    return mail_body(number, to=("user", "no-events", "slow")[number % 3], priority="critical")


def given_up(evidence: Evidence) -> Bound:
    """Return the number of requests that were never accepted, limited to 0."""
    accepted = {answer.key for answer in evidence.answers if answer.is_accepted}
    given_up = {answer.key for answer in evidence.answers} - accepted
    return at_most("requests without an answer within two minutes", len(given_up), 0)


@scenario(
    11,
    injects="5 % of writes fail: cut off, no primary, no resources, no majority in time",
    shows="re-read, never assumed",
    full={"count": 2_000, "rate": 20},
    short={"count": 60, "rate": 10},
)
def failing_commands(*, count: int, rate: float) -> Findings:
    """Make a share of MongoDB's writes fail, in each way of FAILURES, under load."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        for number, failure in enumerate(FAILURES):
            _set_fail_point(installation, {"activationProbability": FAILING_SHARE}, failure)
            name = f"fault-{number}"
            installation.start_load(count=count, rate=rate, body=_body, name=name).finish()
            time.sleep(STEPDOWN_SECONDS)
            _set_fail_point(installation, "off", {})
        evidence = installation.finish(timeout=FINAL_SECONDS)
        failed = sum(not answer.is_accepted for answer in evidence.answers)
        return make_findings(
            evidence,
            at_least("ways in which writes failed", len(FAILURES), len(FAILURES)),
            Bound("requests that met a failure", failed),
            given_up(evidence),
            copies="any",
        )


def _set_fail_point(
    installation: Installation, mode: str | Mapping[str, float], failure: Mapping[str, Any]
) -> None:
    """Make write commands fail, or stop that (mode "off"). Tries three times."""
    command: dict[str, Any] = {"configureFailPoint": "failCommand", "mode": mode}
    if failure:
        command["data"] = {"failCommands": COMMANDS, **failure}
    for last in (False, False, True):
        try:
            installation.database.client.admin.command(command)
        except PyMongoError:
            if last:
                raise
        else:
            return
