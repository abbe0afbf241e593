"""Faults while messages are collected into digests."""

from collections import Counter
from typing import Any

from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import define_digest, digest_body

SLUG = "comment_added"
FINAL_SECONDS = 900.0


@scenario(
    29,
    injects="kill -9 of workers while messages join digests and digests are closed",
    shows="P1, P2, P21",
    full={"count": 6_000, "rate": 30.0, "recipients": 200, "kills": 60, "workers": 3},
    short={"count": 300, "rate": 20.0, "recipients": 20, "kills": 6, "workers": 2},
)
def digests_under_kills(
    *, count: int, rate: float, recipients: int, kills: int, workers: int
) -> Findings:
    """Send to each recipient several times within windows of a minute, among kills."""
    with run_installation() as installation:
        programs = installation.workers(workers)
        installation.start(installation.web(), installation.beat(), *programs)
        define_digest(installation.client, SLUG, max_items=100)
        load = installation.start_load(
            count=count,
            rate=rate,
            body=lambda number: digest_body(number, slug=SLUG, recipient=number % recipients),
        )
        # The last windows end after the load.
        installation.kill_at_random(programs, kills=kills, every=(count / rate + 90) / kills)
        load.finish()
        evidence = installation.finish(timeout=FINAL_SECONDS)
        members = _members(installation)
        return make_findings(
            evidence,
            at_most("members in no carrier, or in two", _misplaced(installation, members), 0),
            at_least("members of digests", len(members), count // 2),
            at_most("carriers and digests that differ in number", _unpaired(installation), 0),
            copies="in flight",
        )


def _members(installation: Installation) -> dict[str, Any]:
    """Return the carrier of each merged notification."""
    found = installation.database["notifications"].find({"delivery.status": "merged"})
    return {str(document["_id"]): document["delivery"][0]["carried_by"] for document in found}


def _misplaced(installation: Installation, members: dict[str, Any]) -> int:
    """Count members that aren't listed exactly once, by the carrier that they name."""
    listed: Counter[tuple[str, Any]] = Counter()
    times: Counter[str] = Counter()
    for carrier in installation.database["notifications"].find({"digest_id": {"$exists": True}}):
        for item in carrier["data"]["digest"]["items"]:
            listed[item["id"], carrier["_id"]] += 1
            times[item["id"]] += 1
    lost = sum(listed[member] != 1 or times[member[0]] != 1 for member in members.items())
    return lost + len(times.keys() - members.keys())


def _unpaired(installation: Installation) -> int:
    """Return the difference between the carriers and the digests that were sent."""
    sent = installation.database["digests"].count_documents({"outcome": "sent"})
    carriers = {"digest_id": {"$exists": True}}
    return abs(installation.database["notifications"].count_documents(carriers) - sent)
