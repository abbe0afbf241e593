"""Analytics events, metrics, alert rules, and incidents."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.fields import ArrayField, EmbeddedModelField, ObjectIdField

from notifyproject.db.fields import choice_field, optional_datetime, optional_text
from notifyproject.db.indexes import MongoIndex
from notifyproject.db.models import Claim


class AnalyticsEvent(models.Model):
    """An event of a notification. The roll-up writes it, and it never changes."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=80)
    """``<notification>.<channel>.<event>``: makes writes idempotent."""
    event_type = models.CharField(max_length=64)
    entity_id = optional_text(128)
    user_id = optional_text(128)
    data = models.JSONField(default=dict, blank=True)
    """Channel, type, provider, and failure code. No address and no content."""
    created_at = models.DateTimeField()
    """The time of the event, not of the write."""
    purge_at = optional_datetime()

    class Meta:
        db_table = "analytics_events"
        indexes = (
            MongoIndex("event_type", "created_at", name="evt_type_created"),
            MongoIndex("user_id", "created_at", name="evt_user_created"),
            MongoIndex("entity_id", "event_type", name="evt_entity_type"),
            MongoIndex("purge_at", name="evt_purge", expire_after_seconds=0),
        )


class Interval(StrEnum):
    """The length of a metric's interval."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class MetricsAggregate(models.Model):
    """The value of one metric in one interval for one set of dimensions."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=400)
    """``<metric>|<interval>|<timestamp>|<dimension>``: values are replaced, never incremented."""
    metric_name = models.CharField(max_length=64)
    dimension = models.CharField(max_length=300)
    """The dimensions as text: ``channel=email,type=alert``."""
    dimensions = models.JSONField(default=dict, blank=True)
    value = models.FloatField()
    seconds = models.FloatField(null=True, blank=True)
    histogram = ArrayField(models.IntegerField(), null=True, blank=True)
    """Of a latency: the count per bucket of :data:`.metrics.BOUNDS`."""
    timestamp = models.DateTimeField()
    interval = choice_field(Interval)
    purge_at = optional_datetime()

    class Meta:
        db_table = "metrics_aggregates"
        indexes = (
            MongoIndex("metric_name", "timestamp", name="met_name_time"),
            MongoIndex("metric_name", "dimensions.platform", "timestamp", name="met_platform"),
            MongoIndex("interval", "timestamp", "metric_name", name="met_span"),
            MongoIndex("purge_at", name="met_purge", expire_after_seconds=0),
        )


class DueMinute(models.Model):
    """A minute whose metrics must be recounted after a change."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=24)
    minute = models.DateTimeField()
    touched_at = models.DateTimeField()
    """The last change. A recount removes the minute unless it has changed since."""
    due_at = models.DateTimeField()
    """When to recount. The older the minute, the longer changes are collected before."""

    class Meta:
        db_table = "metrics_due"
        indexes = (MongoIndex("due_at", "minute", name="mdu_due"),)


class RollupState(models.Model):
    """The progress of the metrics roll-up, and its lease."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=40)
    changes_until = optional_datetime()
    counted_at = optional_datetime()
    stopped_at = optional_datetime()
    """Since when it doesn't run, because it ended its workers. Missing while it runs."""
    claim = EmbeddedModelField(Claim, null=True, blank=True)
    claim_count = models.IntegerField(default=0)
    """Claims in a row without a count."""

    class Meta:
        db_table = "rollup_state"


class AlertKind(StrEnum):
    """The condition of an alert rule."""

    FAILURES = "failures"
    BREAKER_OPEN = "breaker_open"
    WORK_OVERDUE = "work_overdue"
    SWEEP_OVERDUE = "sweep_overdue"
    ROLLUP_OVERDUE = "rollup_overdue"
    PROVIDER_PAUSED = "provider_paused"
    CALLBACK_DISABLED = "callback_disabled"
    KEY_EXPIRING = "key_expiring"
    DAILY_UNITS = "daily_units"
    PUMPING = "pumping"
    NO_RECEIPTS = "no_receipts"
    APPROVAL_OVERRIDDEN = "approval_overridden"
    EMERGENCY_CHANGE = "emergency_change"
    APPROVAL_STOPPED = "approval_stopped"
    SAVED_VIEW = "saved_view"


class SavedView(models.Model):
    """The filters of a list of the console, under a name. It has no search: it may be personal."""

    name = models.CharField(max_length=60)
    owner_id = ObjectIdField()
    """The account that saved it. Once that is deleted, only its shared views are left."""
    is_shared = models.BooleanField(default=False)
    """Whether all staff who may open the list see it, or its owner alone."""
    position = models.IntegerField(default=0)
    """The place in the menu, among the shared views or the owner's."""
    list = models.CharField(max_length=80)
    """``<app>_<model>``: the name of the list's URLs."""
    query = models.CharField(max_length=2_000)
    """The parameters of the list's filters, as in its URL."""
    source = models.CharField(max_length=64)
    """The collection that the list shows."""
    match = models.TextField(null=True, blank=True)
    """The filters as a condition in extended JSON, in which ``$secondsAgo`` is a relative time.
    Missing if the list's rows can't be counted by one."""
    index = optional_text(64)
    """The index by which they are counted; missing: MongoDB chooses."""

    class Meta:
        db_table = "saved_views"
        ordering = ("is_shared", "position", "id")
        verbose_name = "saved view"
        permissions = (("share_savedview", "Can share saved views, and change shared ones"),)
        indexes = (
            MongoIndex("owner_id", "is_shared", "position", "_id", name="svw_owner"),
            MongoIndex("position", "_id", name="svw_shared", partial={"is_shared": True}),
        )

    def __str__(self) -> str:
        return self.name


class AlertRule(models.Model):
    """A condition and its threshold. A violation opens an incident."""

    name = models.CharField(max_length=120)
    slug = optional_text(40)
    """Identifies a built-in rule, which is added once and then keeps operators' changes."""
    kind = choice_field(AlertKind)
    channel = optional_text(16)
    """Failures: only of this channel; missing for all."""
    type = optional_text(64)
    """Failures: only of this type; missing for all but the system's own alerts."""
    view_id = ObjectIdField(null=True, blank=True)
    """Saved view: the one that is counted; missing for other conditions."""
    threshold = models.IntegerField(default=0)
    """Failures, pumping, saved view: more than this many. Daily units: percent. Others: for more
    than this many minutes."""
    window_minutes = models.IntegerField(default=60)
    """Failures: in this time. Saved view: for this time without a break."""
    is_enabled = models.BooleanField(default=True)
    exceeded_since = optional_datetime()
    """Saved view: since when each check has counted more than the threshold."""
    exceeded_at = optional_datetime()
    """Saved view: the last check that counted more."""

    class Meta:
        db_table = "alert_rules"
        ordering = ("name", "id")
        verbose_name = "alert rule"

    def __str__(self) -> str:
        return self.name


class Incident(models.Model):
    """One violation of an alert rule, from detection to resolution."""

    key = models.CharField(max_length=200)
    """``<rule>:<subject>``: at most one open incident per key."""
    rule_id = ObjectIdField()
    kind = choice_field(AlertKind)
    title = models.CharField(max_length=200)
    detail = models.CharField(max_length=500)
    is_open = models.BooleanField(default=True)
    broken_channel = optional_text(16)
    opened_at = models.DateTimeField()
    last_seen_at = models.DateTimeField()
    resolved_at = optional_datetime()
    notified_open_at = optional_datetime()
    notified_resolved_at = optional_datetime()
    acknowledged_at = optional_datetime()
    acknowledged_by = optional_text(150)
    notes = models.JSONField(null=True, blank=True)
    """What staff have noted: ``text``, ``by``, and ``at``, oldest first."""

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


class MutedProblem(models.Model):
    """A problem that staff have hidden from Home for a time."""

    id = models.CharField(primary_key=True, db_column="_id", max_length=120)
    by = models.CharField(max_length=150)
    at = models.DateTimeField()
    until = models.DateTimeField()

    class Meta:
        db_table = "muted_problems"
        indexes = (MongoIndex("until", name="mut_until", expire_after_seconds=0),)
