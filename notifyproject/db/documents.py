"""The document of :mod:`notifyproject.db.models`, which describes its fields."""

from datetime import datetime
from typing import TypedDict


class ClaimDocument(TypedDict):
    """A stored :class:`~notifyproject.db.models.Claim`."""

    token: str
    lease_until: datetime
    worker: str
