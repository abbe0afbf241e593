"""How fast a worker sends what is due."""

import time
from dataclasses import dataclass
from datetime import datetime, timedelta

from . import environment

BATCH = 1_000
HINT = 100
POLL_SECONDS = 0.05


@dataclass(frozen=True, kw_only=True)
class Drained:
    """What one run measured."""

    count: int
    seconds: float

    @property
    def rate(self) -> float:
        """Emails a second."""
        return self.count / self.seconds


def run(*, count: int) -> Drained:
    """Send ``count`` due emails with one worker process; return how long it took."""
    with environment.running(), environment.worker():
        from notifications.timing import utc_now

        now = utc_now()
        _warm_up(now)
        ids = _fill(count, now)
        started = time.perf_counter()
        _hint(ids, now)
        _wait_until_sent(count)
        return Drained(count=count, seconds=time.perf_counter() - started)


def _fill(count: int, now: datetime) -> list:
    """Store due emails and return their ids."""
    from bson import ObjectId

    from notifications import store
    from notifications.states import Category, Channel, Priority

    ids = []
    for start in range(0, count, BATCH):
        batch = [
            store.NewNotification(
                id=ObjectId(),
                client_id=ObjectId("c" * 24),
                user_id=f"user-{n}",
                recipient=store.Recipient(email=f"user-{n}@example.com"),
                type="payment_confirmed",
                category=Category.TRANSACTIONAL,
                priority=Priority.NORMAL,
                content=store.Content(
                    subject="Payment confirmed",
                    body="Thank you. Your payment has arrived.",
                    template_id="payment_confirmed",
                ),
                data={"order_id": n, "video_title": "Sunrise", "amount": "49.90"},
                deliveries=(store.NewDelivery(channel=Channel.EMAIL),),
                max_attempts=4,
                send_at=now,
                purge_at=now + timedelta(days=90),
                created_at=now,
            )
            for n in range(start, min(start + BATCH, count))
        ]
        store.accept(batch, now=now)
        ids += [one.id for one in batch]
    return ids


def _warm_up(now: datetime) -> None:
    """Send a little first: connections are open and templates parsed in a running worker."""
    ids = _fill(200, now)
    _hint(ids, now)
    _wait_until_sent(200)


def _hint(ids: list, now: datetime) -> None:
    from notifications import hints
    from notifications.states import Channel, Priority

    for start in range(0, len(ids), HINT):
        published = hints.publish(
            ids[start : start + HINT], channel=Channel.EMAIL, priority=Priority.NORMAL, now=now
        )
        if not published:
            raise RuntimeError("the broker did not take a hint")


def _wait_until_sent(count: int, *, timeout: float = 600) -> None:
    """Wait until nothing is open any more."""
    from notifyproject.db.collections import collection

    deadline = time.monotonic() + timeout
    while collection("notifications").count_documents({"due_at": {"$exists": True}}):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{count} emails were not sent in {timeout:.0f} s")
        time.sleep(POLL_SECONDS)
