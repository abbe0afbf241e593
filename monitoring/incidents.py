"""Stores incidents of alert rules. Concurrent checks open one only once."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from bson import ObjectId
from pymongo import ReturnDocument
from pymongo.errors import DuplicateKeyError

from .documents import (
    INCIDENTS,
    MUTED_PROBLEMS,
    IncidentDocument,
    IncidentNote,
    MutedProblemDocument,
)
from .models import AlertKind

RESOLVE_AFTER = timedelta(minutes=2)
"""An incident is resolved if no check has found it for this long."""
UNTIL_SEEN = [AlertKind.APPROVAL_OVERRIDDEN.value]
"""Kinds of incidents that stay open until somebody acknowledges them."""
MUTED_FOR = timedelta(hours=24)
MAX_NOTES, MAX_MUTES = 20, 200
NEWEST_FIRST = (("opened_at", -1), ("_id", -1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A current violation of an alert rule."""

    rule_id: ObjectId
    kind: AlertKind
    subject: str
    """The scope of one open incident: a provider's account, or ``all``."""
    title: str
    detail: str
    broken_channel: str | None = None
    """The channel that can't be used to notify operators."""

    @property
    def key(self) -> str:
        """The key under which one incident at a time is open."""
        return f"{self.rule_id}:{self.subject}"


def subject_of(incident: IncidentDocument) -> str:
    """Return the subject of an incident: the part of its key after the rule's ID."""
    key: str = incident["key"]
    return key.partition(":")[2]


def record(finding: Finding, *, now: datetime) -> IncidentDocument | None:
    """Open an incident and return it, or refresh the open one and return None."""
    latest = {"last_seen_at": now, "title": finding.title, "detail": finding.detail}
    open_match = {"key": finding.key, "is_open": True}
    if INCIDENTS().update_one(open_match, {"$set": latest}).matched_count:
        return None
    new: IncidentDocument = {
        "_id": ObjectId(),
        "key": finding.key,
        "rule_id": finding.rule_id,
        "kind": finding.kind.value,
        "title": finding.title,
        "detail": finding.detail,
        "is_open": True,
        "opened_at": now,
        "last_seen_at": now,
    }
    if finding.broken_channel is not None:
        new["broken_channel"] = finding.broken_channel
    try:
        INCIDENTS().insert_one(new)
    except DuplicateKeyError:
        # A concurrent check opened it.
        return None
    return new


def resolve_others(
    active_keys: Collection[str], *, unjudged: Collection[ObjectId], now: datetime
) -> list[IncidentDocument]:
    """Resolve and return the open incidents that no check has found for RESOLVE_AFTER.

    Those of the rules ``unjudged``, those of UNTIL_SEEN that nobody has acknowledged, and those of
    kinds that only another version knows, stay open.
    """
    wanted = {
        "is_open": True,
        "last_seen_at": {"$lte": now - RESOLVE_AFTER},
        "kind": {"$in": [kind.value for kind in AlertKind]},
        "rule_id": {"$nin": list(unjudged)},
        "$or": [{"kind": {"$nin": UNTIL_SEEN}}, {"acknowledged_at": {"$ne": None}}],
    }
    resolved = [
        INCIDENTS().find_one_and_update(
            {"_id": incident["_id"], **wanted},
            {"$set": {"is_open": False, "resolved_at": now}},
            return_document=ReturnDocument.AFTER,
        )
        for incident in INCIDENTS().find(wanted).hint("inc_state")
        if incident["key"] not in active_keys
    ]
    return [incident for incident in resolved if incident is not None]


def unnotified(*, since: datetime) -> list[IncidentDocument]:
    """Return incidents since ``since`` of which operators were not yet notified."""
    unnotified_phase = [
        {"notified_open_at": None},
        {"is_open": False, "notified_resolved_at": None},
    ]
    wanted = {"opened_at": {"$gte": since}, "$or": unnotified_phase}
    return list(INCIDENTS().find(wanted).sort(NEWEST_FIRST).hint("inc_opened"))


def mark_notified(incident_id: ObjectId, field: str, *, now: datetime) -> None:
    """Record when operators were notified.

    ``field`` is ``notified_open_at`` or ``notified_resolved_at``.
    """
    INCIDENTS().update_one({"_id": incident_id}, {"$set": {field: now}})


def acknowledge(incident_id: ObjectId, *, by: str, now: datetime) -> bool:
    """Acknowledge an incident. Return False if it is already acknowledged or resolved."""
    changed = INCIDENTS().update_one(
        {"_id": incident_id, "is_open": True, "acknowledged_at": None},
        {"$set": {"acknowledged_at": now, "acknowledged_by": by}},
    )
    return changed.modified_count == 1


def get(incident_id: ObjectId) -> IncidentDocument | None:
    """Return an incident, or None if it doesn't exist."""
    return INCIDENTS().find_one({"_id": incident_id})


def add_note(incident_id: ObjectId, *, text: str, by: str, now: datetime) -> bool:
    """Add a note, the newest last. Return False if the incident doesn't exist."""
    # As text, since the model reads the notes as JSON.
    note: IncidentNote = {"text": text, "by": by, "at": now.isoformat()}
    changed = INCIDENTS().update_one(
        {"_id": incident_id}, {"$push": {"notes": {"$each": [note], "$slice": -MAX_NOTES}}}
    )
    return changed.matched_count == 1


def mute(key: str, *, by: str, now: datetime) -> None:
    """Hide a problem from Home for MUTED_FOR."""
    fields = {"by": by, "at": now, "until": now + MUTED_FOR}
    MUTED_PROBLEMS().update_one({"_id": key}, {"$set": fields}, upsert=True)


def unmute(key: str) -> bool:
    """Show a problem on Home again. Return False if it isn't muted."""
    return MUTED_PROBLEMS().delete_one({"_id": key}).deleted_count == 1


def mutes(*, now: datetime) -> list[MutedProblemDocument]:
    """Return the muted problems."""
    return list(MUTED_PROBLEMS().find({"until": {"$gt": now}}).limit(MAX_MUTES))


def open_incidents(*, limit: int = 50) -> Sequence[IncidentDocument]:
    """Return the open incidents, newest first."""
    found = INCIDENTS().find({"is_open": True}).sort(NEWEST_FIRST)
    return list(found.hint("inc_state").limit(limit))
