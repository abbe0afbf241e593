"""What an app sent with a test key, as its tests want to see it."""

import time
from collections.abc import Callable, Iterator
from typing import TypedDict, Unpack, cast

from ..errors import NotificationRejectedError
from ..notifier import Notifier
from ..rest.api.notifications import cancel_notification, get_notification, list_notifications
from ..rest.api.test import clear_test_outbox, list_test_outbox
from ..rest.models.expanded_notification_view import ExpandedNotificationView
from ..rest.models.notification_view import NotificationView
from ..rest.models.outbox_message_view import OutboxMessageView

SECONDS = 10.0
_LOOK_AGAIN = 0.05
_SHOWN = 10
_NAMES = {"type": "type_"}
"""How generated code calls what Python has a name for."""


class Filters(TypedDict, total=False):
    """Which messages are meant."""

    user_id: str
    type: str
    channel: str


class Outbox:
    """The messages of one test, in the order in which they were sent.

    ``seconds`` is how long :meth:`wait_for` waits: nothing if a service sends at once.
    """

    def __init__(
        self,
        notifier: Notifier,
        *,
        seconds: float = SECONDS,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._notifier, self._seconds = notifier, seconds
        self._sleep, self._clock = sleep, clock
        self._earlier: set[str] = set()

    def begin(self) -> None:
        """Empty the outbox, and cancel what earlier tests left to be sent."""
        # One that is being sent now can't be cancelled. Its messages aren't of this test.
        self._earlier = {one.id for one in self._open()}
        for notification_id in self._earlier:
            try:
                cancel_notification.sync(notification_id, client=self._notifier.rest)
            except NotificationRejectedError as error:
                if error.code != "invalid_state":
                    raise
        self.clear()

    def clear(self) -> None:
        """Empty the outbox."""
        clear_test_outbox.sync_detailed(client=self._notifier.rest)

    def messages(self, **filters: Unpack[Filters]) -> list[OutboxMessageView]:
        """Return the messages, the first first: all, or those of a user, type, and channel."""
        named = {_NAMES.get(name, name): value for name, value in filters.items()}
        found = list(self._notifier.iterate(list_test_outbox.sync, **named))
        return [one for one in reversed(found) if one.notification_id not in self._earlier]

    def last(self, **filters: Unpack[Filters]) -> OutboxMessageView:
        """Return the newest message. Raises AssertionError if there is none."""
        return self.wait_for(1, seconds=0, **filters)[-1]

    def wait_for(
        self, count: int = 1, *, seconds: float | None = None, **filters: Unpack[Filters]
    ) -> list[OutboxMessageView]:
        """Return the messages once there are ``count``. Raises AssertionError after ``seconds``."""
        until = self._clock() + (self._seconds if seconds is None else seconds)
        while len(found := self.messages(**filters)) < count:
            if self._clock() >= until:
                raise AssertionError(self._explain(count, len(found), filters))
            self._sleep(_LOOK_AGAIN)
        return found

    def notification_of(self, message: OutboxMessageView) -> ExpandedNotificationView:
        """Return the notification of a message, with its data."""
        found = get_notification.sync(message.notification_id, client=self._notifier.rest)
        return cast("ExpandedNotificationView", found)

    def _open(self) -> Iterator[NotificationView]:
        return self._notifier.iterate(list_notifications.sync, phase=["pending", "retrying"])

    def _explain(self, count: int, found: int, filters: Filters) -> str:
        which = "".join(f", {name}={value!r}" for name, value in filters.items())
        lines = [f"Expected {count} in the outbox{which}, and found {found}."]
        sent = self.messages()
        lines += [f"  sent: {one.type_} by {one.channel} to {one.user_id}" for one in sent[:_SHOWN]]
        waiting = [one for one in self._open() if one.id not in self._earlier]
        for one in waiting[:_SHOWN]:
            states = ", ".join(f"{d.channel} {d.wait_reason or d.status}" for d in one.delivery)
            lines.append(f"  not sent: {one.type_} to {one.user_id}: {states}")
        return "\n".join(lines)
