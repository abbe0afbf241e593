"""Where apps want to be called back, and each message that they are called back with."""

from django.db import models
from django_mongodb_backend.fields import EmbeddedModelArrayField, EmbeddedModelField, ObjectIdField
from django_mongodb_backend.managers import MongoManager
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

from .events import CallbackState, CallbackStatus, DisabledReason, EventType

URL_LENGTH = 2048
EXCERPT_LENGTH = 500
"""Of a receiver's answer, this much is kept."""
MAX_HISTORY = 10


class CallbackSecret(EmbeddedModel):
    """A key that messages are signed with, sealed."""

    sealed = models.CharField(max_length=300)
    created_at = models.DateTimeField()
    until = optional_datetime()
    """It has been replaced, and signs along until then."""


class WorkLease(EmbeddedModel):
    """A worker's hold on a callback or a message. Whoever lacks the token writes nothing."""

    token = models.CharField(max_length=32)
    lease_until = models.DateTimeField()


class Callback(models.Model):
    """Where an app wants to be called back, and what for. An app has at most one."""

    client_id = ObjectIdField(primary_key=True, db_column="_id")
    url = models.CharField(max_length=URL_LENGTH)
    host = models.CharField(max_length=260)
    """Of the URL: what staff are shown. The rest may be secret."""
    events = choices_field(EventType)
    state = choice_field(CallbackState)
    disabled_at = optional_datetime()
    disabled_reason = choice_field(DisabledReason, null=True, blank=True)
    secrets = EmbeddedModelArrayField(CallbackSecret, default=list)
    enrols_from = optional_datetime()
    """Notifications accepted since then are still to be looked for: see decision 23."""
    claim = EmbeddedModelField(WorkLease, null=True, blank=True)
    """One worker at a time calls a receiver."""
    failures = models.IntegerField(default=0)
    """Tries that failed in a row."""
    failing_since = optional_datetime()
    open_until = optional_datetime()
    """It is left alone until then."""
    last_success_at = optional_datetime()
    last_failure_at = optional_datetime()
    last_error = optional_text(200)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    objects = MongoManager()

    class Meta:
        db_table = "callbacks"
        ordering = ("client_id",)
        permissions = (("switch_callback", "Can switch callbacks off and on"),)

    def __str__(self) -> str:
        return self.host


class CallbackTry(EmbeddedModel):
    """One request to a receiver, and what it answered."""

    at = models.DateTimeField()
    duration_ms = models.IntegerField()
    status_code = models.IntegerField(null=True)
    error = optional_text(200)
    excerpt = optional_text(EXCERPT_LENGTH)


class CallbackMessage(models.Model):
    """One event that an app is told of, and how that went."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=120)
    """The event's id: whatever finds the event twice finds this."""
    client_id = ObjectIdField()
    type = choice_field(EventType)
    notification_id = ObjectIdField(null=True, blank=True)
    """What it is about; missing in a test."""
    body = models.TextField()
    status = choice_field(CallbackStatus)
    tries = models.IntegerField(default=0)
    """Since it was made, or replayed."""
    next_try_at = optional_datetime()
    """Missing when none is due."""
    claim = EmbeddedModelField(WorkLease, null=True, blank=True)
    history = EmbeddedModelArrayField(CallbackTry, default=list, blank=True)
    """The last ten tries."""
    error = optional_text(200)
    """What the last try failed of."""
    replayed_at = optional_datetime()
    delivered_at = optional_datetime()
    created_at = models.DateTimeField()
    purge_at = models.DateTimeField()

    objects = MongoManager()

    class Meta:
        db_table = "callback_messages"
        ordering = ("-created_at", "-id")
        verbose_name = "callback message"
        permissions = (("replay_callbackmessage", "Can send callback messages again"),)
        indexes = (
            MongoIndex("client_id", "-created_at", "-_id", name="cbm_client"),
            MongoIndex("client_id", "status", "-created_at", "-_id", name="cbm_client_status"),
            MongoIndex("status", "-created_at", "-_id", name="cbm_status"),
            MongoIndex("-created_at", "-_id", name="cbm_created"),
            MongoIndex("notification_id", name="cbm_notification", sparse=True),
            MongoIndex(
                *("client_id", "next_try_at"),
                name="cbm_due",
                partial={"next_try_at": {"$exists": True}},
            ),
            MongoIndex("purge_at", name="cbm_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return str(self.pk)
