"""What operators decide about the service itself."""

from django.db import models
from django_mongodb_backend.managers import MongoManager

from notifyproject.db.fields import optional_moment, optional_text


class ProviderState(models.Model):
    """Whether an operator has paused a provider."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)
    """The provider's name."""
    paused_at = optional_moment()
    """Missing: it is used."""
    paused_by = optional_text(150)
    reason = optional_text(200)

    objects = MongoManager()

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
