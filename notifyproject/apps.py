"""Django's name for the project itself, which has commands but no models."""

from django.apps import AppConfig


class NotifyprojectConfig(AppConfig):
    """The project."""

    name = "notifyproject"
