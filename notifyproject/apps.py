"""Django's name for the project itself, which has commands but no models."""

from celery.signals import task_prerun
from django.apps import AppConfig
from django.core import checks
from django.core.signals import request_started


class NotifyprojectConfig(AppConfig):
    """The project."""

    name = "notifyproject"

    def ready(self) -> None:
        """Register the system checks, have caches compared, and turn traces on if wanted."""
        from .platform import cache, tracing
        from .platform.encryption import check_keys

        request_started.connect(cache.compare_at_next_read)
        task_prerun.connect(cache.compare_at_next_read)
        checks.register(check_keys, checks.Tags.security)
        checks.register(tracing.check_settings)
        tracing.start()
