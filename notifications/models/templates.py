"""Stored versions of what a type says. Written once by :mod:`notifications.templates.versions`."""

from django.db import models
from django_mongodb_backend.managers import MongoManager

from notifyproject.db.fields import optional_moment

from .types import SLUG_LENGTH

NOTE_LENGTH = 200
AUTHOR_LENGTH = 160


class TemplateVersion(models.Model):
    """One version of a type's template. Only ``published_at`` ever changes."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=SLUG_LENGTH + 8)
    """The type's slug and the number: unique, also when the collection is sharded."""
    type = models.CharField(max_length=SLUG_LENGTH)
    number = models.IntegerField()
    parts = models.JSONField()
    """Texts by language and part: ``{"default": {"subject": "…", "body": "…"}, "pt": {…}}``."""
    note = models.CharField(max_length=NOTE_LENGTH, blank=True)
    created_at = models.DateTimeField()
    created_by = models.CharField(max_length=AUTHOR_LENGTH)
    published_at = optional_moment()

    objects = MongoManager()

    class Meta:
        db_table = "template_versions"
        ordering = ("-id",)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.type}, version {self.number}"
