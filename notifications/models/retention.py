"""How long notifications are kept: what operators may change about it."""

from django.db import models
from django_mongodb_backend.managers import MongoManager

from domain.states import Category
from notifyproject.db.fields import optional_moment, word


class RetentionPolicy(models.Model):
    """How long the notifications of one category are kept. There is one for each category."""

    category = word(Category, primary_key=True, db_column="_id")
    content_days = models.IntegerField(null=True, blank=True)
    """Days after the last thing that happened to a notification until what it says, and to which
    address, is removed; empty: as RETENTION_CONTENT_DAYS says."""
    metadata_days = models.IntegerField(null=True, blank=True)
    """Days after its send time until it is deleted with its attempts; empty: as
    RETENTION_METADATA_DAYS says. Only what is accepted from now on goes by it."""
    removed_until = optional_moment(editable=False)
    """What was last touched before this has been looked at."""

    objects = MongoManager()

    class Meta:
        db_table = "retention_policies"
        ordering = ("category",)
        default_permissions = ("view", "change")
        verbose_name = "retention rule"

    def __str__(self) -> str:
        return str(self.get_category_display())
