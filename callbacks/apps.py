"""Django's name for this app."""

from django.apps import AppConfig
from django.core import checks


class CallbacksConfig(AppConfig):
    """The callbacks app."""

    name = "callbacks"
    verbose_name = "Callbacks"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        from .checks import no_loopback

        checks.register(no_loopback, checks.Tags.security, deploy=True)
