"""One message to many people, and how far it has come."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField
from django_mongodb_backend.managers import MongoManager

from domain.states import AudienceKind, BroadcastStatus, Priority
from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

from .notification import USER_ID_LENGTH, Claim

OPEN_BROADCASTS = {"due_at": {"$exists": True}}


class Broadcast(models.Model):
    """A request to tell an audience one thing. Its people are read page by page."""

    client_id = ObjectIdField()
    """The API client that asked."""
    request_id = optional_text(64)
    is_test = models.BooleanField(default=False)
    """The client is in test mode: all of it goes to the sandbox. Missing in all others."""
    type = models.CharField(max_length=64)
    priority = choice_field(Priority)
    request = models.JSONField()
    """What everybody is told: the parts of a notification's request that are the same for all."""
    audience = choice_field(AudienceKind)
    topic = optional_text(64)
    user_ids = ArrayField(models.CharField(max_length=USER_ID_LENGTH), null=True, blank=True)
    """In order, each once."""
    audience_size = models.IntegerField(null=True, blank=True)
    """About how many there were when it was asked for; missing when it was too many to count."""
    scheduled_at = optional_datetime()
    expires_at = optional_datetime()
    """Nobody more is told at or after this instant."""

    status = choice_field(BroadcastStatus)
    due_at = optional_datetime()
    """When to go on with it; missing when there is nothing to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """A worker's lease on the next page. Whoever does not hold the token writes nothing."""
    claim_count = models.IntegerField(default=0)
    """Leases in a row that ended without a page."""
    cursor = optional_text(USER_ID_LENGTH)
    """The last user id that was read."""
    is_waiting = models.BooleanField(default=False)
    """It waits because too much is to be sent already."""

    accepted = models.IntegerField(default=0)
    skipped = models.JSONField(default=dict, blank=True)
    """By reason: how many wanted nothing or could not be reached, and some of their user ids."""
    rejected = models.JSONField(default=dict, blank=True)
    """By problem: whose notifications could not be made, as in ``skipped``."""
    withdrawn = models.IntegerField(default=0)
    """Notifications of which something was cancelled with it."""
    failure_code = optional_text(40)
    failure_reason = optional_text(500)
    started_at = optional_datetime()
    finished_at = optional_datetime()
    purge_at = optional_datetime()
    """MongoDB deletes it then: as long after its end as a notification after its time."""
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = MongoManager()

    class Meta:
        db_table = "broadcasts"
        ordering = ("-created_at", "-id")
        permissions = (
            ("pause_broadcast", "Can pause"),
            ("resume_broadcast", "Can resume"),
            ("cancel_broadcast", "Can cancel, and withdraw what is pending"),
        )
        indexes = (
            MongoIndex("-created_at", "-_id", name="brc_created"),
            MongoIndex("client_id", "-created_at", "-_id", name="brc_client_created"),
            MongoIndex("due_at", name="brc_due", partial=OPEN_BROADCASTS),
            MongoIndex("purge_at", name="brc_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"
