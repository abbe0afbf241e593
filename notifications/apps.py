"""Django app config of notifications."""

from typing import Any

from django.apps import AppConfig
from django.core import checks
from django.db.models.signals import post_migrate


class NotificationsConfig(AppConfig):
    """The notifications app."""

    name = "notifications"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register system checks. After each migrate, add missing types and retention policies."""
        from .checks import (
            celery_settings,
            deploy_settings,
            mail_settings,
            provider_accounts,
            provider_settings,
            service_urls,
            sms_settings,
        )

        checks.register(deploy_settings, checks.Tags.security, deploy=True)
        checks.register(celery_settings, checks.Tags.security)
        checks.register(mail_settings, checks.Tags.security)
        checks.register(service_urls, checks.Tags.security)
        checks.register(provider_settings, checks.Tags.security)
        checks.register(provider_accounts, checks.Tags.security)
        checks.register(sms_settings, checks.Tags.security)
        post_migrate.connect(_after_migrate, sender=self)


def _after_migrate(**_: Any) -> None:
    from .catalog import retention, shipped_types

    shipped_types.add_missing_types()
    retention.add_missing_policies()
