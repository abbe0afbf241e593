"""Rooms: list."""

from datetime import datetime
from typing import Annotated

import msgspec
from msgspec import Meta

from access.models import Scope
from rooms import registry

from .http.rendering import Response
from .http.requests import ClientRequest
from .openapi.operations import operation


class RoomView(msgspec.Struct, kw_only=True, frozen=True):
    """A room that staff have set up. Its target is never shown."""

    id: Annotated[str, Meta(examples=["ops"])]
    """Name it as `recipient.room`."""
    name: Annotated[str, Meta(examples=["Operations"])]
    kind: Annotated[str, Meta(examples=["slack_webhook"])]
    """`slack_webhook`, `slack_bot`, `teams`, `discord`, `webhook`, or one of a newer version."""
    enabled: Annotated[bool, Meta(examples=[True])]
    disabled_detail: str | None = None
    """Why it takes no messages, as a sentence."""
    min_gap_seconds: Annotated[int, Meta(examples=[1])]
    last_accepted_at: datetime | None = None
    """To the minute."""


class RoomList(msgspec.Struct, kw_only=True, frozen=True):
    """All rooms, by ID."""

    results: list[RoomView]


@operation(scope=Scope.NOTIFICATIONS_WRITE, response=RoomList)
def list_rooms(_request: ClientRequest) -> Response:
    """List the rooms by ID."""
    return Response(
        RoomList(
            results=[
                RoomView(
                    id=room["_id"],
                    name=room["name"],
                    kind=room["kind"],
                    enabled=room["enabled"],
                    disabled_detail=registry.disabled_reason_of(room),
                    min_gap_seconds=room["min_gap_seconds"],
                    last_accepted_at=room.get("last_accepted_at"),
                )
                for room in registry.all_rooms()
            ]
        )
    )
