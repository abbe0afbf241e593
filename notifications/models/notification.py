"""A notification, its deliveries, and its indexes."""

from django.db import models
from django_mongodb_backend.fields import (
    ArrayField,
    EmbeddedModelArrayField,
    EmbeddedModelField,
    ObjectIdField,
)
from django_mongodb_backend.models import EmbeddedModel

from domain.channels import Channel
from domain.retry import DEFAULT_MAX_RETRIES
from domain.states import Category, DeliveryStatus, NotificationStatus, Priority
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

USER_ID_LENGTH = 128
SOURCE_LENGTH = 64
SUBJECT_LENGTH = 255
ACTION_LENGTH = 32
FILENAME_LENGTH = 120
CONTENT_TYPE_LENGTH = 127  # RFC 6838 allows this for each half; in practice it is enough for both


class RecipientCopy(EmbeddedModel):
    """The recipient of a notification, as known at acceptance."""

    device_ids = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    email = optional_text(254)
    phone = optional_text(16)
    room = optional_text(64)
    """The ID of the room that it is posted to."""
    name = optional_text(200)
    locale = optional_text(35)
    timezone = optional_text(64)
    given = ArrayField(models.CharField(max_length=16), null=True, blank=True)
    """Names of the fields that the request contained."""


class Attachment(EmbeddedModel):
    """An email attachment, which is fetched from its URL when the email is sent."""

    url = models.CharField(max_length=2048)
    filename = models.CharField(max_length=FILENAME_LENGTH)
    content_type = models.CharField(max_length=CONTENT_TYPE_LENGTH)


class Content(EmbeddedModel):
    """The content of a notification, from the request or rendered from a template."""

    subject = optional_text(SUBJECT_LENGTH)
    body = models.TextField(null=True, blank=True)
    template_id = optional_text(64)
    template_version = models.IntegerField(null=True)
    is_masked = models.BooleanField(default=False)
    """Subject and body are masked. They are rendered again at send time."""
    image_url = optional_text(2048)
    deep_link = optional_text(2048)
    payload = models.JSONField(null=True, blank=True)
    reply_to = optional_text(254)
    attachments = EmbeddedModelArrayField(Attachment, default=list, blank=True)
    has_own_subject = models.BooleanField(default=False)
    """The subject is the request's own, beside a template's body."""
    event_at = optional_datetime()
    """The event of a reminder, whose remaining time is computed when sending."""
    push = models.JSONField(null=True, blank=True)
    """How devices present a push."""
    look = models.JSONField(null=True, blank=True)
    """The number of its design, with its brand and layout. Missing if it uses none."""


class Hold(EmbeddedModel):
    """A time in which an outage held a delivery. It ends with the delivery's next event."""

    reason = models.CharField(max_length=40)
    provider = models.CharField(max_length=40)
    since = models.DateTimeField()
    detail = optional_text(200)


class Delivery(EmbeddedModel):
    """One channel of a notification, and its state."""

    channel = choice_field(Channel)
    status = choice_field(DeliveryStatus)
    attempt_count = models.IntegerField(default=0)
    uncounted_attempts = models.IntegerField(default=0)
    """Attempts that an outage ended, which don't count against ``max_attempts``."""
    earlier_attempts = models.IntegerField(null=True, blank=True)
    """Attempts before the last reopening, at which retries and delays started over."""
    max_attempts = models.IntegerField(default=DEFAULT_MAX_RETRIES + 1)
    claim_count = models.IntegerField(default=0)
    """Claims in a row without a send."""
    step = models.IntegerField(null=True, blank=True)
    """Its step, from 1, in the notification's plan. Missing without a plan."""
    skip_if_late = models.IntegerField(null=True, blank=True)
    """Seconds after ``first_due_at`` within which its step must begin; missing: no limit."""
    digest_id = ObjectIdField(null=True, blank=True)
    """The digest it waits for, or is part of."""
    digest_epoch = models.IntegerField(null=True, blank=True)
    """The epoch of the digest's lease that selected it. Missing before."""
    skips_digest = models.BooleanField(null=True)
    """It left its digest and is sent by itself; missing otherwise."""
    carried_by = ObjectIdField(null=True, blank=True)
    """Merged: the notification that carries its digest."""
    merged_at = optional_datetime()
    first_due_at = models.DateTimeField()
    next_attempt_at = optional_datetime()
    """Pending: when it is due. Unknown: when the type's policy decides."""
    last_attempt_at = optional_datetime()
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    provider = optional_text(40)
    provider_message_id = optional_text(200)
    failure_code = optional_text(40)
    failure_reason = optional_text(500)
    held_reason = optional_text(40)
    """Pending: the WaitReason that the failure code doesn't give, or none. Expired: the outage."""
    holds = EmbeddedModelArrayField(Hold, null=True, blank=True)
    """The outages that held it, oldest first. Missing without one."""
    held_ms = models.IntegerField(null=True, blank=True)
    """How long these, and the provider's rate limits, have held it. Missing if they never did."""
    ready_at = optional_datetime()
    """Until when it was last held: the time before is no latency. Missing if it never was."""
    ended_at = optional_datetime()
    """When it ended without being sent: expired, suppressed, or cancelled."""
    accepted_targets = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    """Devices for which the provider accepted the message, or that reported it."""
    ambiguous_targets = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    """Devices with an unknown outcome, while others are retried."""
    ambiguous_provider = optional_text(40)
    """Provider of an ambiguous attempt. No other provider may get the delivery."""
    series_first = models.IntegerField(null=True, blank=True)
    """First of the attempts that are one request to an idempotent provider. Missing without a
    repeat."""
    series_last = models.IntegerField(null=True, blank=True)
    """Last of these attempts. The series means nothing once a later attempt has begun."""
    failed_over_from = optional_text(40)
    """Provider that has just refused the delivery. The next provider is used at once."""
    sent_at = optional_datetime()
    delivered_at = optional_datetime()
    read_at = optional_datetime()
    failed_at = optional_datetime()
    """When it failed, or expired while an outage held it."""


class Replacement(EmbeddedModel):
    """How a client replaced its notification before anything was sent."""

    count = models.IntegerField()
    at = models.DateTimeField()
    """When it was last replaced."""
    request = models.CharField(max_length=64)
    """A keyed digest of the last request, by which a repeated one is known."""


class ErrorRecord(EmbeddedModel):
    """One entry of a notification's error history."""

    timestamp = models.DateTimeField()
    channel = choice_field(Channel)
    code = models.CharField(max_length=40)
    error = models.CharField(max_length=500)


# Partial filters: an index holds only the documents that its reads need.
OPEN_WORK = {"due_at": {"$exists": True}}
HAS_FAILED = {"failed_at": {"$exists": True}}
SCHEDULED = {"scheduled_at": {"$exists": True}}
ENTITY = {"entity_id": {"$exists": True}}
HAS_SEARCH_KEYS = {"search_keys": {"$gt": ""}}
IN_INBOX = {"inbox_at": {"$exists": True}}
SNOOZED = {"snoozed_until": {"$exists": True}}
FROM_BROADCAST = {"broadcast_id": {"$exists": True}}


class Notification(models.Model):
    """A request to notify one recipient, and the result on each channel."""

    client_id = ObjectIdField()
    external_id = optional_text(128)
    source = optional_text(SOURCE_LENGTH)
    """The part of the client's system that sent it, by the client's own name."""
    idempotency_key = optional_text(255)
    request_id = optional_text(64)
    traceparent = optional_text(55)
    """Span of the request (W3C Trace Context); missing if not traced."""
    is_test = models.BooleanField(default=False)
    """Sent to the sandbox, for a client in test mode. Missing in all others."""
    broadcast_id = ObjectIdField(null=True, blank=True)

    user_id = optional_text(USER_ID_LENGTH)
    recipient = EmbeddedModelField(RecipientCopy)
    type = models.CharField(max_length=64)
    category = choice_field(Category)
    priority = choice_field(Priority)
    entity_id = optional_text(128)
    channels = choices_field(Channel)
    content = EmbeddedModelField(Content)
    data = models.JSONField(default=dict, blank=True)
    encrypted_content = models.TextField(null=True, blank=True, editable=False)
    """Encrypted values that content and data mask; missing once they are not needed any more."""
    encrypted_until = optional_datetime()
    """When to remove ``encrypted_content`` if only the inbox still needs it."""

    delivery = EmbeddedModelArrayField(Delivery, default=list)
    digest_id = ObjectIdField(null=True, blank=True)
    """The digest that it carries. Missing in all others."""
    ignores_limits = models.BooleanField(null=True)
    """Sent beyond the limits of its recipient; missing otherwise."""
    plan_until = optional_text(16)
    """The goal after which no later step is sent. Missing without later steps."""
    acted_at = optional_datetime()
    """When the recipient chose an action, or the client said so. Missing before."""
    action = optional_text(ACTION_LENGTH)
    """The action that the recipient chose in the inbox. Missing without one."""
    status = choice_field(NotificationStatus)
    due_at = optional_datetime()
    """When this document needs processing next; missing when nothing is open."""
    scheduled_at = optional_datetime()
    scheduled_local = optional_text(19)
    """The send time on the recipient's own clock; missing if the request named a time zone."""
    expires_at = optional_datetime()
    """No send starts at or after this time."""
    ttl_seconds = models.IntegerField(null=True, blank=True)
    """Lifetime that expires_at derives from, if it is relative to the send time."""
    purge_at = optional_datetime()

    error = optional_text(500)
    """The latest error of a channel that has not succeeded since; missing without one."""
    error_history = EmbeddedModelArrayField(ErrorRecord, default=list, blank=True)
    inbox_at = optional_datetime()
    """Since when it is in the inbox: delivered in-app, or back from a snooze."""
    is_read = models.BooleanField(default=False)
    """Read on any channel or marked as read, and not marked as unread since."""
    read_at = optional_datetime()
    marked_read_at = optional_datetime()
    """When the client or recipient first marked it as read. Missing if they never did."""
    unread_at = optional_datetime()
    """When it was marked as unread. Removed at the next read."""
    is_archived = models.BooleanField(default=False)
    """Archived by its owner. Independent of is_active."""
    archived_at = optional_datetime()
    snoozed_until = optional_datetime()
    """When it comes back to the inbox. Missing unless its owner snoozed it; then it has no
    ``inbox_at``."""
    resurfaced_at = optional_datetime()
    """When it last came back from a snooze as new."""
    is_active = models.BooleanField(default=True)
    """False once deleted or erased: only the console still shows it."""
    deleted_at = optional_datetime()
    """When the client deleted it. Removed if staff restore it."""
    erased_at = optional_datetime()
    content_removed_at = optional_datetime()
    callback_revision = models.IntegerField(null=True, blank=True)
    """Counts changes of deliveries. Missing if the client has no callback endpoint."""
    callback_due_at = optional_datetime()
    """Since when there are unpublished callback events. Missing if there are none."""
    search_keys = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    """What it is found by besides its ID and its user: a letter for the kind, and the value."""
    replaced = EmbeddedModelField(Replacement, null=True, blank=True)
    """Missing if its client never replaced it."""
    resent_from = ObjectIdField(null=True, blank=True)
    resent_as = ArrayField(ObjectIdField(), default=list, blank=True)
    sent_at = optional_datetime()
    failed_at = optional_datetime()
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "notifications"
        ordering = ("-created_at", "-id")
        permissions = (
            ("retry_notification", "Can retry failed deliveries"),
            ("resend_notification", "Can resend"),
            ("resend_several", "Can resend several at once"),
            ("send_one", "Can send one message"),
            ("correct_address", "Can correct an address and resend"),
            ("cancel_notification", "Can cancel pending deliveries"),
            ("reschedule_notification", "Can reschedule, and send now"),
            ("restore_notification", "Can restore deleted notifications"),
            ("view_addresses", "Can see unmasked addresses"),
            ("reveal_addresses", "Can reveal one masked address, with an audit entry"),
        )
        # What each is for: docs/reference/indexes.md. Every write pays for each.
        indexes = (
            MongoIndex(
                "user_id",
                "-created_at",
                "-_id",
                "client_id",
                "is_active",
                "is_read",
                name="ntf_user_feed",
            ),
            MongoIndex("type", "-created_at", "-_id", name="ntf_type_created"),
            MongoIndex("status", "-created_at", "-_id", name="ntf_status_created"),
            MongoIndex("updated_at", name="ntf_updated"),
            MongoIndex("client_id", "-created_at", "-_id", name="ntf_client_created"),
            MongoIndex(
                "delivery.channel",
                "delivery.status",
                "-created_at",
                "-_id",
                name="ntf_delivery_status",
            ),
            MongoIndex(
                "search_keys", "-created_at", "-_id", name="ntf_search", partial=HAS_SEARCH_KEYS
            ),
            MongoIndex("status", "scheduled_at", name="ntf_status_scheduled", partial=SCHEDULED),
            MongoIndex(
                "client_id",
                "status",
                "scheduled_at",
                "_id",
                name="ntf_client_scheduled",
                partial=SCHEDULED,
            ),
            MongoIndex("priority", "due_at", "_id", name="ntf_due", partial=OPEN_WORK),
            MongoIndex(
                "priority",
                "client_id",
                "delivery.channel",
                "delivery.next_attempt_at",
                name="ntf_fair_queue",
                partial=OPEN_WORK,
            ),
            MongoIndex("-failed_at", "-_id", name="ntf_failed", partial=HAS_FAILED),
            MongoIndex(
                "user_id",
                "type",
                "entity_id",
                "client_id",
                "is_test",
                name="ntf_once_per_entity_client",
                unique=True,
                partial={**ENTITY, "user_id": {"$exists": True}, "resent_from": None},
            ),
            MongoIndex(
                "user_id",
                "client_id",
                "is_active",
                "is_archived",
                "is_read",
                "-inbox_at",
                "-_id",
                name="ntf_inbox",
                partial=IN_INBOX,
            ),
            MongoIndex(
                "user_id",
                "client_id",
                "snoozed_until",
                "_id",
                name="ntf_snoozed",
                partial=SNOOZED,
            ),
            MongoIndex("snoozed_until", name="ntf_snooze_due", sparse=True),
            MongoIndex(
                "broadcast_id", "status", "_id", name="ntf_broadcast", partial=FROM_BROADCAST
            ),
            MongoIndex("encrypted_until", name="ntf_encrypted", sparse=True),
            MongoIndex("callback_due_at", name="ntf_callback", sparse=True),
            MongoIndex("purge_at", name="ntf_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"


class FailedNotification(Notification):
    """A notification with a failed channel, for a list in the console."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "failed delivery"
        verbose_name_plural = "failed deliveries"


class WaitingNotification(Notification):
    """A notification with open deliveries, for a list in the console."""

    class Meta:
        proxy = True
        default_permissions = ()
        verbose_name = "waiting notification"
        verbose_name_plural = "scheduled and held"
