"""Django app config of monitoring, an app without models that owns a command."""

from typing import Any

from django.apps import AppConfig, apps
from django.db.models.signals import post_migrate


class MonitoringConfig(AppConfig):
    """The monitoring app."""

    name = "monitoring"

    def ready(self) -> None:
        """Add missing alert rules after each migrate."""
        # An app without models sends no signal of its own.
        post_migrate.connect(_after_migrate, sender=apps.get_app_config("analytics"))


def _after_migrate(**_: Any) -> None:
    from . import alert_rules

    alert_rules.add_missing_rules()
