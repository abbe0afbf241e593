"""Django's name for the project itself, which has commands but no models."""

from django.apps import AppConfig
from django.core import checks


class NotifyprojectConfig(AppConfig):
    """The project."""

    name = "notifyproject"

    def ready(self) -> None:
        """Register the system checks, and turn traces on if they are wanted."""
        from . import tracing
        from .sealing import keys_are_good

        checks.register(keys_are_good, checks.Tags.security)
        checks.register(tracing.wanted_and_possible)
        tracing.start()
