"""Django app configuration."""

from django.apps import AppConfig


class RoomsConfig(AppConfig):
    """The rooms app."""

    name = "rooms"
    verbose_name = "Rooms"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
