"""Devices that receive push messages."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.fields import EmbeddedModelField
from django_mongodb_backend.managers import MongoManager
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import optional_moment, optional_text, word
from notifyproject.db.indexes import MongoIndex


class Platform(StrEnum):
    """Where a device's app runs."""

    ANDROID = "android"
    IOS = "ios"
    WEB = "web"


class DeviceQuietHours(EmbeddedModel):
    """A daily span of local time in which this device is left alone."""

    enabled = models.BooleanField(default=False)
    start = models.CharField(max_length=5, default="22:00")
    end = models.CharField(max_length=5, default="07:00")
    timezone = models.CharField(max_length=64, default="UTC")


class DevicePreferences(EmbeddedModel):
    """What a device wants to be told."""

    enabled = models.BooleanField(default=True)
    categories = models.JSONField(default=dict, blank=True)
    quiet_hours = EmbeddedModelField(DeviceQuietHours, null=True, blank=True)


class Device(models.Model):
    """An installed app that push messages can reach."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """SHA-256 of the token: unique on any shard."""
    user_id = models.CharField(max_length=128)
    device_token = models.CharField(max_length=4096)
    platform = word(Platform)
    app_version = optional_text(40)
    device_model = optional_text(120)
    os_version = optional_text(40)
    language = optional_text(35)
    timezone = optional_text(64)
    notification_preferences = EmbeddedModelField(DevicePreferences, null=True, blank=True)
    is_active = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    last_seen = optional_moment()

    objects = MongoManager()

    class Meta:
        db_table = "devices"
        indexes = (
            MongoIndex("user_id", name="dev_user"),
            MongoIndex("device_token", name="dev_token", unique=True),
            MongoIndex("platform", name="dev_platform"),
            MongoIndex("last_seen", name="dev_last_seen"),
        )
