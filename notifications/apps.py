"""Django's name for this app, and what ``migrate`` sees to."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class NotificationsConfig(AppConfig):
    """The notifications app."""

    name = "notifications"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register what runs after every migrate, and the system checks."""
        from . import checks  # noqa: F401

        post_migrate.connect(_after_migrate, sender=self)


def _after_migrate(**_: Any) -> None:
    from . import alerts, retention, schedule, types

    types.add_missing_defaults()
    schedule.ensure()
    alerts.add_missing_defaults()
    retention.add_missing()
