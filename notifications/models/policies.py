"""Retention policies, and the state of providers."""

from django.db import models
from django_mongodb_backend.fields import ArrayField

from domain.limits import Overflow
from domain.states import Category, Channel
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

from .catalog import SLUG_LENGTH


class ProviderState(models.Model):
    """Whether staff have paused a provider."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)  # The provider's name
    paused_at = optional_datetime()  # Missing while the provider is in use
    paused_by = optional_text(150)
    reason = optional_text(200)

    class Meta:
        db_table = "provider_states"
        default_permissions = ("view",)
        verbose_name = "provider"
        permissions = (
            ("pause_provider", "Can pause and resume providers"),
            ("test_provider", "Can send a test through a provider"),
        )

    def __str__(self) -> str:
        return self.id


class Limit(models.Model):
    """How many messages a recipient gets in a rolling period."""

    name = models.CharField(primary_key=True, db_column="_id", max_length=SLUG_LENGTH)
    types = ArrayField(models.CharField(max_length=SLUG_LENGTH), default=list, blank=True)
    """Without types and categories, the limit applies to all messages."""
    categories = choices_field(Category)
    channels = choices_field(Channel)
    """Channels that count together."""
    max = models.IntegerField()
    period_seconds = models.IntegerField()
    min_gap_seconds = models.IntegerField(default=0)
    overflow = choice_field(Overflow, default=Overflow.LATER)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "limits"
        ordering = ("name",)

    def __str__(self) -> str:
        return str(self.name)


class LimitUses(models.Model):
    """Counter of one limit for one recipient: the times of the messages that count."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=300)
    """The limit's name, and the recipient's user ID or the keyed digest of an address."""
    limit = models.CharField(max_length=SLUG_LENGTH)
    user_id = optional_text(128)
    uses = models.JSONField(default=list)
    """``[{"d": delivery, "at": time}]``, at most 100."""
    waiting = models.JSONField(default=list)
    """Deliveries that wait, first come first: ``[{"d": delivery, "until": time}]``."""
    own = models.JSONField(null=True, blank=True)
    """The recipient's own ``max`` and ``min_gap_seconds``, which apply if they are stricter."""
    purge_at = optional_datetime()
    """Missing while the recipient has own values."""

    class Meta:
        db_table = "limit_uses"
        default_permissions = ()
        indexes = (
            MongoIndex("purge_at", name="lim_purge", expire_after_seconds=0),
            MongoIndex("user_id", name="lim_user", sparse=True),
        )


class RetentionPolicy(models.Model):
    """How long the notifications of one category are kept."""

    category = choice_field(Category, primary_key=True, db_column="_id")
    content_days = models.IntegerField(null=True, blank=True)
    """Days after a notification's last change until its content and addresses are removed; empty:
    RETENTION_CONTENT_DAYS."""
    metadata_days = models.IntegerField(null=True, blank=True)
    """Days after its send time until it is deleted with its attempts; empty:
    RETENTION_METADATA_DAYS. Applies to notifications accepted after a change."""
    removed_until = optional_datetime(editable=False)
    """Notifications last changed before this time are processed."""

    class Meta:
        db_table = "retention_policies"
        ordering = ("category",)
        default_permissions = ("view", "change")
        verbose_name = "retention rule"

    def __str__(self) -> str:
        return str(self.get_category_display())
