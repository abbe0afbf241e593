"""Celery beat's scheduler: the schedule in MongoDB, with a heartbeat."""

from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

from notifyproject.platform import clock_check, heartbeat, refusal
from notifyproject.platform.process import refuse_unsafe_settings


class HeartbeatScheduler(DatabaseScheduler):
    """Records a heartbeat at each tick, which comes every 5 seconds or sooner."""

    def __init__(self, *args: Any, **options: Any) -> None:
        with refusal.shown_alone():
            refuse_unsafe_settings()
        # Until MongoDB, which has the schedule, responds. With a clock that is ahead, beat would
        # keep its times.
        clock_check.wait_until_right()
        super().__init__(*args, **options)

    def tick(self, *args: Any, **options: Any) -> float:
        """Publish due tasks; return the seconds until the next tick."""
        seconds = super().tick(*args, **options)
        heartbeat.record("beat")
        return seconds
