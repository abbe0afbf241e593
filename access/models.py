"""Who may use the service: the apps that call its API and the staff who use its admin."""

from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelArrayField, ObjectIdField
from django_mongodb_backend.managers import MongoManager
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choices_field, optional_datetime
from notifyproject.db.indexes import MongoIndex


class StaffUser(AbstractUser):
    """Somebody who works in the admin."""

    class Meta(AbstractUser.Meta):
        db_table = "staff_users"


class Scope(StrEnum):
    """What an API client may do."""

    NOTIFICATIONS_READ = "notifications:read"
    NOTIFICATIONS_WRITE = "notifications:write"
    NOTIFICATIONS_RESEND = "notifications:resend"
    RECIPIENTS_WRITE = "recipients:write"
    DEVICES_WRITE = "devices:write"
    INBOX_ISSUE = "inbox:issue"
    SUPPRESSIONS_WRITE = "suppressions:write"
    CALLBACKS_WRITE = "callbacks:write"
    TEMPLATES_WRITE = "templates:write"
    ADMIN = "admin"


class APIKey(EmbeddedModel):
    """A key of a client. The secret is not kept, only its hash."""

    prefix = models.CharField(max_length=16)
    secret_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    expires_at = optional_datetime()
    revoked_at = optional_datetime()
    last_used_at = optional_datetime()


class APIClient(models.Model):
    """An app that calls the API. It sees and changes its own notifications only."""

    name = models.CharField(max_length=120, unique=True)
    scopes = choices_field(Scope)
    is_test = models.BooleanField(default=False)
    """What it sends goes to the sandbox, and to nobody else. It never changes: its keys say so."""
    is_active = models.BooleanField(default=True)
    keys = EmbeddedModelArrayField(APIKey, default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    objects = MongoManager()

    class Meta:
        db_table = "api_clients"
        ordering = ("name",)
        verbose_name = "API client"
        indexes = (
            MongoIndex(
                "keys.prefix",
                name="cli_key_prefix",
                unique=True,
                partial={"keys.prefix": {"$exists": True}},
            ),
        )

    def __str__(self) -> str:
        return self.name


class LoginFailures(models.Model):
    """How many tries to sign in have failed of late."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """A keyed hash of whose they were, or where from: it does not say who."""
    count = models.IntegerField()
    expires_at = models.DateTimeField()
    """They count until then, and MongoDB forgets them."""

    objects = MongoManager()

    class Meta:
        db_table = "login_failures"
        indexes = (MongoIndex("expires_at", name="log_expires", expire_after_seconds=0),)

    def __str__(self) -> str:
        return self.id


class SecondFactor(models.Model):
    """What a member of staff proves who they are with, besides the password."""

    user_id = ObjectIdField(primary_key=True, db_column="_id")
    pending_key = models.TextField(null=True, blank=True)
    """Sealed: of a phone that is being set up."""
    invited_at = optional_datetime()
    sealed_key = models.TextField(null=True, blank=True)
    """Sealed: what the phone makes its codes of."""
    enrolled_at = optional_datetime()
    last_step = models.BigIntegerField(null=True, blank=True)
    """The half minute whose code was taken last: that code, and those before it, are used up."""
    recovery_codes = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    """SHA-256 of those that are left."""
    tries = models.IntegerField(null=True, blank=True)
    tries_until = optional_datetime()
    """They count until then."""

    objects = MongoManager()

    class Meta:
        db_table = "second_factors"

    def __str__(self) -> str:
        return str(self.user_id)


class InboxRevocation(models.Model):
    """What ends inbox tokens before their time: one token's end, or a person's new epoch."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``token:<jti>``, or ``person:<SHA-256 of client and user>``."""
    epoch = models.IntegerField(null=True, blank=True)
    """Of a person: tokens of an earlier one are void."""
    expires_at = optional_datetime()
    """Of a token: it has run out by then, and MongoDB forgets this."""

    objects = MongoManager()

    class Meta:
        db_table = "inbox_revocations"
        indexes = (MongoIndex("expires_at", name="rev_expires", expire_after_seconds=0),)

    def __str__(self) -> str:
        return self.id
