"""Celery beat's scheduler: the schedule in MongoDB, with a heartbeat."""

from typing import Any

from django_celery_beat.schedulers import DatabaseScheduler

from notifyproject.platform import heartbeat


class HeartbeatScheduler(DatabaseScheduler):
    """Records a heartbeat at each tick, which comes every 5 seconds or sooner."""

    def tick(self, *args: Any, **options: Any) -> float:
        """Publish due tasks; return the seconds until the next tick."""
        seconds = super().tick(*args, **options)
        heartbeat.record("beat")
        return seconds
