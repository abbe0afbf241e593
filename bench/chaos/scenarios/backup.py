"""A backup is restored days later."""

from datetime import UTC, datetime, timedelta
from typing import Any

from .. import bodies
from ..findings import Bound, Findings, conclude
from ..gathering import gather
from ..processes import wait_until
from ..scenario import Scenario
from ..stand import Stand, standing

FINAL_SECONDS = 300.0
AGE = timedelta(days=2)
TTL = 3_600
TIMES = ("created_at", "updated_at", "scheduled_at", "expires_at", "due_at")
DELIVERY_TIMES = ("next_attempt_at", "first_due_at")


def restored_backup(*, scheduled: int, claimed: int) -> Findings:
    """Have schedules and claims of two days ago come back, all of them expired since.

    To make everything in the database two days older is what a restored backup looks like.
    """
    with standing(webhooks=False) as stand:
        web = stand.web()
        stand.start(web)
        soon = (datetime.now(UTC) + timedelta(minutes=5)).isoformat()
        for number in range(scheduled):
            mail = bodies.mail(number, scheduled_at=soon, ttl=TTL)
            stand.client.send(mail, key=f"scheduled-{number}")
        for number in range(claimed):
            mail = bodies.mail(scheduled + number, ttl=TTL)
            stand.client.send(mail, key=f"claimed-{number}")
        web.kill()
        stand.broker.flushall()
        _make_older(stand)
        stand.start(stand.worker(), stand.worker("second"), stand.beat())
        stand.wait_final(timeout=FINAL_SECONDS)
        wait_until(lambda: not stand.open_count(), timeout=FINAL_SECONDS, what="not all was ended")
        evidence = gather(stand)
        ends = [status for one in evidence.stored for status in one.deliveries.values()]
        return conclude(
            evidence,
            Bound(name="requests to the provider", value=len(evidence.requests), most=0),
            Bound(name="ended as expired", value=ends.count("expired"), least=scheduled + claimed),
        )


def _make_older(stand: Stand) -> None:
    """Move every time two days back."""
    back = AGE // timedelta(milliseconds=1)

    def moved(path: str) -> dict[str, Any]:
        earlier = {"$subtract": [f"${path}", back]}
        return {"$cond": [{"$eq": [{"$type": f"${path}"}, "date"]}, earlier, f"${path}"]}

    inside = {name: moved(f"$d.{name}") for name in DELIVERY_TIMES}
    deliveries = {
        "$map": {"input": "$delivery", "as": "d", "in": {"$mergeObjects": ["$$d", inside]}}
    }
    stand.database["notifications"].update_many(
        {}, [{"$set": {**{name: moved(name) for name in TIMES}, "delivery": deliveries}}]
    )


RESTORED_BACKUP = Scenario(
    number=20,
    injects="a backup restored with schedules two days old and expired",
    shows="none sent",
    run=restored_backup,
    full={"scheduled": 1_000, "claimed": 200},
    short={"scheduled": 50, "claimed": 20},
)
