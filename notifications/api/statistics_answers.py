"""What a question for figures is answered with."""

from typing import Annotated

import msgspec
from msgspec import Meta

from monitoring.statistics import GroupBy, Statistics


class StatisticsGroupView(msgspec.Struct, kw_only=True, frozen=True):
    """The figures of one status, type or channel. By channel, deliveries are counted."""

    value: str
    total: int
    sent: Annotated[
        int,
        Meta(description="A provider has taken it, or it is in the inbox, on a channel at least."),
    ]
    failed: int
    average_attempts: Annotated[
        float, Meta(description="Tries for each, of all its channels together.")
    ]


class StatisticsView(msgspec.Struct, kw_only=True, frozen=True):
    """The figures of a client's notifications, the largest group first."""

    by: GroupBy
    results: list[StatisticsGroupView]
    counted: Annotated[int, Meta(description="Notifications that were counted.")]
    complete: Annotated[bool, Meta(description="False: there are more, and older.")]


def statistics_view(found: Statistics, *, by: GroupBy) -> StatisticsView:
    """Return figures as they are shown."""
    return StatisticsView(
        by=by,
        results=[
            msgspec.convert(g, StatisticsGroupView, from_attributes=True) for g in found.groups
        ],
        counted=found.counted,
        complete=found.is_complete,
    )
