"""Django app config of the project, which has commands but no models."""

from celery.signals import task_prerun
from django.apps import AppConfig
from django.core import checks
from django.core.signals import request_started


class NotifyprojectConfig(AppConfig):
    """App config of the project."""

    name = "notifyproject"

    def ready(self) -> None:
        """Register system checks and cache signals, and start tracing if it is configured."""
        from .celery import app
        from .checks import check_allowed_hosts, check_secrets, check_urls
        from .platform import cache, tracing
        from .platform.encryption import check_keys

        # The web publishes through Celery's default application, in any thread.
        app.set_default()
        request_started.connect(cache.compare_at_next_read)
        task_prerun.connect(cache.compare_at_next_read)
        checks.register(check_keys, checks.Tags.security)
        checks.register(check_secrets, checks.Tags.security, deploy=True)
        checks.register(check_urls, checks.Tags.security, deploy=True)
        checks.register(check_allowed_hosts, checks.Tags.security, deploy=True)
        checks.register(tracing.check_settings)
        tracing.start()
