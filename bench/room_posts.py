"""The messages to rooms that the benchmark of rooms sends."""

from dataclasses import replace
from datetime import datetime

from domain.channels import ROOM

from . import mail

ROOMS = 20
TARGET = (
    "https://prod-00.westeurope.logic.azure.com/workflows/{}/triggers/manual/paths/invoke"
    "?api-version=2016-06-01&sp=%2Ftriggers%2Fmanual%2Frun&sv=1.0&sig=bench"
)


def create_rooms(*, at: datetime) -> None:
    """Create rooms of Teams, which take any number of messages a second."""
    from domain.rooms import RoomKind
    from rooms import registry

    for number in range(ROOMS):
        slug = _slug(number)
        registry.create(
            slug=slug,
            kind=RoomKind.TEAMS,
            name=slug,
            target=TARGET.format(slug),
            min_gap_seconds=0,
            now=at,
        )


def store_due(count: int, *, at: datetime) -> None:
    """Store due messages, to each room in turn."""
    from domain.content import Recipient
    from notifications.store import acceptance
    from notifications.store.new_notifications import NewDelivery

    for start in range(0, count, mail.BATCH):
        batch = [
            replace(
                mail.new_notification(number, at=at),
                user_id=None,
                recipient=Recipient(room=_slug(number)),
                deliveries=(NewDelivery(channel=ROOM),),
            )
            for number in range(start, min(start + mail.BATCH, count))
        ]
        acceptance.accept(batch, now=at)


def _slug(number: int) -> str:
    return f"room-{number % ROOMS}"
