"""Faults of rooms: one is gone, one has a rate limit, and one is flooded."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from domain.time import utc_now

from ..evidence import Evidence
from ..findings import Bound, Findings, at_most, make_findings, p99_bounds, scenario
from ..installation import Installation, run_installation
from ..load import Load

TARGET = "https://hooks.slack.com/services/T0CHAOS/B0CHAOS/{}"
GONE, LIMITED, FLOODED, OTHER = "gone", "limited", "flooded", "other-{}"
OUTCOMES = {GONE: "no-service-1", LIMITED: "ratelimit-1"}
"""What the sandbox answers to these rooms: 404, and 429 with a Retry-After of RETRY_AFTER."""
RETRY_AFTER = 5
IN_FLIGHT = 2
"""Requests to a room that were sent before the answer to another one."""
FLOOD, FLOOD_SECONDS, MAX_POSTS = 300, 60, 60
FINAL_SECONDS = 1_800.0
SENT = frozenset({"sent", "delivered", "merged"})


@scenario(
    33,
    injects="one room answers 404 and one 429 beside others; then 300 alerts in a minute to one",
    shows="what concerns a room concerns no other; a flood is at most 60 posts and one digest",
    full={"others": 10, "rate": 4.0, "usual": 300, "seconds": 3_600},
    short={"others": 4, "rate": 2.0, "usual": 90, "seconds": 90},
)
def rooms_that_fail(*, others: int, rate: float, usual: int, seconds: int) -> Findings:
    """Post to other rooms before and beside those that fail; then repair one, and flood one."""
    with run_installation() as installation:
        slugs = [OTHER.format(number) for number in range(others)]
        _create_rooms([*slugs, *OUTCOMES, FLOODED])
        installation.start(installation.web(), installation.worker(), installation.beat())
        post = partial(_post, installation)
        post("before", slugs, rate=rate, seconds=usual).finish()
        failing = post("failing", list(OUTCOMES), rate=rate / 2, seconds=seconds)
        post("beside", slugs, rate=rate, seconds=seconds).finish()
        failing.finish()
        installation.script_outcome(OUTCOMES[LIMITED], "posted")
        post("flood", [FLOODED], rate=FLOOD / FLOOD_SECONDS, seconds=FLOOD_SECONDS).finish()
        installation.wait_final(timeout=FINAL_SECONDS)
        ends = {slug: _ends(installation, slug) for slug in (*slugs, *OUTCOMES, FLOODED)}
        digests = installation.database["notifications"].count_documents(
            {"type": "room_digest", "recipient.room": FLOODED}
        )
        evidence = installation.collect_evidence()
        unsent = [
            notification_id
            for slug in (*slugs, LIMITED, FLOODED)
            for notification_id, status in ends[slug].items()
            if status not in SENT
        ]
        gone, refusals = _refused(evidence, ends[GONE]), _refused(evidence, ends[LIMITED])
        most_refusals = seconds / RETRY_AFTER + IN_FLIGHT
        return make_findings(
            evidence,
            *p99_bounds(
                evidence,
                before="p99 of the others in seconds before",
                beside="p99 of the others in seconds beside",
            ),
            Bound("requests to the room that is gone", gone, minimum=1, maximum=IN_FLIGHT),
            Bound("requests that got 429", refusals, minimum=IN_FLIGHT, maximum=most_refusals),
            at_most("messages to a room that isn't gone and nobody got", len(unsent), 0),
            at_most("posts of 300 alerts", _accepted(evidence, ends[FLOODED]), MAX_POSTS),
            Bound("digests among them", digests, minimum=1, maximum=1),
            copies="none",
        )


def _create_rooms(slugs: Sequence[str]) -> None:
    # The service's modules need its settings, which exist only after the servers started.
    from domain.rooms import RoomKind
    from rooms import registry

    for slug in slugs:
        registry.create(
            slug=slug,
            kind=RoomKind.SLACK_WEBHOOK,
            name=slug,
            target=TARGET.format(OUTCOMES.get(slug, f"posted-{slug}")),
            min_gap_seconds=1,
            now=utc_now(),
        )


def _post(
    installation: Installation, name: str, slugs: Sequence[str], *, rate: float, seconds: int
) -> Load:
    """Start a load that goes to each room in turn."""
    body = partial(_body, slugs)
    return installation.start_load(count=int(rate * seconds), rate=rate, body=body, name=name)


def _body(slugs: Sequence[str], number: int) -> dict[str, Any]:
    return {
        "type": "system_alert",
        "recipient": {"room": slugs[number % len(slugs)]},
        "channels": ["room"],
        "content": {"subject": f"Alert {number}", "body": "The disk of db-1 is full."},
    }


def _ends(installation: Installation, slug: str) -> dict[str, str]:
    """Return how each message to a room ended, digests included."""
    found = installation.database["notifications"].find({"recipient.room": slug}, {"status": 1})
    return {str(document["_id"]): document["status"] for document in found}


def _refused(evidence: Evidence, ends: Mapping[str, str]) -> int:
    return sum(r.notification_id in ends and not r.accepted for r in evidence.requests)


def _accepted(evidence: Evidence, ends: Mapping[str, str]) -> int:
    return sum(r.notification_id in ends and r.accepted for r in evidence.requests)
