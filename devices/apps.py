"""Django app configuration."""

from django.apps import AppConfig


class DevicesConfig(AppConfig):
    """The devices app."""

    name = "devices"
    verbose_name = "Devices"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
