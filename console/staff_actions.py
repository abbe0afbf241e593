"""What staff do to notifications: carried out by redrive and hastening, recorded for the audit."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from bson import ObjectId

from domain.states import Channel
from domain.time import InvalidTimeError
from notifications.models import Notification
from notifications.resend import actions
from notifications.store import Document
from notifyproject.platform import audit

from .widgets.labels import CHANNELS

ChannelSelection = Mapping[ObjectId, Sequence[Channel] | None]
"""Notifications, each with the channels it is about; None for all it has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Staff:
    """Who does it, as the audit keeps it."""

    id: ObjectId
    username: str


@dataclass(slots=True)
class ActionResult:
    """What became of one operation on several notifications."""

    done: list[ObjectId] = field(default_factory=list)
    """The notifications it was done to; for a resend, the new ones."""
    refused: dict[ObjectId, str] = field(default_factory=dict)
    """Why not, for each of the others."""

    @property
    def reasons(self) -> list[str]:
        """Why not, each reason once, with how often when there are several."""
        counts: dict[str, int] = {}
        for reason in self.refused.values():
            counts[reason] = counts.get(reason, 0) + 1
        if len(self.refused) == 1:
            return list(counts)
        return [f"{reason} ({count})" for reason, count in counts.items()]


def retry(selection: ChannelSelection, *, by: Staff, now: datetime) -> ActionResult:
    """Re-open what failed."""

    def one(notification_id: ObjectId, channels: Sequence[Channel] | None) -> ObjectId:
        document = actions.retry(notification_id=notification_id, channels=channels, now=now)
        _record(document, f"Retried on {_channel_names(channels)}.", by)
        return notification_id

    return _run_each(selection, one)


def resend(selection: ChannelSelection, *, by: Staff, now: datetime) -> ActionResult:
    """Send the same again as new notifications."""

    def one(notification_id: ObjectId, channels: Sequence[Channel] | None) -> ObjectId:
        new = actions.resend(notification_id=notification_id, channels=channels, now=now).document
        original = {**new, "_id": notification_id}
        _record(original, f"Resent on {_channel_names(channels)} as {new['_id']}.", by)
        _record(new, f"Made by resending {notification_id}.", by)
        return ObjectId(new["_id"])

    return _run_each(selection, one)


def cancel(selection: ChannelSelection, *, by: Staff, now: datetime) -> ActionResult:
    """Withdraw what has not been sent."""
    reason = f"Cancelled by {by.username}."

    def one(notification_id: ObjectId, channels: Sequence[Channel] | None) -> ObjectId:
        document = actions.cancel(
            notification_id=notification_id, channels=channels, reason=reason, now=now
        )
        _record(document, f"Cancelled on {_channel_names(channels)}.", by)
        return notification_id

    return _run_each(selection, one)


def run_now(selection: ChannelSelection, *, by: Staff, now: datetime) -> ActionResult:
    """Make due now what waits."""

    def one(notification_id: ObjectId, _channels: Sequence[Channel] | None) -> ObjectId:
        document = actions.run_now(notification_id=notification_id, now=now)
        _record(document, "Made due now.", by)
        return notification_id

    return _run_each(selection, one)


def reschedule(
    selection: ChannelSelection, *, by: Staff, now: datetime, at: datetime
) -> ActionResult:
    """Send at another time what has not been sent."""

    def one(notification_id: ObjectId, _channels: Sequence[Channel] | None) -> ObjectId:
        document = actions.reschedule(notification_id=notification_id, requested_time=at, now=now)
        _record(document, f"Rescheduled to {at:%Y-%m-%d %H:%M} UTC.", by)
        return notification_id

    return _run_each(selection, one)


def _run_each(
    selection: ChannelSelection, run: Callable[[ObjectId, Sequence[Channel] | None], ObjectId]
) -> ActionResult:
    result = ActionResult()
    for notification_id, channels in selection.items():
        if channels is not None and not channels:
            result.refused[notification_id] = "It has none of these channels to be done."
            continue
        try:
            result.done.append(run(notification_id, channels))
        except (
            actions.InvalidStateError,
            actions.NothingScheduledError,
            InvalidTimeError,
        ) as problem:
            result.refused[notification_id] = str(problem)
        except LookupError:
            result.refused[notification_id] = "It is not there any more."
    return result


def _channel_names(channels: Sequence[Channel] | None) -> str:
    return ", ".join(CHANNELS[c] for c in channels) if channels else "all channels"


def _record(document: Document, message: str, by: Staff) -> None:
    audit.record(
        by=by.id,
        model=Notification,
        object_id=str(document["_id"]),
        name=f"{document['type']} {document['_id']}",
        message=message,
    )
