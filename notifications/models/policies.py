"""Limits, digests, retention policies, and the state of providers."""

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from domain.channels import Channel
from domain.digests import DigestStatus
from domain.limits import Overflow
from domain.states import Category
from notifyproject.db.fields import choice_field, choices_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim

from .catalog import SLUG_LENGTH


class ProviderState(models.Model):
    """Whether staff have paused a provider."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)  # The provider's name
    paused_at = optional_datetime()  # Missing while the provider is in use
    paused_by = optional_text(150)
    reason = optional_text(200)

    class Meta:
        db_table = "provider_states"
        default_permissions = ("view",)
        verbose_name = "provider"
        permissions = (
            ("pause_provider", "Can pause and resume providers"),
            ("test_provider", "Can send a test through a provider"),
        )

    def __str__(self) -> str:
        return self.id


class Limit(models.Model):
    """How many messages a recipient gets in a rolling period."""

    name = models.CharField(primary_key=True, db_column="_id", max_length=SLUG_LENGTH)
    types = ArrayField(models.CharField(max_length=SLUG_LENGTH), default=list, blank=True)
    """Without types and categories, the limit applies to all messages."""
    categories = choices_field(Category)
    channels = choices_field(Channel)
    """Channels that count together."""
    max = models.IntegerField()
    period_seconds = models.IntegerField()
    min_gap_seconds = models.IntegerField(default=0)
    overflow = choice_field(Overflow, default=Overflow.LATER)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        db_table = "limits"
        ordering = ("name",)

    def __str__(self) -> str:
        return str(self.name)


class LimitUses(models.Model):
    """Counter of one limit for one recipient: the times of the messages that count."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=300)
    """The limit's name, and the recipient's user ID or the keyed digest of an address."""
    limit = models.CharField(max_length=SLUG_LENGTH)
    user_id = optional_text(128)
    uses = models.JSONField(default=list)
    """``[{"d": delivery, "at": time}]``, at most 100."""
    waiting = models.JSONField(default=list)
    """Deliveries that wait, first come first: ``[{"d": delivery, "until": time}]``."""
    own = models.JSONField(null=True, blank=True)
    """The recipient's own ``max`` and ``min_gap_seconds``, which apply if they are stricter."""
    purge_at = optional_datetime()
    """Missing while the recipient has own values."""

    class Meta:
        db_table = "limit_uses"
        default_permissions = ()
        indexes = (
            MongoIndex("purge_at", name="lim_purge", expire_after_seconds=0),
            MongoIndex("user_id", name="lim_user", sparse=True),
        )


class DailyUnits(models.Model):
    """The parts of texts that a client has used on one day, in UTC."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)
    """The day and the client: ``2026-11-28/…``."""
    client_id = ObjectIdField()
    units = models.IntegerField()
    abroad = models.IntegerField()
    """Those to other countries than the first of SMS_COUNTRIES."""
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "daily_units"
        default_permissions = ()
        indexes = (MongoIndex("purge_at", name="dun_purge", expire_after_seconds=0),)


class CountryUnits(models.Model):
    """The parts of texts to one country by one provider in ten minutes, or in a day, in UTC."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """Of ten minutes, country, provider, and beginning: ``PT/twilio/2026-11-28T12:10``. Of a day,
    provider, day, and country: ``days/twilio/2026-11-28/PT``."""
    country = models.CharField(max_length=2)
    provider = models.CharField(max_length=40)
    units = models.IntegerField()
    day = models.CharField(max_length=10, null=True, blank=True)
    """``2026-11-28``. Missing in ten minutes."""
    asked = models.IntegerField(null=True, blank=True)
    """Those of ten minutes that a stranger can cause: any but of marketing. Missing in a day."""
    blocks = models.IntegerField(null=True, blank=True)
    """Texts that the provider blocked because it suspects pumping. Missing without one."""
    purge_at = models.DateTimeField()

    class Meta:
        db_table = "country_units"
        default_permissions = ()
        indexes = (MongoIndex("purge_at", name="cun_purge", expire_after_seconds=0),)


class RetentionPolicy(models.Model):
    """How long the notifications of one category are kept."""

    category = choice_field(Category, primary_key=True, db_column="_id")
    content_days = models.IntegerField(null=True, blank=True)
    """Days after a notification's last change until its content and addresses are removed; empty:
    RETENTION_CONTENT_DAYS."""
    metadata_days = models.IntegerField(null=True, blank=True)
    """Days after its send time until it is deleted with its attempts; empty:
    RETENTION_METADATA_DAYS. Applies to notifications accepted after a change."""
    removed_until = optional_datetime(editable=False)
    """Notifications last changed before this time are processed."""

    class Meta:
        db_table = "retention_policies"
        ordering = ("category",)
        default_permissions = ("view", "change")
        verbose_name = "retention rule"

    def __str__(self) -> str:
        return str(self.get_category_display())


class Digest(models.Model):
    """Messages of one type to one recipient that are sent as one."""

    group = models.CharField(max_length=64)
    """Hash of recipient, client, type, channel, and key: one open digest for each."""
    status = choice_field(DigestStatus)
    outcome = optional_text(16)
    """The DigestOutcome, from SEALED on."""
    client_id = ObjectIdField()
    user_id = optional_text(128)
    type = models.CharField(max_length=SLUG_LENGTH)
    channel = choice_field(Channel)
    is_test = models.BooleanField(default=False)
    key = optional_text(200)
    """The value of the type's key variable; missing without one."""
    leader = optional_text(40)
    """The delivery that opened it and is sent by itself; missing without one."""
    max_items = models.IntegerField()
    min_items = models.IntegerField()
    template_version = models.IntegerField(null=True, blank=True)
    """The version of its carrier, from SEALED on."""
    opened_at = models.DateTimeField()
    window_ends_at = models.DateTimeField()
    """The end by its window. It stays if staff close the digest early."""
    closes_at = models.DateTimeField()
    due_at = optional_datetime()
    """When to close it, or to continue after a lost worker. Missing once it is closed."""
    is_cancelled = models.BooleanField(default=False)
    """A client or staff cancelled it: its members are cancelled, too."""
    epoch = models.IntegerField(default=0)
    """Fencing token: grows with each lease until the digest is sealed."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    """A worker's lease on its close."""
    claim_count = models.IntegerField(default=0)
    """Leases that ended without a close."""
    count = models.IntegerField(null=True, blank=True)
    """Members from SEALED on, without the dropped ones."""
    dropped = models.IntegerField(null=True, blank=True)
    """Members that were read, muted, expired, or otherwise not needed at its end."""
    carrier_id = ObjectIdField(null=True, blank=True)
    sealed_at = optional_datetime()
    closed_at = optional_datetime()
    erased_at = optional_datetime()
    """When its recipient was erased. It has no ``user_id`` and no ``key`` then."""
    purge_at = optional_datetime()

    class Meta:
        db_table = "digests"
        ordering = ("-opened_at", "-id")
        default_permissions = ("view",)
        permissions = (("end_digest", "Can send now and cancel"),)
        indexes = (
            MongoIndex(
                "group", name="dig_open", unique=True, partial={"status": DigestStatus.OPEN.value}
            ),
            MongoIndex("group", "-opened_at", name="dig_group"),
            MongoIndex("due_at", "_id", name="dig_due", partial={"due_at": {"$exists": True}}),
            MongoIndex("-opened_at", "-_id", name="dig_opened"),
            MongoIndex("client_id", "-opened_at", "-_id", name="dig_client"),
            MongoIndex(
                "user_id",
                "-opened_at",
                "-_id",
                name="dig_user",
                partial={"user_id": {"$exists": True}},
            ),
            MongoIndex("status", "-opened_at", "-_id", name="dig_status"),
            MongoIndex("purge_at", name="dig_purge", expire_after_seconds=0),
        )

    def __str__(self) -> str:
        return f"{self.type} {self.pk}"
