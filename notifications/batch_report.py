"""What became of a batch, for whoever had it sent."""

from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain.states import DeliveryStatus

from .lanes import Wakeup
from .store import Claimed


@dataclass(slots=True)
class BatchReport:
    """What a batch did: how many deliveries of each fate, and what is to be looked at again."""

    claimed: int = 0
    fates: dict[str, int] = field(default_factory=dict)
    wakeups: list[Wakeup] = field(default_factory=list)
    left: list[ObjectId] = field(default_factory=list)
    """What is due, and each to be sent alone, and more than this batch could wait for."""

    def count(self, status: DeliveryStatus) -> None:
        """Count one delivery's fate."""
        self.fates[status.value] = self.fates.get(status.value, 0) + 1

    def look_again(self, claimed: Claimed, *, at: datetime) -> None:
        """Have a delivery looked at again at an instant."""
        wakeup = Wakeup(claimed.notification_id, claimed.channel, claimed.priority, at)
        self.wakeups.append(wakeup)
