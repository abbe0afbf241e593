"""The periodic tasks in beat's schedule, which operators can change in the console."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from delivery.sweeper import SWEEP_SECONDS
from monitoring.workers import ROLLUP_TASK, SWEEP_TASK

MINUTE = 60
"""Seconds."""
ROLLUP, ALERTS = "notifications.roll_up", "notifications.alerts"
CALLBACKS, RETENTION = "notifications.callbacks", "notifications.retention"
SWEEP = "notifications.sweep"
PERIODIC_TASKS = {
    SWEEP_TASK: (SWEEP, SWEEP_SECONDS, "Enqueues due work whose wake-up was lost."),
    ROLLUP_TASK: (ROLLUP, MINUTE, "Rolls up metrics. Without it, charts don't update."),
    "Alerts": (ALERTS, MINUTE, "Evaluates alert rules. Without it, no alert is raised."),
    "Callbacks": (CALLBACKS, MINUTE, "Sends callbacks whose wake-up was lost."),
    "Retention": (RETENTION, MINUTE, "Removes expired content of old notifications."),
}
"""Task, interval in seconds, and description, by name."""


def add_missing_tasks() -> None:
    """Add the missing periodic tasks to beat's schedule, without changing those that exist."""
    for name, (task, seconds, description) in PERIODIC_TASKS.items():
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=seconds, period=IntervalSchedule.SECONDS
        )
        PeriodicTask.objects.get_or_create(
            name=name, defaults={"task": task, "interval": interval, "description": description}
        )
