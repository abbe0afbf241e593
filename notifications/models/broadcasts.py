"""Broadcasts and their progress."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField
from django_mongodb_backend.models import EmbeddedModel

from domain.states import AudienceKind, BroadcastStatus, Priority
from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

from .notification import USER_ID_LENGTH

NAME_LENGTH = 100
REASON_LENGTH = 500
OPEN_BROADCASTS = {"due_at": {"$exists": True}}
AWAITING = {"status": BroadcastStatus.AWAITING_APPROVAL.value}
OVERRIDDEN = {"approval.overridden_at": {"$exists": True}}
STOPPED = {"approval.stopped_at": {"$exists": True}}


class Approval(EmbeddedModel):
    """What another person decided, or is asked to decide. Missing if nobody has to."""

    revision = models.IntegerField()
    """Grows with each change. A decision names the one that it's about."""
    fingerprint = optional_text(64)
    """Of all that would be sent, when it was submitted. Missing in a draft."""
    template_version = models.IntegerField()
    """The version of the type's template that is sent, whatever is published later."""
    design = models.IntegerField()
    """The number of the design that is sent, whatever brands and partials become later."""
    authors = ArrayField(models.CharField(max_length=600))
    """Accounts, identities at the OpenID provider, and clients that wrote or submitted it."""
    audience_size = models.IntegerField(null=True, blank=True)
    """Recipients, about, when it was submitted. Missing if they weren't counted."""
    requested_at = optional_datetime()
    expires_at = optional_datetime()
    decided_at = optional_datetime()
    decided_by = optional_text(64)
    """The account or client that approved, rejected, or overrode."""
    reason = optional_text(REASON_LENGTH)
    """Of a rejection, of an override, or why it's a draft again."""
    overridden_at = optional_datetime()
    """When it was sent without another person's approval."""
    stopped_at = optional_datetime()
    """When a worker held it, or ended it because nobody decided. A person's act removes it."""


class Broadcast(models.Model):
    """A request to send one message to an audience, which is read page by page."""

    client_id = ObjectIdField()
    idempotency_key = optional_text(255)
    request_id = optional_text(64)
    is_test = models.BooleanField(default=False)
    """Sent to the sandbox, for a client in test mode. Missing in all others."""
    name = optional_text(NAME_LENGTH)
    """What people call it."""
    type = models.CharField(max_length=64)
    priority = choice_field(Priority)
    request = models.JSONField()
    """The parts of a notification request that all recipients share."""
    audience = choice_field(AudienceKind)
    topic = optional_text(64)
    user_ids = ArrayField(models.CharField(max_length=USER_ID_LENGTH), null=True, blank=True)
    """Sorted, without duplicates."""
    file_id = ObjectIdField(null=True, blank=True)
    """The file of recipients. The broadcast has its ID, so that a file is sent once."""
    file_check = models.IntegerField(null=True, blank=True)
    """The check of the file whose good rows are sent."""
    audience_size = models.IntegerField(null=True, blank=True)
    """Approximate size at creation. Missing if the audience is too large to count."""
    scheduled_at = optional_datetime()
    spread_seconds = models.IntegerField(null=True, blank=True)
    """The time over which its messages are spread. Missing: they're sent at once."""
    local_hour = models.IntegerField(null=True, blank=True)
    """The hour of each recipient's day at which they're sent. Missing: at once."""
    expires_at = optional_datetime()
    """No recipient is processed at or after this time."""

    status = choice_field(BroadcastStatus)
    approval = EmbeddedModelField(Approval, null=True, blank=True)
    authors = ArrayField(models.CharField(max_length=600), null=True, blank=True)
    """Of one that needed no approval: the staff who wrote it. Missing if its client did."""
    due_at = optional_datetime()
    """When to run the next page. Missing if there is nothing to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """A worker's lease on the next page; only the holder of its token may write."""
    claim_count = models.IntegerField(default=0)
    """Leases in a row that ended without a page."""
    cursor = optional_text(USER_ID_LENGTH)
    """The last user ID that was read, or the last part of a file."""
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
            ("send_file", "Can send to a file of recipients"),
            ("pause_broadcast", "Can pause"),
            ("resume_broadcast", "Can resume"),
            ("cancel_broadcast", "Can cancel, with its pending deliveries"),
            ("submit_broadcast", "Can ask for the approval of a draft"),
            ("approve_broadcast", "Can approve and reject what others wrote"),
            ("override_broadcast", "Can send without an approval, with a reason and an alert"),
        )
        indexes = (
            MongoIndex("-created_at", "-_id", name="brc_created"),
            MongoIndex("client_id", "-created_at", "-_id", name="brc_client_created"),
            MongoIndex("due_at", name="brc_due", partial=OPEN_BROADCASTS),
            MongoIndex("status", "-created_at", "-_id", name="brc_awaiting", partial=AWAITING),
            MongoIndex("approval.overridden_at", name="brc_overridden", partial=OVERRIDDEN),
            MongoIndex("approval.stopped_at", name="brc_stopped", partial=STOPPED),
            MongoIndex("purge_at", name="brc_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"
