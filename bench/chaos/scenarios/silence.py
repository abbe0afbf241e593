"""The provider takes a message and never answers."""

from .. import bodies
from ..crashing import USER_ID
from ..expecting import Expected
from ..findings import Bound, Findings, make_findings
from ..gathering import collect_evidence
from ..scenario import Scenario
from ..stand import run_installation

FINAL_SECONDS = 1_200.0
PRIORITY = "critical"


def silent_provider(*, count: int) -> Findings:
    """Send where nobody answers: with a report later, and without one under each policy."""
    with run_installation() as installation:
        installation.start(installation.web(), installation.worker(), installation.beat())
        phone = bodies.phone(user_id=USER_ID, token="timeout-phone")
        installation.client.call("PUT", "/devices", phone)
        expected = Expected()
        reported: set[str] = set()
        repeated: set[str] = set()
        given_up: set[str] = set()
        for number in range(count):
            mail = bodies.mail(number, to="timeout", priority=PRIORITY)
            retried = bodies.push(number, user_id=USER_ID, priority=PRIORITY, max_retries=1)
            content = {"subject": "News", "body": "Once or never."}
            once = {**retried, "type": "marketing", "content": content, "data": {}}
            for group, body, copies in ((reported, mail, 1), (repeated, retried, 2)):
                answer = installation.client.send(body, key=f"{copies}-{number}")
                group.add(expected.add(answer, copies=copies))
            answer = installation.client.send(once, key=f"once-{number}")
            given_up.add(expected.add(answer, copies=1))
        installation.wait_final(timeout=FINAL_SECONDS)
        evidence = collect_evidence(installation)
        ends = {one.notification_id: set(one.deliveries.values()) for one in evidence.stored}
        return make_findings(
            evidence,
            Bound(
                name="settled by a later report",
                value=sum(ends[one] == {"delivered"} for one in reported),
                minimum=count,
            ),
            Bound(
                name="sent again by policy, then given up",
                value=sum(ends[one] == {"failed"} for one in repeated),
                minimum=count,
            ),
            Bound(
                name="given up by policy",
                value=sum(ends[one] == {"failed"} for one in given_up),
                minimum=count,
            ),
            expected.bound(evidence),
        )


SILENT_PROVIDER = Scenario(
    number=12,
    injects="the provider takes a message and never answers, with and without a later report",
    shows="unknown, then settled by the report or the type's policy",
    run=silent_provider,
    # At twenty failures the circuits would open, and hold back what is to be sent again.
    full={"count": 6},
    short={"count": 2},
)
