"""Third-party apps with ObjectId primary keys. Their migrations are in ``mongo_migrations``."""

from typing import Any

from axes.apps import AppConfig as AxesConfig
from django.contrib.admin.apps import AdminConfig
from django.contrib.auth.apps import AuthConfig
from django.contrib.contenttypes.apps import ContentTypesConfig
from django_celery_beat.apps import BeatConfig

OBJECT_ID = "django_mongodb_backend.fields.ObjectIdAutoField"


class MongoAdminConfig(AdminConfig):
    """django.contrib.admin."""

    default_auto_field = OBJECT_ID


class MongoAuthConfig(AuthConfig):
    """django.contrib.auth."""

    default_auto_field = OBJECT_ID


class MongoContentTypesConfig(ContentTypesConfig):
    """django.contrib.contenttypes."""

    default_auto_field = OBJECT_ID


class MongoAxesConfig(AxesConfig):
    """django-axes without its models: access/staff/lockout.py stores its state."""

    default_auto_field = OBJECT_ID

    def import_models(self) -> None:
        """Import the models, without collections or permissions for them."""
        super().import_models()
        self.models: dict[str, Any] = {}


class MongoBeatConfig(BeatConfig):
    """django_celery_beat."""

    default_auto_field = OBJECT_ID
