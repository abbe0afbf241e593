"""Django app config of ``tasks``, which has commands and tasks but no models."""

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class TasksConfig(AppConfig):
    """The tasks app."""

    name = "tasks"

    def ready(self) -> None:
        """Add missing periodic tasks after each migrate."""
        # An app without models sends no signal of its own.
        post_migrate.connect(_after_migrate, sender=apps.get_app_config("django_celery_beat"))


def _after_migrate(**_: Any) -> None:
    from . import schedule

    schedule.add_missing_tasks()
