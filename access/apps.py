"""Django's name for this app."""

from django.apps import AppConfig
from django.core import checks


class AccessConfig(AppConfig):
    """The access app."""

    name = "access"
    verbose_name = "Access"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from .checks import inbox_signing_key, second_factor

        checks.register(inbox_signing_key, checks.Tags.security)
        checks.register(second_factor, checks.Tags.security, deploy=True)
