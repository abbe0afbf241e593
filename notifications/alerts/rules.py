"""The rules: those every installation starts with, and those that are switched on."""

from dataclasses import dataclass

from bson import ObjectId

from analytics.models import AlertKind
from notifyproject.db.collections import collection

from ..store import Document


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What is watched, and how much of it is too much."""

    id: ObjectId
    name: str
    kind: AlertKind
    threshold: int
    window_minutes: int
    channel: str | None = None
    type: str | None = None


@dataclass(frozen=True, slots=True)
class _Default:
    slug: str
    name: str
    kind: AlertKind
    threshold: int
    """Failures: more than this many in an hour. Otherwise: for more than this many minutes."""


DEFAULTS = (
    _Default("failures", "Many final failures", AlertKind.FAILURES, 10),
    _Default("breaker-open", "A provider's circuit is open", AlertKind.BREAKER_OPEN, 0),
    _Default("work-overdue", "Due work waits", AlertKind.WORK_OVERDUE, 5),
    _Default("sweep-overdue", "No sweep", AlertKind.SWEEP_OVERDUE, 3),
    _Default("provider-paused", "A provider stays paused", AlertKind.PROVIDER_PAUSED, 60),
    _Default("callback-disabled", "A callback was switched off", AlertKind.CALLBACK_DISABLED, 0),
)
HOUR = 60


def add_missing_defaults() -> None:
    """Add the shipped rules that were never added; what operators changed stays."""
    for default in DEFAULTS:
        collection("alert_rules").update_one(
            {"slug": default.slug},
            {
                "$setOnInsert": {
                    "name": default.name,
                    "kind": default.kind.value,
                    "threshold": default.threshold,
                    "window_minutes": HOUR,
                    "is_enabled": True,
                }
            },
            upsert=True,
        )


def enabled() -> list[Rule]:
    """Return the rules that are switched on."""
    return [_rule(document) for document in collection("alert_rules").find({"is_enabled": True})]


def _rule(document: Document) -> Rule:
    return Rule(
        id=document["_id"],
        name=document["name"],
        kind=AlertKind(document["kind"]),
        threshold=document["threshold"],
        window_minutes=document["window_minutes"],
        channel=document.get("channel"),
        type=document.get("type"),
    )
