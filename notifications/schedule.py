"""What beat starts and when: rows an operator may change in the admin."""

from django_celery_beat.models import IntervalSchedule, PeriodicTask

SWEEP_SECONDS = 60


def ensure() -> None:
    """Add the sweep to beat's schedule unless there is one; what operators changed stays."""
    every_minute, _ = IntervalSchedule.objects.get_or_create(
        every=SWEEP_SECONDS, period=IntervalSchedule.SECONDS
    )
    PeriodicTask.objects.get_or_create(
        name="Sweep",
        defaults={
            "task": "notifications.sweep",
            "interval": every_minute,
            "description": "Finds notifications that no hint reached. Without it they wait.",
        },
    )
