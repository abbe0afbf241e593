"""What beat starts and when: rows an operator may change in the admin."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

from delivery.sweeper import SWEEP_SECONDS

MINUTE = 60
"""Seconds."""
ROLLUP, ALERTS = "notifications.roll_up", "notifications.alerts"
CALLBACKS, RETENTION = "notifications.callbacks", "notifications.retention"
SWEEP = "notifications.sweep"
PERIODIC_TASKS = {
    "Sweep": (
        SWEEP,
        SWEEP_SECONDS,
        "Finds notifications that no hint reached. Without it they wait.",
    ),
    "Figures": (
        ROLLUP,
        MINUTE,
        "Counts what has changed. Without it the charts stand still.",
    ),
    "Alerts": (
        ALERTS,
        MINUTE,
        "Looks at the alert rules. Without it nobody is told of trouble.",
    ),
    "Callbacks": (
        CALLBACKS,
        MINUTE,
        "Finds callbacks that no hint reached. Without it apps may wait.",
    ),
    "Retention": (
        RETENTION,
        MINUTE,
        "Removes what old notifications say. Without it that stays longer.",
    ),
}
"""What runs by itself: the task, every how many seconds, and what it is for."""


def add_missing_tasks() -> None:
    """Add what is missing to beat's schedule; what operators changed stays."""
    for name, (task, seconds, description) in PERIODIC_TASKS.items():
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=seconds, period=IntervalSchedule.SECONDS
        )
        PeriodicTask.objects.get_or_create(
            name=name,
            defaults={"task": task, "interval": interval, "description": description},
        )
