"""Rooms of teams."""

from django.db import models
from django_mongodb_backend.fields import ArrayField

from domain.rooms import RoomKind
from notifyproject.db.fields import choice_field, optional_datetime, optional_text

NAME_LENGTH = 100
TARGET_LENGTH = 2048
REASON_LENGTH = 200


class Room(models.Model):
    """A room that staff have set up. Requests name it by its ID."""

    slug = models.CharField(primary_key=True, db_column="_id", max_length=64)
    kind = choice_field(RoomKind)
    name = models.CharField(max_length=NAME_LENGTH)
    target = models.CharField(max_length=4 * TARGET_LENGTH, editable=False)
    """Encrypted: a URL that is a credential, or the ID of a channel."""
    masked_target = models.CharField(max_length=260)
    """The displayable part of the target."""
    secrets = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    """Encrypted secrets that sign messages to a webhook, the newest first."""
    min_gap_seconds = models.IntegerField(default=1)
    """Least time between two messages."""
    enabled = models.BooleanField(default=True)
    disabled_reason = optional_text(REASON_LENGTH)
    """Why the provider's answer disabled it; missing if staff did."""
    disabled_at = optional_datetime()
    last_accepted_at = optional_datetime()
    """To the minute: when the provider last accepted a message."""
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        db_table = "rooms"
        ordering = ("slug",)
        permissions = (("switch_room", "Can disable and enable rooms"),)

    def __str__(self) -> str:
        return self.name
