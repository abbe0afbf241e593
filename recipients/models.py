"""Recipients: contact details, preferences, suppressions, topics, and service windows."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

# Partial filters: an index holds only the documents that its reads need.
EMAIL = {"email": {"$exists": True}}
PHONE = {"phone": {"$exists": True}}
NAMED = {"name_words": {"$exists": True}}


class PersonalQuietHours(EmbeddedModel):
    """A recipient's daily quiet hours in local time."""

    enabled = models.BooleanField(default=False)
    start = models.CharField(max_length=5, default="22:00")
    end = models.CharField(max_length=5, default="07:00")
    timezone = models.CharField(max_length=64, null=True, blank=True)
    """Empty: the recipient's own time zone."""


class Recipient(models.Model):
    """A registered recipient, shared by all clients: addresses, preferences, quiet hours."""

    user_id = models.CharField(primary_key=True, db_column="_id", max_length=128)
    email = optional_text(254)
    phone = optional_text(16)
    name = optional_text(200)
    name_words = ArrayField(models.CharField(max_length=200), null=True, blank=True)
    """The words of the name, without case and accents: found while somebody types."""
    locale = optional_text(35)
    timezone = optional_text(64)
    attributes = models.JSONField(default=dict, blank=True)
    preferences = models.JSONField(default=dict, blank=True)
    """By type or category: ``{"marketing": {"muted": true}, "alert": {"channels": ["push"]}}``;
    fields: :class:`recipients.preferences.Preference`."""
    quiet_hours = EmbeddedModelField(PersonalQuietHours, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    """False during erasure."""
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "recipients"
        ordering = ("user_id",)
        permissions = (
            ("erase_recipient", "Can erase recipients"),
            ("export_recipient", "Can export the data of recipients"),
            ("sign_out_recipient", "Can revoke the inbox tokens of recipients"),
        )
        indexes = (
            MongoIndex("email", "_id", name="rcp_email", partial=EMAIL),
            MongoIndex("phone", "_id", name="rcp_phone", partial=PHONE),
            MongoIndex("~name", name="rcp_name"),
            MongoIndex("name_words", "_id", name="rcp_name_words", partial=NAMED),
        )

    def __str__(self) -> str:
        return self.user_id


class SuppressionReason(StrEnum):
    """Why an address is suppressed."""

    HARD_BOUNCE = "hard_bounce"
    COMPLAINT = "complaint"
    UNSUBSCRIBED = "unsubscribed"
    MANUAL = "manual"


class Suppression(models.Model):
    """A suppression of an address for one reason. An address may have several."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=120)
    """``<key>:<reason>``: unique on any shard, without the address."""
    key = models.CharField(max_length=110)
    """``<channel>:<keyed digest of the address>``, shared by all suppressions of an address."""
    channel = models.CharField(max_length=40)
    address = optional_text(254)
    """Missing after an erasure. The key still identifies the address."""
    reason = choice_field(SuppressionReason)
    source = models.CharField(max_length=40)
    """A provider's name, ``api``, ``admin``, or ``one-click``."""
    marketing_only = models.BooleanField(default=False)
    """True suppresses marketing only: order confirmations and codes are still sent."""
    created_at = models.DateTimeField()
    expires_at = optional_datetime()

    class Meta:
        db_table = "suppressions"
        ordering = ("-created_at", "-id")
        indexes = (
            MongoIndex("key", name="sup_key"),
            MongoIndex("-created_at", "-_id", name="sup_created"),
            MongoIndex("channel", "reason", "-created_at", "-_id", name="sup_kind"),
            MongoIndex("expires_at", name="sup_expires", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.channel}: {self.reason}"


class TopicMember(models.Model):
    """A recipient's membership of a topic."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=200)
    """``<topic>:<user id>``: unique on any shard."""
    topic = models.CharField(max_length=64)
    user_id = models.CharField(max_length=128)
    created_at = models.DateTimeField()

    class Meta:
        db_table = "topic_members"
        ordering = ("id",)
        indexes = (
            MongoIndex("topic", "_id", name="tpm_topic"),
            MongoIndex("user_id", "_id", name="tpm_user"),
        )

    def __str__(self) -> str:
        return f"{self.topic}: {self.user_id}"


class ServiceWindow(models.Model):
    """A WhatsApp service window, which a recipient's message opened."""

    phone = models.CharField(primary_key=True, db_column="_id", max_length=16)
    """E.164, folded by :func:`domain.addresses.fold_phone`; or a user ID of WhatsApp."""
    last_inbound_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "service_windows"
        ordering = ("phone",)
        indexes = (MongoIndex("expires_at", name="win_expires", expire_after_seconds=0),)

    def __str__(self) -> str:
        return f"since {self.last_inbound_at:%Y-%m-%d %H:%M}"


class WhatsAppIdentity(models.Model):
    """Another identifier by which WhatsApp reports a number."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=140)
    """A user ID, or another form of the number in E.164."""
    phone = models.CharField(max_length=16)
    """E.164, folded by :func:`domain.addresses.fold_phone`."""
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "whatsapp_identities"
        ordering = ("id",)
        indexes = (
            MongoIndex("phone", name="wid_phone"),
            MongoIndex("expires_at", name="wid_expires", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"until {self.expires_at:%Y-%m-%d}"


class SoftBounces(models.Model):
    """The soft bounces of an address in a row."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=300)
    """``<channel>:<address>``: unique on any shard."""
    events = ArrayField(models.CharField(max_length=200), default=list)
    """Ids of provider receipts and of the service's own attempts."""
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "soft_bounces"
        indexes = (MongoIndex("expires_at", name="sob_expires", expire_after_seconds=0),)
