"""What beat starts and when: rows an operator may change in the admin."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

MINUTE = 60
"""Seconds."""
SWEEP_SECONDS = 15
"""A lost worker's delivery is found within a lease and a sweep. If whoever sweeps is lost, too, and
whoever took what it found, it is found by the sweep after that: within 150 s. A sweep takes 0.1 s
with a million due."""
ROLL_UP, ALERTS = "notifications.roll_up", "notifications.alerts"
CALLBACKS, RETENTION = "notifications.callbacks", "notifications.retention"
SWEEP = "notifications.sweep"
TASKS = {
    "Sweep": (
        SWEEP,
        SWEEP_SECONDS,
        "Finds notifications that no hint reached. Without it they wait.",
    ),
    "Figures": (
        ROLL_UP,
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


def ensure() -> None:
    """Add what is missing to beat's schedule; what operators changed stays."""
    for name, (task, seconds, description) in TASKS.items():
        interval, _ = IntervalSchedule.objects.get_or_create(
            every=seconds, period=IntervalSchedule.SECONDS
        )
        PeriodicTask.objects.get_or_create(
            name=name,
            defaults={"task": task, "interval": interval, "description": description},
        )
