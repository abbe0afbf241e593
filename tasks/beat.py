"""Celery beat's scheduler: the schedule in MongoDB, with a heartbeat."""

from typing import Any

import structlog
from django_celery_beat.schedulers import DatabaseScheduler

from domain.time import utc_now
from notifyproject.platform import clock_check, heartbeat, refusal
from notifyproject.platform.process import refuse_unsafe_settings

log = structlog.get_logger(__name__)


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
        self._correct_future_runs()
        seconds = super().tick(*args, **options)
        heartbeat.record("beat")
        return seconds

    def _correct_future_runs(self) -> None:
        """Let tasks that ran while a clock was ahead count as run now.

        Otherwise no sweep begins until that time, which may be a day away.
        """
        now = utc_now()
        # The model has the last run of an entry and of its successors.
        latest = now + clock_check.MAX_OFFSET
        ahead = [
            entry for entry in (self._schedule or {}).values() if entry.model.last_run_at > latest
        ]
        for entry in ahead:
            entry.last_run_at = entry.model.last_run_at = now
        if ahead:
            log.warning("beat_clock_moved_back", tasks=len(ahead))
            # It is ordered by times of the wrong clock, so that one task would starve the others.
            self._heap = None
