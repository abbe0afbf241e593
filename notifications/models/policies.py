"""Retention policies, and the state of providers."""

from django.db import models

from domain.states import Category
from notifyproject.db.fields import choice_field, optional_datetime, optional_text


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
