"""Bulk operations: one thing done to all notifications of a cohort, and what became of each.

:mod:`notifications.operations` writes them; the ORM reads them for the admin.
"""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField
from django_mongodb_backend.managers import MongoManager

from domain.states import BulkAction, BulkOutcome, BulkStage, Channel
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

from .notification import Claim

REASON_LENGTH = 500
OPEN_OPERATIONS = {"next_at": {"$exists": True}}


class BulkOperation(models.Model):
    """One thing to do to all notifications of a cohort, as it was when it was chosen."""

    action = choice_field(BulkAction)
    stage = choice_field(BulkStage)
    match = models.TextField()
    """What holds for the cohort: a MongoDB filter in canonical extended JSON."""
    order = models.CharField(max_length=20)
    """The time by which the cohort is gone through, the oldest first."""
    described = ArrayField(models.CharField(max_length=300), default=list)
    """The filter in words, a line each."""
    channels = choices_field(Channel)
    """It is about the deliveries on these."""
    only = models.JSONField(default=dict)
    """And only about those with these values: ``failure_code``, ``provider``, ``status``."""
    send_at = optional_datetime()
    """When to send what is rescheduled."""
    frozen_at = models.DateTimeField()
    """What was created, or failed, after this instant is not in the cohort."""

    after_at = optional_datetime()
    """How far it has come: the time and the id of the last notification that was looked at."""
    after_id = ObjectIdField(null=True, blank=True)
    next_at = optional_datetime()
    """When a worker is to go on; missing while there is nothing for one to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """The worker that is at it."""
    claim_count = models.IntegerField(default=0)
    """Workers in a row that came no further."""

    found = models.JSONField(default=dict)
    """Deliveries of the preview by verdict."""
    found_count = models.IntegerField(default=0)
    """Notifications of the preview."""
    is_capped = models.BooleanField(default=False)
    """There are more than the preview has looked at."""
    includes = ArrayField(models.CharField(max_length=40), default=list)
    """The verdicts that are acted on; all others are left out."""
    per_second = models.IntegerField()
    """Notifications a second at most."""
    reason = optional_text(REASON_LENGTH)
    duplicate_reason = optional_text(REASON_LENGTH)
    """Why a second copy is taken into account."""

    counts = models.JSONField(default=dict)
    """Deliveries by what became of them."""
    reasons = models.JSONField(default=dict)
    """Deliveries that were left out or could not be done, by why."""
    problem = optional_text(REASON_LENGTH)
    """Why it stopped by itself."""
    created_by = ObjectIdField()
    created_by_name = models.CharField(max_length=150)
    started_by = ObjectIdField(null=True, blank=True)
    started_by_name = optional_text(150)
    created_at = models.DateTimeField()
    started_at = optional_datetime()
    finished_at = optional_datetime()
    updated_at = models.DateTimeField()
    purge_at = optional_datetime()
    """MongoDB deletes it then."""

    objects = MongoManager()

    class Meta:
        db_table = "operations"
        ordering = ("-created_at", "-id")
        verbose_name = "bulk operation"
        default_permissions = ("view",)
        permissions = (("run_bulkoperation", "Can preview, start and stop bulk operations"),)
        indexes = (
            MongoIndex("-created_at", "-_id", name="opn_created"),
            MongoIndex("next_at", name="opn_next", partial=OPEN_OPERATIONS),
            MongoIndex("purge_at", name="opn_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.action} {self.pk}"


class OperationResult(models.Model):
    """What became of one delivery in a bulk operation."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``<operation>:<notification>:<channel>``: it is acted on once."""
    operation_id = ObjectIdField()
    notification_id = ObjectIdField()
    channel = choice_field(Channel)
    verdict = models.CharField(max_length=40)
    """What acting on it would be: as previewed, and then as judged again when its turn came."""
    why = models.CharField(max_length=REASON_LENGTH)
    outcome = choice_field(BulkOutcome)
    reason = optional_text(40)
    """Why not, as a word: the verdict, ``changed``, ``gone`` or ``refused``."""
    detail = optional_text(REASON_LENGTH)
    at = models.DateTimeField()
    purge_at = optional_datetime()
    """MongoDB deletes it then."""

    objects = MongoManager()

    class Meta:
        db_table = "operation_results"
        default_permissions = ()
        indexes = (
            MongoIndex("operation_id", "outcome", "verdict", name="opr_outcome"),
            MongoIndex("purge_at", name="opr_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return self.id
