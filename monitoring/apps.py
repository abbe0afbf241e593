"""Django app config of monitoring."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class MonitoringConfig(AppConfig):
    """The monitoring app. Its label is that of its collections' and permissions' names."""

    name = "monitoring"
    label = "analytics"
    verbose_name = "Monitoring"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Add missing alert rules after each migrate."""
        post_migrate.connect(_after_migrate, sender=self)


def _after_migrate(**_: Any) -> None:
    from . import alert_rules

    alert_rules.add_missing_rules()
