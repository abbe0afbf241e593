"""Records that belong to notifications: attempts, idempotency keys, webhooks, heartbeats."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from domain.channels import Channel
from domain.states import AttemptStatus
from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

INBOX_VISIT_SECONDS = 400 * 86_400
"""Longer than a notification stays in an inbox, unless its category is retained for over a year;
older ones then count as unseen again."""


class DeliveryAttempt(models.Model):
    """One attempt to hand a message to a provider. Only the store writes it."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=140)
    """``<notification>.<channel>.<number>[.<device>]``, so that writing is idempotent."""
    notification_id = ObjectIdField()
    channel = choice_field(Channel)
    device_id = optional_text(64)
    platform = optional_text(16)
    """The platform of the device."""
    attempt_number = models.IntegerField()
    status = choice_field(AttemptStatus)
    provider = optional_text(40)
    provider_message_id = optional_text(200)
    platform_response = models.JSONField(null=True, blank=True)
    """Status, code, and the beginning of the body of the response, without addresses."""
    error_code = optional_text(40)
    error_message = optional_text(500)
    worker = optional_text(120)
    attempted_at = models.DateTimeField()
    finished_at = optional_datetime()
    duration_ms = models.IntegerField(null=True, blank=True)
    units = models.IntegerField(null=True, blank=True)
    """How many parts of a text may be billed."""
    delivered_at = optional_datetime()
    """When the device reported that it has the message."""
    opened_at = optional_datetime()
    """When the device reported that its owner opened it."""
    purge_at = optional_datetime()

    class Meta:
        db_table = "delivery_attempts"
        ordering = ("-attempted_at", "-id")
        indexes = (
            MongoIndex("notification_id", "device_id", "attempt_number", name="att_notification"),
            MongoIndex("device_id", name="att_device", sparse=True),
            MongoIndex("-attempted_at", "-_id", name="att_attempted"),
            MongoIndex("purge_at", name="att_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return self.id


class IdempotencyKey(models.Model):
    """The stored result of a request, so that a repeated request has no second effect."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """SHA-256 of client and key: unique on any shard."""
    fingerprint = models.CharField(max_length=64)
    """Keyed digest of the request: another body under the same key is rejected."""
    notification_ids = ArrayField(ObjectIdField(), default=list)
    """IDs created before the notifications were stored, so that storing is idempotent."""
    refusals = models.JSONField(null=True)
    """Of a bulk request: the rejected items."""
    broadcast_id = ObjectIdField(null=True, blank=True)
    """Of a broadcast request: the ID created before the broadcast was stored."""
    created_at = models.DateTimeField()
    stored_at = optional_datetime()
    """When all notifications of a bulk request were stored."""
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "idempotency_keys"
        indexes = (MongoIndex("expires_at", name="idm_expires", expire_after_seconds=0),)


class ProviderEvent(models.Model):
    """A provider's event that was applied, so that a repeated webhook has no second effect.

    The fields of a receipt are missing in an inbound message.
    """

    id = models.CharField(primary_key=True, db_column="_id", max_length=200)
    """``<provider>:<the provider's event ID>``."""
    provider = optional_text(40)
    notification_id = ObjectIdField(null=True, blank=True)
    channel = optional_text(16)
    kind = optional_text(20)
    """A :class:`providers.contract.ReceiptKind`."""
    at = optional_datetime()
    """When it happened, according to the provider."""
    reason = optional_text(500)
    units = models.IntegerField(null=True, blank=True)
    """How many parts of a text the provider bills."""
    cost = optional_text(20)
    """A decimal number, such as ``0.0079``."""
    currency = optional_text(3)
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "provider_events"
        indexes = (
            MongoIndex("expires_at", name="evt_expires", expire_after_seconds=0),
            MongoIndex("notification_id", name="evt_notification", sparse=True),
            MongoIndex("provider", "expires_at", name="evt_provider"),
        )


class Heartbeat(models.Model):
    """When a periodic activity last took place."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)
    at = models.DateTimeField()
    started_at = optional_datetime()
    """When the worker started. Missing, as the rest, for other activities."""
    queues = ArrayField(models.CharField(max_length=80), null=True, blank=True)
    version = optional_text(40)
    """The release that the worker runs."""

    class Meta:
        db_table = "heartbeats"
        verbose_name_plural = "workers and queues"


class EarlyReceipt(models.Model):
    """A receipt for a message ID that isn't stored yet, to be applied again for a while."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=200)
    """``<provider>:<event>``."""
    provider = models.CharField(max_length=40)
    receipt = models.JSONField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "early_receipts"
        indexes = (MongoIndex("expires_at", name="ear_expires", expire_after_seconds=0),)


class InboxVisit(models.Model):
    """Up to when the owner has seen an inbox. Expires after the notifications in it."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """SHA-256 of client and user: unique on any shard, without revealing the user."""
    seen_until = models.DateTimeField()
    read_before = models.DateTimeField(null=True)
    """Marking everything as read goes on with what was created before. Absent if it is complete."""
    read_at = models.DateTimeField(null=True)
    """When that position was reached."""

    class Meta:
        db_table = "inbox_visits"
        indexes = (
            MongoIndex("seen_until", name="vis_seen", expire_after_seconds=INBOX_VISIT_SECONDS),
        )


class SentTestMessage(models.Model):
    """A message that a test key sent, as it was rendered: an entry of its client's test outbox."""

    client_id = ObjectIdField()
    notification_id = ObjectIdField()
    user_id = optional_text(128)
    type = models.CharField(max_length=64)
    channel = choice_field(Channel)
    address = models.CharField(max_length=320)
    """The address; of a push the device's ID, of a room the room's, of an inbox the user's."""
    content = models.JSONField()
    """What the provider got. Sensitive values are masked."""
    sent_at = models.DateTimeField()
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "test_outbox"
        default_permissions = ()
        indexes = (
            MongoIndex("client_id", "-sent_at", "-_id", name="out_client"),
            MongoIndex("notification_id", name="out_notification"),
            MongoIndex("purge_at", name="out_purge", expire_after_seconds=0),
        )


class TestClock(models.Model):
    """The clock of a test client that has moved it. Missing while its time is real time."""

    client_id = ObjectIdField(primary_key=True, db_column="_id")
    stands_at = models.DateTimeField()
    """The client's time, as long as real time is behind it."""
    target = optional_datetime()
    """The time to which it is moved, or missing once it is there."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """One process at a time moves a clock. The lease is in real time."""
    claim_count = models.IntegerField(default=0)
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "test_clocks"
        default_permissions = ()
        indexes = (MongoIndex("purge_at", name="clk_purge", expire_after_seconds=0),)


class LoggedRequest(models.Model):
    """A request of an API client, with its response and without a value that names anybody."""

    client_id = ObjectIdField()
    request_id = models.CharField(max_length=64)
    method = models.CharField(max_length=10)
    path = models.CharField(max_length=200)
    """With the names of its parameters in the place of their values."""
    status = models.IntegerField()
    code = optional_text(40)
    """Of the problem, if it was refused."""
    errors = ArrayField(models.CharField(max_length=300), null=True, blank=True)
    """Pointer and code of each invalid field."""
    duration_ms = models.IntegerField()
    body = models.TextField(null=True, blank=True)
    """As JSON: the kinds of its values, and values of the service's own."""
    body_bytes = models.IntegerField()
    notification_id = ObjectIdField(null=True, blank=True)
    at = models.DateTimeField()
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "request_log"
        default_permissions = ("view",)
        ordering = ("-id",)
        verbose_name = "request"
        indexes = (
            MongoIndex("client_id", "-_id", name="req_client"),
            MongoIndex("request_id", "-_id", name="req_request"),
            MongoIndex("purge_at", name="req_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


class WebhookLog(models.Model):
    """A verified webhook, stored before the provider gets its response."""

    provider = models.CharField(max_length=40)
    received_at = models.DateTimeField()
    body = models.TextField()
    search_keys = ArrayField(models.CharField(max_length=200), default=list)
    """IDs of its messages and digests of its addresses."""
    event_count = models.IntegerField(default=0)
    applied_count = models.IntegerField(default=0)  # Events that changed a delivery
    unmatched_count = models.IntegerField(default=0)  # Events without a known delivery
    unreadable_count = models.IntegerField(default=0)
    """Events of another form, without effect."""
    processed_at = optional_datetime()
    purge_at = optional_datetime()

    class Meta:
        db_table = "webhook_log"
        ordering = ("-received_at", "-id")
        permissions = (("replay_webhooklog", "Can replay provider webhooks"),)
        indexes = (
            MongoIndex("-received_at", "-_id", name="whk_received"),
            MongoIndex("search_keys", "-_id", name="whk_search"),
            MongoIndex("purge_at", name="whk_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.provider} {self.received_at:%Y-%m-%d %H:%M:%S}"
