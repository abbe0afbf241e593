"""Django app configuration."""

from django.apps import AppConfig


class RecipientsConfig(AppConfig):
    """The recipients app."""

    name = "recipients"
    verbose_name = "Recipients"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
