"""Broadcasts and their progress."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from domain.states import AudienceKind, BroadcastStatus, Priority
from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

from .notification import USER_ID_LENGTH

OPEN_BROADCASTS = {"due_at": {"$exists": True}}


class Broadcast(models.Model):
    """A request to send one message to an audience, which is read page by page."""

    client_id = ObjectIdField()
    request_id = optional_text(64)
    is_test = models.BooleanField(default=False)
    """Sent to the sandbox, for a client in test mode. Missing in all others."""
    type = models.CharField(max_length=64)
    priority = choice_field(Priority)
    request = models.JSONField()
    """The parts of a notification request that all recipients share."""
    audience = choice_field(AudienceKind)
    topic = optional_text(64)
    user_ids = ArrayField(models.CharField(max_length=USER_ID_LENGTH), null=True, blank=True)
    """Sorted, without duplicates."""
    audience_size = models.IntegerField(null=True, blank=True)
    """Approximate size at creation. Missing if the audience is too large to count."""
    scheduled_at = optional_datetime()
    expires_at = optional_datetime()
    """No recipient is processed at or after this time."""

    status = choice_field(BroadcastStatus)
    due_at = optional_datetime()
    """When to run the next page. Missing if there is nothing to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """A worker's lease on the next page; only the holder of its token may write."""
    claim_count = models.IntegerField(default=0)
    """Leases in a row that ended without a page."""
    cursor = optional_text(USER_ID_LENGTH)
    """The last user ID that was read."""
    is_waiting = models.BooleanField(default=False)
    """Waiting because of backpressure."""

    accepted = models.IntegerField(default=0)
    skipped = models.JSONField(default=dict, blank=True)
    """By reason: the number of recipients that opted out or are unreachable, and some user IDs."""
    rejected = models.JSONField(default=dict, blank=True)
    """By problem: recipients whose notification was invalid, as in ``skipped``."""
    withdrawn = models.IntegerField(default=0)
    """Notifications with deliveries that the broadcast's cancellation cancelled."""
    failure_code = optional_text(40)
    failure_reason = optional_text(500)
    started_at = optional_datetime()
    finished_at = optional_datetime()
    purge_at = optional_datetime()
    """When MongoDB deletes the broadcast."""
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "broadcasts"
        ordering = ("-created_at", "-id")
        permissions = (
            ("pause_broadcast", "Can pause"),
            ("resume_broadcast", "Can resume"),
            ("cancel_broadcast", "Can cancel, with its pending deliveries"),
        )
        indexes = (
            MongoIndex("-created_at", "-_id", name="brc_created"),
            MongoIndex("client_id", "-created_at", "-_id", name="brc_client_created"),
            MongoIndex("due_at", name="brc_due", partial=OPEN_BROADCASTS),
            MongoIndex("purge_at", name="brc_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"
