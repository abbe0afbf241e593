"""Devices that receive push messages."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex


class Platform(StrEnum):
    """The platform of a device's app."""

    ANDROID = "android"
    IOS = "ios"
    WEB = "web"


class DeactivationReason(StrEnum):
    """Why a device was deactivated."""

    UNREGISTERED = "unregistered"
    """The provider reported that the app was uninstalled or the token replaced."""
    SENDER_MISMATCH = "sender_mismatch"
    """The provider reported three times in a row that the token is another sender's."""
    SUSPECT = "suspect"
    """The provider reported three times in a row that the token is malformed."""
    REPLACED = "replaced"
    """The client reported a new token, which makes a new device: ``replaced_by``."""
    BY_USER = "by_user"
    """The client deactivated it, for example at sign-out."""
    BY_OPERATOR = "by_operator"


BY_PROVIDER = (
    DeactivationReason.UNREGISTERED,
    DeactivationReason.SENDER_MISMATCH,
    DeactivationReason.SUSPECT,
)
"""Reasons after which a later success reactivates the device."""


class DeviceQuietHours(EmbeddedModel):
    """A device's daily quiet hours in local time."""

    enabled = models.BooleanField(default=False)
    start = models.CharField(max_length=5, default="22:00")
    end = models.CharField(max_length=5, default="07:00")
    timezone = models.CharField(max_length=64, null=True, blank=True)
    """Empty: the device's own time zone."""


class DevicePreferences(EmbeddedModel):
    """A device's notification preferences."""

    enabled = models.BooleanField(default=True)
    categories = models.JSONField(default=dict, blank=True)
    """By category or type: ``{"marketing": false, "mfa_code": true}``."""
    quiet_hours = EmbeddedModelField(DeviceQuietHours, null=True, blank=True)


class DeactivationEvidence(EmbeddedModel):
    """The evidence for a deactivation."""

    at = models.DateTimeField()  # When the rejected send began, or when a person decided
    source = models.CharField(max_length=150)  # A provider's name, ``api``, or a member of staff
    code = optional_text(100)
    notification_id = optional_text(24)


class PushSubscription(EmbeddedModel):
    """A browser's subscription to web push."""

    host = models.CharField(max_length=255)
    """The push service's."""
    fingerprint = models.CharField(max_length=16)
    """Of the VAPID key that the browser subscribed with."""
    secrets = models.TextField()
    """Endpoint and keys, encrypted: who has them can push to the browser."""


class Device(models.Model):
    """A device of a recipient. Only ``devices.registration`` and ``devices.status`` write it."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """SHA-256 of the token, or of the subscription's endpoint: unique on any shard."""
    user_id = models.CharField(max_length=128)
    device_token = optional_text(4096)
    """A device has a token of Firebase or a subscription."""
    subscription = EmbeddedModelField(PushSubscription, null=True, blank=True)
    platform = choice_field(Platform)
    app_version = optional_text(40)
    device_model = optional_text(120)
    os_version = optional_text(40, verbose_name="OS version")
    language = optional_text(35)
    timezone = optional_text(64, verbose_name="time zone")
    notification_preferences = EmbeddedModelField(DevicePreferences, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    deactivated_at = optional_datetime()
    deactivation_reason = choice_field(DeactivationReason, null=True, blank=True)
    deactivation_evidence = EmbeddedModelField(DeactivationEvidence, null=True, blank=True)
    replaced_by = optional_text(64)
    """The device with the token that followed. It counts while it is the same user's."""
    replaces = ArrayField(models.CharField(max_length=64), null=True, blank=True)
    """The devices with the tokens before, the latest first: they are the same installation."""
    token_rejections = models.IntegerField(default=0)
    """Rejections in a row as malformed or another sender's token; three deactivate."""
    suspected_at = optional_datetime()
    """When the last such send began."""
    last_accepted_at = optional_datetime()
    last_receipt_at = optional_datetime()
    proven_at = optional_datetime()
    """The last registration, reactivation, or success. Older evidence doesn't deactivate."""
    created_at = models.DateTimeField()
    """When its current user registered it."""
    updated_at = models.DateTimeField()
    last_seen = optional_datetime()
    """When the app last registered or sent a heartbeat, accurate to 5 minutes."""

    class Meta:
        db_table = "devices"
        ordering = ("-last_seen", "-id")
        permissions = (
            ("deactivate_device", "Can disable devices"),
            ("reactivate_device", "Can enable devices"),
        )
        indexes = (
            MongoIndex("user_id", "is_active", "-created_at", "-_id", name="dev_user"),
            MongoIndex("platform", "-last_seen", "-_id", name="dev_platform"),
            MongoIndex("-last_seen", "-_id", name="dev_last_seen"),
            MongoIndex(
                "deactivation_reason",
                "-last_seen",
                "-_id",
                name="dev_inactive",
                partial={"deactivation_reason": {"$exists": True}},
            ),
        )

    def __str__(self) -> str:
        return f"{self.platform} {self.id[:12]}"
