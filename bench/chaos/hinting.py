"""The broker, as a fault sees it: hints said again, or forgotten."""

from collections.abc import Sequence
from datetime import UTC, datetime

from bson import ObjectId

from .stand import Installation


def clear_broker(installation: Installation) -> None:
    """Empty the broker but for its queues' names: what it holds are hints."""
    for name in installation.broker.scan_iter():
        if not name.startswith(b"_kombu"):
            installation.broker.delete(name)


def publish_wakeups(ids: Sequence[str], *, channel: str, priority: str) -> bool:
    """Tell a worker of these deliveries; return whether the broker took it."""
    # The service's own modules want its settings, which stand only when the servers do.
    from domain.states import Channel, Priority
    from notifications.queueing import wakeups

    return wakeups.send_wakeup(
        [ObjectId(one) for one in ids],
        channel=Channel(channel),
        priority=Priority(priority),
        now=datetime.now(UTC),
    )
