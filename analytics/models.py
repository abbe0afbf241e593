"""Events, the figures over time, and the alerts that are raised when something is wrong."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.fields import ArrayField, ObjectIdField
from django_mongodb_backend.managers import MongoManager

from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex


class AnalyticsEvent(models.Model):
    """Something that happened to a notification. Written by the roll-up; never changed."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``<notification>.<channel>.<what>``: writing it twice is writing it once."""
    event_type = models.CharField(max_length=64)
    """delivery.sent, delivery.delivered, delivery.read, delivery.failed."""
    entity_id = optional_text(128)
    """The notification."""
    user_id = optional_text(128)
    data = models.JSONField(default=dict, blank=True)
    """Channel, type, provider and, of a failure, its code. No address and no text."""
    created_at = models.DateTimeField()
    """When it happened, not when it was written."""
    purge_at = optional_datetime()

    objects = MongoManager()

    class Meta:
        db_table = "analytics_events"
        indexes = (
            MongoIndex("event_type", "created_at", name="evt_type_created"),
            MongoIndex("user_id", "created_at", name="evt_user_created"),
            MongoIndex("entity_id", "event_type", name="evt_entity_type"),
            MongoIndex("purge_at", name="evt_purge", expire_after_seconds=0),
        )


class Interval(StrEnum):
    """The span a figure is for."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class MetricsAggregate(models.Model):
    """One figure for one span of time and one set of dimensions."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=400)
    """``<metric>|<interval>|<timestamp>|<dimension>``: a span is replaced, never added to."""
    metric_name = models.CharField(max_length=64)
    dimension = models.CharField(max_length=300)
    """The dimensions as one text: ``channel=email,type=alert``."""
    dimensions = models.JSONField(default=dict, blank=True)
    value = models.FloatField()
    """A number of deliveries or attempts."""
    seconds = models.FloatField(null=True, blank=True)
    """Of a latency: all of them together."""
    histogram = ArrayField(models.IntegerField(), null=True, blank=True)
    """Of a latency: how many fell into each bucket of :data:`analytics.metrics.BOUNDS`."""
    timestamp = models.DateTimeField()
    """When the span begins, UTC."""
    interval = choice_field(Interval)
    purge_at = optional_datetime()

    objects = MongoManager()

    class Meta:
        db_table = "metrics_aggregates"
        indexes = (
            MongoIndex("metric_name", "timestamp", name="met_name_time"),
            MongoIndex("metric_name", "dimensions.user_id", "timestamp", name="met_user"),
            MongoIndex("metric_name", "dimensions.platform", "timestamp", name="met_platform"),
            MongoIndex("interval", "timestamp", "metric_name", name="met_span"),
            MongoIndex("purge_at", name="met_purge", expire_after_seconds=0),
        )


class DueMinute(models.Model):
    """A minute whose figures have to be counted again, because something of it has changed."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=24)
    """The minute, as text."""
    minute = models.DateTimeField()
    touched_at = models.DateTimeField()
    """The last change. Who counts forgets the minute only if there was none since."""
    due_at = models.DateTimeField()
    """The older the minute, the longer changes are collected before it is counted again."""

    objects = MongoManager()

    class Meta:
        db_table = "metrics_due"
        indexes = (MongoIndex("due_at", "minute", name="mdu_due"),)


class RollupState(models.Model):
    """How far the roll-up has come, and who is at it."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)
    changes_until = optional_datetime()
    """Changes up to here have been found."""
    counted_at = optional_datetime()
    """When a roll-up last ended."""
    lease_until = optional_datetime()

    objects = MongoManager()

    class Meta:
        db_table = "rollup_state"


class AlertKind(StrEnum):
    """What an alert watches."""

    FAILURES = "failures"
    """Final failures within the window."""
    BREAKER_OPEN = "breaker_open"
    """A provider's circuit is open."""
    WORK_OVERDUE = "work_overdue"
    """The oldest due delivery nobody has taken."""
    SWEEP_OVERDUE = "sweep_overdue"
    """The sweep that finds what no hint reached."""
    PROVIDER_PAUSED = "provider_paused"
    """An operator paused a provider, and nobody resumed it."""
    CALLBACK_DISABLED = "callback_disabled"
    """An app's callback was switched off, as it kept failing."""


class AlertRule(models.Model):
    """What is watched, and how much of it is too much."""

    name = models.CharField(max_length=120)
    slug = optional_text(40)
    """Of a rule the service ships: it is added once, and stays as operators changed it."""
    kind = choice_field(AlertKind)
    channel = optional_text(16)
    """Failures: of this channel only; missing for all."""
    type = optional_text(64)
    """Failures: of this type only; missing for all but our own alerts."""
    threshold = models.IntegerField(default=0)
    """Failures: more than this many. Otherwise: for more than this many minutes."""
    window_minutes = models.IntegerField(default=60)
    """Failures: how far back they are counted."""
    is_enabled = models.BooleanField(default=True)

    objects = MongoManager()

    class Meta:
        db_table = "alert_rules"
        ordering = ("name", "id")
        verbose_name = "alert rule"

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    """One time that a rule was broken, from when it was noticed until it was over."""

    key = models.CharField(max_length=200)
    """``<rule>:<what>``: of one key there is one open incident."""
    rule_id = ObjectIdField()
    kind = choice_field(AlertKind)
    title = models.CharField(max_length=200)
    detail = models.CharField(max_length=500)
    """What it was like when it was last looked at."""
    is_open = models.BooleanField(default=True)
    broken_channel = optional_text(16)
    """Nobody is told of it by this channel."""
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = optional_datetime()
    told_open_at = optional_datetime()
    """When operators were told that it began."""
    told_over_at = optional_datetime()
    acknowledged_at = optional_datetime()
    acknowledged_by = optional_text(150)

    objects = MongoManager()

    class Meta:
        db_table = "incidents"
        ordering = ("-opened_at", "-id")
        permissions = (("acknowledge_incident", "Can acknowledge incidents"),)
        indexes = (
            MongoIndex("key", name="inc_open", unique=True, partial={"is_open": True}),
            MongoIndex("is_open", "-opened_at", "-_id", name="inc_state"),
            MongoIndex("-opened_at", "-_id", name="inc_opened"),
        )

    def __str__(self) -> str:
        return self.title
