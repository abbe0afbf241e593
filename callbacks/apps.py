"""Django app configuration."""

from django.apps import AppConfig


class CallbacksConfig(AppConfig):
    """The callbacks app."""

    name = "callbacks"
    verbose_name = "Callbacks"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
