"""IDs of attempts, as a provider gets and returns them."""

import re
from dataclasses import dataclass

from bson import ObjectId

from domain.channels import Channel

_REFERENCE = re.compile(
    r"([0-9a-f]{24})\.([a-z][a-z0-9_]{0,39})\.(\d{1,6})(?:\.([0-9a-f]{64}))?", re.ASCII
)


@dataclass(frozen=True, slots=True)
class AttemptReference:
    """ID of one attempt, which the provider also gets. It contains no address."""

    notification_id: ObjectId
    channel: Channel
    attempt_number: int
    device_id: str | None = None  # A push has one attempt for each device

    def __str__(self) -> str:
        attempt = f"{self.notification_id}.{self.channel}.{self.attempt_number}"
        return attempt if self.device_id is None else f"{attempt}.{self.device_id}"

    @property
    def delivery_id(self) -> str:
        """The ID of its delivery in logs."""
        return f"{self.notification_id}.{self.channel}"

    @classmethod
    def parse(cls, text: str) -> "AttemptReference | None":
        """Return the reference in ``text``, or None if the text has another form."""
        match = _REFERENCE.fullmatch(text)
        if match is None:
            return None
        return cls(ObjectId(match[1]), Channel(match[2]), int(match[3]), match[4])
