"""What a scenario expects of each single notification, where it knows."""

from collections import Counter
from dataclasses import dataclass, field

from .evidence import Answer, Evidence
from .findings import Bound


class NotAcceptedError(RuntimeError):
    """The service refused what a scenario needs. The message is its answer."""


def accepted_id(answer: Answer) -> str:
    """Return the id of what was to be accepted; raises NotAccepted."""
    if answer.notification_id is None:
        raise NotAcceptedError(f"{answer.key}: {answer.status}")
    return answer.notification_id


@dataclass
class Expected:
    """How often the provider is to take each notification."""

    copies: Counter[str] = field(default_factory=Counter)

    def add(self, answer: Answer, *, copies: int) -> str:
        """Remember how often the provider is to take what was accepted; return its id."""
        notification_id = accepted_id(answer)
        self.copies[notification_id] = copies
        return notification_id

    def bound(self, evidence: Evidence) -> Bound:
        """Return how many notifications the provider took more or less often than it was to."""
        accepted = Counter(one.notification_id for one in evidence.requests if one.accepted)
        names = self.copies.keys() | accepted.keys()
        return Bound(
            name="notifications taken more or less often than expected",
            value=sum(accepted[name] != self.copies[name] for name in names),
            maximum=0,
        )
