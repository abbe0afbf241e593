"""Messages for later are taken at their time, whatever this worker's own clock says.

A message says until when it waits, and Celery waits by the machine's clock. Where that is wrong,
and known to be (:mod:`.clock`), the time in the message is told in the machine's own terms.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from celery import Task
from celery.worker import strategy

from domain.time import wall

from . import clock

Handler = Callable[..., Any]
ETA = "eta"


class ClockCheckedTask(Task):
    """A task that goes by the right clock, and whose messages wait by it."""

    Strategy = f"{__name__}:handler_of"

    def before_start(self, task_id: str, args: Any, kwargs: Any) -> None:
        """Right the clock: whatever a task does, it does by comparing times."""
        clock.check_clock()


def handler_of(task: Task, app: Any, consumer: Any, **options: Any) -> Handler:
    """Return what Celery calls with each message of a task."""
    handle: Handler = strategy.default(task, app, consumer, **options)

    def handle_in_time(message: Any, *arguments: Any, **more: Any) -> Any:
        message.headers[ETA] = to_local_clock(message.headers.get(ETA))
        return handle(message, *arguments, **more)

    return handle_in_time


def to_local_clock(eta: str | None) -> str | None:
    """Return a moment as this machine's clock will show it when it comes."""
    if eta is None or not wall.correction:
        return eta
    return (datetime.fromisoformat(eta) - wall.correction).isoformat()
