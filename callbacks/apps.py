"""Django app config and checks of callbacks."""

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
    """Return an error if apps on this very machine are called back: on a server that is a hole."""
    if not settings.CALLBACK_LOOPBACK:
        return []
    problem = checks.Error(
        "CALLBACK_LOOPBACK is on: an app could have services of this machine called.",
        hint="It is for a stack on one machine.",
        id="callbacks.E001",
    )
    return [problem]
