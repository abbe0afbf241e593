"""Django's name for this app."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """The access app."""

    name = "access"
    verbose_name = "Access"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
