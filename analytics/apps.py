"""Django app configuration."""

from django.apps import AppConfig


class AnalyticsConfig(AppConfig):
    """The analytics app."""

    name = "analytics"
    verbose_name = "Analytics"
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"
