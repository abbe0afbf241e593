"""A backup is restored two days later."""

from datetime import UTC, datetime, timedelta
from typing import Any

from ...processes import wait_until
from ..findings import Findings, at_least, at_most, make_findings, scenario
from ..installation import Installation, run_installation
from ..load import mail_body

FINAL_SECONDS = 300.0
TTL = 3_600
TIMES = ("created_at", "updated_at", "scheduled_at", "expires_at", "due_at")


@scenario(
    20,
    injects="a backup restored with schedules two days old and expired",
    shows="none sent",
    full={"scheduled": 1_000, "claimed": 200},
    short={"scheduled": 50, "claimed": 20},
)
def restored_backup(*, scheduled: int, claimed: int) -> Findings:
    """Make all stored times two days older, as in a restored backup; all must end as expired."""
    with run_installation(webhooks=False) as installation:
        web = installation.web()
        installation.start(web)
        soon = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        later = (mail_body(n, scheduled_at=soon, ttl=TTL) for n in range(scheduled))
        installation.client.send_each(later, name="scheduled")
        now = (mail_body(scheduled + n, ttl=TTL) for n in range(claimed))
        installation.client.send_each(now, name="claimed")
        web.kill()
        installation.broker.empty()
        _make_older(installation)
        installation.start(*installation.workers(2), installation.beat())
        what = "not all are final"
        wait_until(lambda: not installation.open_count(), timeout=FINAL_SECONDS, what=what)
        evidence = installation.collect_evidence()
        ends = [status for one in evidence.stored for status in one.deliveries.values()]
        return make_findings(
            evidence,
            at_most("requests to the provider", len(evidence.requests), 0),
            at_least("ended as expired", ends.count("expired"), scheduled + claimed),
        )


def _make_older(installation: Installation) -> None:
    age_ms = timedelta(days=2) // timedelta(milliseconds=1)

    def shifted(path: str) -> dict[str, Any]:
        earlier = {"$subtract": [f"${path}", age_ms]}
        return {"$cond": [{"$eq": [{"$type": f"${path}"}, "date"]}, earlier, f"${path}"]}

    inside = {name: shifted(f"$this.{name}") for name in ("next_attempt_at", "first_due_at")}
    changes: dict[str, Any] = {name: shifted(name) for name in TIMES}
    older = {"$mergeObjects": ["$$this", inside]}
    changes["delivery"] = {"$map": {"input": "$delivery", "in": older}}
    installation.database["notifications"].update_many({}, [{"$set": changes}])
