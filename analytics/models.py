"""Events, and the figures rolled up from them."""

from enum import StrEnum

from django.db import models
from django_mongodb_backend.managers import MongoManager

from notifyproject.db.fields import optional_text, word
from notifyproject.db.indexes import MongoIndex


class AnalyticsEvent(models.Model):
    """Something that happened to a notification, a device or a person."""

    event_type = models.CharField(max_length=64)
    entity_id = optional_text(128)
    user_id = optional_text(128)
    data = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField()

    objects = MongoManager()

    class Meta:
        db_table = "analytics_events"
        indexes = (
            MongoIndex("event_type", "created_at", name="evt_type_created"),
            MongoIndex("user_id", "created_at", name="evt_user_created"),
            MongoIndex("entity_id", "event_type", name="evt_entity_type"),
        )


class Interval(StrEnum):
    """The span a figure is for."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


class MetricsAggregate(models.Model):
    """One figure for one span of time and one set of dimensions."""

    metric_name = models.CharField(max_length=64)
    dimensions = models.JSONField(default=dict, blank=True)
    value = models.FloatField()
    timestamp = models.DateTimeField()
    interval = word(Interval)

    objects = MongoManager()

    class Meta:
        db_table = "metrics_aggregates"
        indexes = (
            MongoIndex("metric_name", "timestamp", name="met_name_time"),
            MongoIndex("metric_name", "dimensions.user_id", "timestamp", name="met_user"),
            MongoIndex("metric_name", "dimensions.platform", "timestamp", name="met_platform"),
        )
