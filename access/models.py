"""API clients, staff, and the state of their authentication."""

from enum import StrEnum

from django.contrib.auth.models import AbstractUser
from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelArrayField, ObjectIdField
from django_mongodb_backend.models import EmbeddedModel

from notifyproject.db.fields import choices_field, optional_datetime
from notifyproject.db.indexes import MongoIndex


class StaffUser(AbstractUser):
    """A staff user, who signs in to the console."""

    class Meta(AbstractUser.Meta):
        db_table = "staff_users"


class Scope(StrEnum):
    """A permission of an API client."""

    NOTIFICATIONS_READ = "notifications:read"
    NOTIFICATIONS_WRITE = "notifications:write"
    NOTIFICATIONS_RESEND = "notifications:resend"
    NOTIFICATIONS_CRITICAL = "notifications:critical"
    RECIPIENTS_READ = "recipients:read"
    RECIPIENTS_WRITE = "recipients:write"
    DEVICES_WRITE = "devices:write"
    INBOX_ISSUE = "inbox:issue"
    SUPPRESSIONS_WRITE = "suppressions:write"
    CALLBACKS_WRITE = "callbacks:write"
    TEMPLATES_WRITE = "templates:write"
    BROADCASTS_APPROVE = "broadcasts:approve"
    BROADCASTS_OVERRIDE = "broadcasts:override"
    LIMITS_WRITE = "limits:write"
    LIMITS_IGNORE = "limits:ignore"
    TYPES_ADMIN = "types:admin"
    ADMIN = "admin"


class APIKey(EmbeddedModel):
    """A key of a client. Only the hash of its secret is stored."""

    prefix = models.CharField(max_length=16)
    secret_hash = models.CharField(max_length=64)
    created_at = models.DateTimeField()
    expires_at = optional_datetime()
    revoked_at = optional_datetime()
    last_used_at = optional_datetime()
    requires_approval = models.BooleanField(default=False)
    """Another person approves each broadcast that is created with it."""


class APIClient(models.Model):
    """A client of the API. It can access only its own notifications."""

    name = models.CharField(max_length=120, unique=True)
    scopes = choices_field(Scope)
    is_test = models.BooleanField(default=False)
    """Its messages go to the sandbox only. Never changes: the key prefix depends on it."""
    is_active = models.BooleanField(default=True)
    keys = EmbeddedModelArrayField(APIKey, default=list, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

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
    """Recent failed sign-ins of an account, an address, or both together."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    """A keyed hash of the account or address."""
    count = models.IntegerField()
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "login_failures"
        indexes = (MongoIndex("expires_at", name="log_expires", expire_after_seconds=0),)


class SecondFactor(models.Model):
    """A staff member's second factor: TOTP key and recovery codes."""

    user_id = ObjectIdField(primary_key=True, db_column="_id")
    pending_key = models.TextField(null=True, blank=True)
    """Encrypted TOTP key of an enrollment that isn't confirmed yet."""
    invited_at = optional_datetime()
    encrypted_key = models.TextField(null=True, blank=True)
    enrolled_at = optional_datetime()
    last_step = models.BigIntegerField(null=True, blank=True)
    """The time step of the last accepted code: codes of it and earlier steps are used up."""
    recovery_codes = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    """SHA-256 hashes of the unused codes."""
    tries = models.IntegerField(null=True, blank=True)
    tries_until = optional_datetime()

    class Meta:
        db_table = "second_factors"


class OidcIdentity(models.Model):
    """Links a person at an OpenID provider to a staff account."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=512)
    """The issuer and the subject, separated by a space."""
    user_id = ObjectIdField()
    created_at = models.DateTimeField()

    class Meta:
        db_table = "oidc_identities"


class OidcSession(models.Model):
    """A console session of a person who signed in by an OpenID provider.

    Without its document, the session ends at the next request.
    """

    id = models.CharField(primary_key=True, db_column="_id", max_length=64)
    user_id = ObjectIdField()
    issuer = models.CharField(max_length=255)
    subject = models.CharField(max_length=255)
    provider_session = models.CharField(max_length=255, null=True, blank=True)
    """The provider's ID of its session (``sid``)."""
    access_token = models.TextField()
    """Encrypted, like the refresh token."""
    refresh_token = models.TextField(null=True, blank=True)
    checked_at = models.DateTimeField()
    """When the provider last confirmed the person's groups."""
    check_at = models.DateTimeField()
    """When a request asks for the groups again."""
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "oidc_sessions"
        indexes = (
            MongoIndex("expires_at", name="ois_expires", expire_after_seconds=0),
            MongoIndex("subject", name="ois_subject"),
            MongoIndex(
                "provider_session",
                name="ois_provider_session",
                partial={"provider_session": {"$exists": True}},
            ),
        )


class OidcLogout(models.Model):
    """A logout token that was accepted, and isn't accepted again."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=512)
    """The issuer and the token's ID, separated by a space."""
    expires_at = models.DateTimeField()

    class Meta:
        db_table = "oidc_logouts"
        indexes = (MongoIndex("expires_at", name="oil_expires", expire_after_seconds=0),)


class InboxRevocation(models.Model):
    """A revocation of one inbox token, or a recipient's epoch, which revokes older tokens."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``token:<jti>``, or ``person:<SHA-256 of client and user>``."""
    epoch = models.IntegerField(null=True, blank=True)
    """Of a recipient: tokens of an earlier epoch are invalid."""
    expires_at = optional_datetime()
    """Of a token: it has expired by then, and MongoDB deletes the revocation."""

    class Meta:
        db_table = "inbox_revocations"
        indexes = (MongoIndex("expires_at", name="rev_expires", expire_after_seconds=0),)
