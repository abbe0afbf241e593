"""Django app configuration and system checks."""

from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks


class CallbacksConfig(AppConfig):
    """The callbacks app."""

    name = "callbacks"
    verbose_name = "Callbacks"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"

    def ready(self) -> None:
        """Register the system checks."""
        checks.register(check_loopback, checks.Tags.security, deploy=True)


def check_loopback(**_: Any) -> list[checks.CheckMessage]:
    """Report an error if callbacks to this machine are allowed, which is a hole on a server."""
    if not settings.CALLBACK_LOOPBACK:
        return []
    problem = checks.Error(
        "CALLBACK_LOOPBACK is on: a client could reach services of this machine.",
        hint="Turn it off; it's for a local stack only.",
        id="callbacks.E001",
    )
    return [problem]
