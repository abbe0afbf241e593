"""Callback endpoints and messages."""

from django.db import models
from django_mongodb_backend.fields import EmbeddedModelArrayField, EmbeddedModelField, ObjectIdField
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim
from notifyproject.platform.endpoints import EXCERPT_LENGTH

from .events import CallbackState, CallbackStatus, DisabledReason, EventType

URL_LENGTH = 2048
MAX_HISTORY = 10


class CallbackSecret(EmbeddedModel):
    """An encrypted signing secret."""

    encrypted = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    until = optional_datetime()
    """Set once it's rotated: it signs along until then."""


class Callback(models.Model):
    """A client's callback endpoint. A client has at most one."""

    client_id = ObjectIdField(primary_key=True, db_column="_id")
    url = models.CharField(max_length=URL_LENGTH)
    host = models.CharField(max_length=260)
    """The displayable part of the URL; the rest may be secret."""
    events = choices_field(EventType)
    state = choice_field(CallbackState)
    disabled_at = optional_datetime()
    disabled_reason = choice_field(DisabledReason, null=True, blank=True)
    secrets = EmbeddedModelArrayField(CallbackSecret, default=list)
    backfill_from = optional_datetime()
    """Start of a pending backfill: events of notifications accepted since then; decision 15."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """One worker at a time calls an endpoint."""
    claim_count = models.IntegerField(default=0)
    failures = models.IntegerField(default=0)
    failing_since = optional_datetime()
    open_until = optional_datetime()
    last_success_at = optional_datetime()
    last_failure_at = optional_datetime()
    last_error = optional_text(200)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "callbacks"
        ordering = ("client_id",)
        permissions = (("switch_callback", "Can disable and enable callback endpoints"),)

    def __str__(self) -> str:
        return self.host


class CallbackTry(EmbeddedModel):
    """One attempt at a callback: a request to the endpoint and its response."""

    at = models.DateTimeField()
    duration_ms = models.IntegerField()
    status_code = models.IntegerField(null=True)
    error = optional_text(200)
    excerpt = optional_text(EXCERPT_LENGTH)


class CallbackMessage(models.Model):
    """One event to send to a client, with the state of its sending."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=120)
    """The event's ID, which makes storing idempotent."""
    client_id = ObjectIdField()
    type = choice_field(EventType)
    notification_id = ObjectIdField(null=True, blank=True)
    body = models.TextField()
    status = choice_field(CallbackStatus)
    tries = models.IntegerField(default=0)
    """Attempts since it was stored or replayed."""
    next_try_at = optional_datetime()
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    claim_count = models.IntegerField(default=0)
    history = EmbeddedModelArrayField(CallbackTry, default=list, blank=True)
    error = optional_text(200)
    replayed_at = optional_datetime()
    delivered_at = optional_datetime()
    created_at = models.DateTimeField()
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "callback_messages"
        ordering = ("-created_at", "-id")
        verbose_name = "callback message"
        permissions = (("replay_callbackmessage", "Can replay callback messages"),)
        indexes = (
            MongoIndex("client_id", "-created_at", "-_id", name="cbm_client"),
            MongoIndex("client_id", "status", "-created_at", "-_id", name="cbm_client_status"),
            MongoIndex("status", "-created_at", "-_id", name="cbm_status"),
            MongoIndex("-created_at", "-_id", name="cbm_created"),
            MongoIndex("notification_id", name="cbm_notification", sparse=True),
            MongoIndex(
                "client_id",
                "next_try_at",
                name="cbm_due",
                partial={"next_try_at": {"$exists": True}},
            ),
            MongoIndex("purge_at", name="cbm_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return str(self.pk)
