"""Documents of :mod:`monitoring.models`, which describes their fields."""

from datetime import datetime
from typing import Any, NotRequired, TypedDict

from bson import ObjectId

from notifyproject.db.collections import Documents
from notifyproject.db.documents import ClaimDocument


class AnalyticsEventDocument(TypedDict):
    """A stored :class:`~monitoring.models.AnalyticsEvent`."""

    _id: str
    event_type: str
    entity_id: NotRequired[str]
    user_id: NotRequired[str]
    data: dict[str, Any]
    created_at: datetime
    purge_at: NotRequired[datetime]


class MetricsAggregateDocument(TypedDict):
    """A stored :class:`~monitoring.models.MetricsAggregate`."""

    _id: str
    metric_name: str
    dimension: str
    dimensions: dict[str, str]
    value: float
    seconds: NotRequired[float | None]
    histogram: NotRequired[list[int]]
    timestamp: datetime
    interval: str
    purge_at: NotRequired[datetime]


class DueMinuteDocument(TypedDict):
    """A stored :class:`~monitoring.models.DueMinute`."""

    _id: str
    minute: datetime
    touched_at: datetime
    due_at: datetime


class RollupStateDocument(TypedDict):
    """A stored :class:`~monitoring.models.RollupState`."""

    _id: str
    changes_until: NotRequired[datetime]
    counted_at: NotRequired[datetime]
    stopped_at: NotRequired[datetime]
    claim: NotRequired[ClaimDocument]
    claim_count: NotRequired[int]


class AlertRuleDocument(TypedDict):
    """A stored :class:`~monitoring.models.AlertRule`."""

    _id: ObjectId
    name: str
    slug: NotRequired[str | None]
    kind: str
    channel: NotRequired[str | None]
    type: NotRequired[str | None]
    view_id: NotRequired[ObjectId | None]
    threshold: int
    window_minutes: int
    is_enabled: bool
    exceeded_since: NotRequired[datetime]
    exceeded_at: NotRequired[datetime]


class SavedViewDocument(TypedDict):
    """A stored :class:`~monitoring.models.SavedView`."""

    _id: ObjectId
    name: str
    owner_id: ObjectId
    is_shared: bool
    position: int
    list: str
    query: str
    source: str
    match: NotRequired[str | None]
    index: NotRequired[str | None]


class IncidentNote(TypedDict):
    """A note of staff, in :attr:`IncidentDocument.notes`."""

    text: str
    by: str
    at: str


class IncidentDocument(TypedDict):
    """A stored :class:`~monitoring.models.Incident`."""

    _id: ObjectId
    key: str
    rule_id: ObjectId
    kind: str
    title: str
    detail: str
    is_open: bool
    broken_channel: NotRequired[str]
    opened_at: datetime
    last_seen_at: datetime
    resolved_at: NotRequired[datetime]
    notified_open_at: NotRequired[datetime]
    notified_resolved_at: NotRequired[datetime]
    acknowledged_at: NotRequired[datetime]
    acknowledged_by: NotRequired[str]
    notes: NotRequired[list[IncidentNote]]


class MutedProblemDocument(TypedDict):
    """A stored :class:`~monitoring.models.MutedProblem`."""

    _id: str
    by: str
    at: datetime
    until: datetime


ANALYTICS_EVENTS = Documents("analytics_events", AnalyticsEventDocument)
METRICS_AGGREGATES = Documents("metrics_aggregates", MetricsAggregateDocument)
METRICS_DUE = Documents("metrics_due", DueMinuteDocument)
ROLLUP_STATE = Documents("rollup_state", RollupStateDocument)
ALERT_RULES = Documents("alert_rules", AlertRuleDocument)
SAVED_VIEWS = Documents("saved_views", SavedViewDocument)
INCIDENTS = Documents("incidents", IncidentDocument)
MUTED_PROBLEMS = Documents("muted_problems", MutedProblemDocument)
