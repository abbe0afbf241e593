"""Devices that receive push messages."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any

from django.db import models
from django_mongodb_backend.fields import EmbeddedModelField
from django_mongodb_backend.managers import MongoManager
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex

Document = Mapping[str, Any]
"""A device as it is stored."""


class Platform(StrEnum):
    """Where a device's app runs."""

    ANDROID = "android"
    IOS = "ios"
    WEB = "web"


class DeactivationReason(StrEnum):
    """Why nothing more is pushed to a device."""

    UNREGISTERED = "unregistered"
    """The provider says that the app is gone, or that its token was replaced."""
    SENDER_MISMATCH = "sender_mismatch"
    """The provider said three times in a row that the token is another sender's."""
    SUSPECT = "suspect"
    """The provider called the token malformed three times in a row."""
    REPLACED = "replaced"
    """The app told of a new token: that is another device here."""
    BY_USER = "by_user"
    """The app asked for it, such as when its user signed out."""
    BY_OPERATOR = "by_operator"
    """Somebody switched it off in the console."""


BY_PROVIDER = (
    DeactivationReason.UNREGISTERED,
    DeactivationReason.SENDER_MISMATCH,
    DeactivationReason.SUSPECT,
)
"""Reasons that a later proof of life from the provider refutes."""


class DeviceQuietHours(EmbeddedModel):
    """A daily span of local time in which this device is left alone."""

    enabled = models.BooleanField(default=False)
    start = models.CharField(max_length=5, default="22:00")
    end = models.CharField(max_length=5, default="07:00")
    timezone = models.CharField(max_length=64, null=True, blank=True)
    """Empty: the device's own zone."""


class DevicePreferences(EmbeddedModel):
    """What a device wants to be told."""

    enabled = models.BooleanField(default=True)
    categories = models.JSONField(default=dict, blank=True)
    """By category or type: ``{"marketing": false, "mfa_code": true}``."""
    quiet_hours = EmbeddedModelField(DeviceQuietHours, null=True, blank=True)


class DeactivationEvidence(EmbeddedModel):
    """What a deactivation rests on."""

    at = models.DateTimeField()
    """When the send began that was answered with it, or when somebody decided it."""
    source = models.CharField(max_length=150)
    """A provider's name, ``api``, or a member of staff."""
    code = optional_text(100)
    """The provider's own word for it."""
    notification_id = optional_text(24)
    """What was being sent."""


class Device(models.Model):
    """An installed app that push messages can reach. Written by :mod:`devices.registration` only."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """SHA-256 of the token: unique on any shard."""
    user_id = models.CharField(max_length=128)
    device_token = models.CharField(max_length=4096)
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
    suspicions = models.IntegerField(default=0)
    """How often in a row the token was called malformed, or another sender's; three deactivate."""
    suspected_at = optional_datetime()
    """When the last send began that ended so."""
    last_accepted_at = optional_datetime()
    """When the provider last took a message for it."""
    last_receipt_at = optional_datetime()
    """When the device itself last reported a message."""
    proven_at = optional_datetime()
    """The last registration, undo or proof of life: older evidence deactivates nothing."""
    created_at = models.DateTimeField()
    """When its present user got it."""
    updated_at = models.DateTimeField()
    last_seen = optional_datetime()
    """When its app last registered or sent a heartbeat, to five minutes."""

    objects = MongoManager()

    class Meta:
        db_table = "devices"
        ordering = ("-last_seen", "-id")
        permissions = (
            ("deactivate_device", "Can switch devices off"),
            ("reactivate_device", "Can switch devices on again"),
        )
        indexes = (
            MongoIndex("user_id", "is_active", "-created_at", "-_id", name="dev_user"),
            MongoIndex("device_token", name="dev_token", unique=True),
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
