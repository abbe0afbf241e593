"""Django app config of the console, an app without models that is installed last."""

from django.apps import AppConfig


class ConsoleConfig(AppConfig):
    """The console app."""

    name = "console"
