"""Bulk operations, which :mod:`notifications.bulk` writes, and the result of each delivery."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from domain.channels import Channel
from domain.states import BulkAction, BulkOutcome, BulkStage
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

REASON_LENGTH = 500
OPEN_OPERATIONS = {"next_at": {"$exists": True}}


class BulkOperation(models.Model):
    """One action on all notifications of a selection, which is fixed at creation."""

    action = choice_field(BulkAction)
    stage = choice_field(BulkStage)
    match = models.TextField()
    """The selection: a MongoDB filter in canonical extended JSON."""
    order = models.CharField(max_length=20)
    """The time field by which the selection is processed, oldest first."""
    described = ArrayField(models.CharField(max_length=300), default=list)
    """The filter in words, a line each."""
    channels = choices_field(Channel)
    """Deliveries of these channels are selected."""
    only = models.JSONField(default=dict)
    """Further values of selected deliveries: ``failure_code``, ``provider``, ``status``."""
    send_at = optional_datetime()
    """New send time of a reschedule."""
    frozen_at = models.DateTimeField()
    """Notifications created or failed after this time are not selected."""

    after_at = optional_datetime()
    """Progress: the time and the ID of the last processed notification."""
    after_id = ObjectIdField(null=True, blank=True)
    next_at = optional_datetime()
    """When to run next. Missing while there is nothing to do."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    claim_count = models.IntegerField(default=0)
    """Leases in a row that ended without progress."""

    found = models.JSONField(default=dict)
    """Number of deliveries in the preview, by resend risk."""
    found_count = models.IntegerField(default=0)
    """Number of notifications in the preview."""
    is_capped = models.BooleanField(default=False)
    """The selection is larger than the preview."""
    includes = ArrayField(models.CharField(max_length=40), default=list)
    """Resend risks that are acted on; others are skipped."""
    per_second = models.IntegerField()
    reason = optional_text(REASON_LENGTH)
    duplicate_reason = optional_text(REASON_LENGTH)

    counts = models.JSONField(default=dict)
    """Number of deliveries by outcome."""
    reasons = models.JSONField(default=dict)
    """Number of skipped and failed deliveries by reason."""
    problem = optional_text(REASON_LENGTH)
    """Why the operation stopped automatically."""
    recent = ArrayField(models.CharField(max_length=48), null=True, blank=True)
    """The deliveries that it last changed, as ``<notification>:<channel>``."""
    acted_at = optional_datetime()
    is_proven = models.BooleanField(null=True)
    """Since its start or resumption, the first deliveries didn't all fail."""
    created_by = ObjectIdField()
    created_by_name = models.CharField(max_length=150)
    started_by = ObjectIdField(null=True, blank=True)
    started_by_name = optional_text(150)
    created_at = models.DateTimeField()
    started_at = optional_datetime()
    finished_at = optional_datetime()
    updated_at = models.DateTimeField()
    purge_at = optional_datetime()

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
    """The outcome of one delivery in a bulk operation."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``<operation>:<notification>:<channel>``, so that it is acted on once."""
    operation_id = ObjectIdField()
    notification_id = ObjectIdField()
    channel = choice_field(Channel)
    risk = models.CharField(max_length=40)
    """Resend risk: of the preview, then as assessed again before the action."""
    why = models.CharField(max_length=REASON_LENGTH)
    outcome = choice_field(BulkOutcome)
    reason = optional_text(40)
    """Code of the reason: the resend risk, ``changed``, ``gone``, or ``refused``."""
    detail = optional_text(REASON_LENGTH)
    at = models.DateTimeField()
    purge_at = optional_datetime()

    class Meta:
        db_table = "operation_results"
        default_permissions = ()
        indexes = (
            MongoIndex("operation_id", "outcome", "risk", name="opr_outcome"),
            MongoIndex("purge_at", name="opr_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return self.id
