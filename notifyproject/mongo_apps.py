"""Third-party apps with ObjectId primary keys. Their migrations are in ``mongo_migrations``."""

from typing import Any

from axes.apps import AppConfig as AxesConfig
from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig
from django.core import checks
from django_celery_beat.apps import BeatConfig


class _ObjectIds:
    default_auto_field = "django_mongodb_backend.fields.ObjectIdAutoField"


class MongoAdminConfig(_ObjectIds, SimpleAdminConfig):
    """django.contrib.admin. The URLs load the console's pages, which other programs don't need."""

    def ready(self) -> None:
        """Register the admin's system checks."""
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(_check_pages, checks.Tags.admin)


def _check_pages(**options: Any) -> list[checks.CheckMessage]:
    admin.autodiscover()
    return check_admin_app(**options)


class MongoAuthConfig(_ObjectIds, AuthConfig):
    """django.contrib.auth."""


class MongoContentTypesConfig(_ObjectIds, ContentTypesConfig):
    """django.contrib.contenttypes."""


class MongoAxesConfig(_ObjectIds, AxesConfig):
    """django-axes without its models: access/staff/lockout.py stores its state."""

    def import_models(self) -> None:
        """Import the models, without collections or permissions for them."""
        super().import_models()
        self.models: dict[str, Any] = {}


class MongoBeatConfig(_ObjectIds, BeatConfig):
    """django_celery_beat."""
