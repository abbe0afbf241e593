"""Documents of :mod:`rooms.models`, which describes their fields."""

from datetime import datetime
from typing import NotRequired, TypedDict

from notifyproject.db.collections import Documents


class RoomDocument(TypedDict):
    """A stored :class:`~rooms.models.Room`."""

    _id: str
    kind: str
    name: str
    target: str
    masked_target: str
    secrets: list[str]
    min_gap_seconds: int
    enabled: bool
    disabled_reason: NotRequired[str]
    disabled_at: NotRequired[datetime]
    last_accepted_at: NotRequired[datetime]
    created_at: datetime
    updated_at: datetime


ROOMS = Documents("rooms", RoomDocument)
