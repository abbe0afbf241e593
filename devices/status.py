"""Whether a device can be pushed to, by what providers and people say of it.

What arrives late must not undo what is newer. So every device keeps ``proven_at``, and a refusal
counts only if its send began after that. A proof of life is dated when the provider answered:
whichever of an acceptance and a refusal is stored first, the same device results.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import structlog

from notifyproject.db.collections import collection

from .models import BY_PROVIDER, DeactivationReason

log = structlog.get_logger(__name__)
Expression = Any
MAX_SUSPICIONS = 3
"""A token that was called malformed, or another sender's, this often in a row is taken for dead."""
DEACTIVATION_FIELDS = ("deactivated_at", "deactivation_reason", "deactivation_evidence")
"""What is stored of a deactivation, and gone when the device is active again."""
_BY_PROVIDER = [reason.value for reason in BY_PROVIDER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """What speaks against a device."""

    at: datetime
    """When the send began that was answered with it, or when somebody decided it."""
    source: str
    """A provider's name, ``api``, or a member of staff."""
    code: str | None = None
    """The provider's own word for it."""
    notification_id: str | None = None
    """What was being sent."""


def deactivate(
    *, device_ids: Iterable[str], reason: DeactivationReason, evidence: Evidence, now: datetime
) -> int:
    """Push nothing more to these devices; return for how many that, or its reason, is new.

    What a provider says does not hold for a device that registered again or gave proof of life
    since ``evidence.at``; of two such reasons the later stays. What people decide always holds, and
    no provider has a say in it. Raises PyMongoError; may be repeated.
    """
    ids = sorted(set(device_ids))
    if not ids:
        return 0
    disabled_by_provider: dict[str, Any] = {"deactivation_reason": {"$in": _BY_PROVIDER}}
    match: dict[str, Any] = {"_id": {"$in": ids}}
    if reason in BY_PROVIDER:
        match = _match_unproven(ids, evidence.at)
        disabled_by_provider["deactivation_evidence.at"] = {"$lt": evidence.at}
    match["$or"] = [{"is_active": True}, disabled_by_provider]
    change = {
        "is_active": False,
        "deactivated_at": {"$ifNull": ["$deactivated_at", now]},
        "deactivation_reason": reason.value,
        "deactivation_evidence": {"$literal": _document(evidence)},
        "updated_at": now,
    }
    count = collection("devices").update_many(match, [{"$set": change}]).modified_count
    log.info("devices_deactivated", device_ids=ids, count=count, reason=reason.value)
    return count


def record_suspicion(
    *,
    device_ids: Iterable[str],
    reason: DeactivationReason = DeactivationReason.SUSPECT,
    evidence: Evidence,
    now: datetime,
) -> int:
    """Hold it against these devices that the provider calls their tokens malformed.

    Or, by ``reason``, another sender's: then not against one that was ever accepted, for a token is
    of one sender as long as it lives, and it is we who send as another.

    The third time in a row deactivates. Sends that began at the same time, or before one that is
    counted already, count once: what is told twice does no harm. Returns for how many devices it
    counted. Raises PyMongoError; may be repeated.
    """
    ids = sorted(set(device_ids))
    if not ids:
        return 0
    match = _match_unproven(ids, evidence.at) | {"is_active": True}
    if reason is DeactivationReason.SENDER_MISMATCH:
        match["last_accepted_at"] = None
    match["suspected_at"] = {"$not": {"$gte": evidence.at}}
    is_over_limit = {"$gte": ["$suspicions", MAX_SUSPICIONS]}
    deactivation: dict[str, Expression] = {
        "deactivated_at": now,
        "deactivation_reason": reason.value,
        "deactivation_evidence": {"$literal": _document(evidence)},
    }
    pipeline: list[dict[str, Any]] = [
        {
            "$set": {
                "suspicions": {"$add": [{"$ifNull": ["$suspicions", 0]}, 1]},
                "suspected_at": evidence.at,
                "updated_at": now,
            }
        },
        {
            "$set": {
                "is_active": {"$not": [is_over_limit]},
                **{
                    name: {"$cond": [is_over_limit, value, "$$REMOVE"]}
                    for name, value in deactivation.items()
                },
            }
        },
    ]
    count = collection("devices").update_many(match, pipeline).modified_count
    log.info("devices_suspected", device_ids=ids, count=count, reason=reason.value)
    return count


def record_success(
    *, accepted: Mapping[str, datetime], receipts: Mapping[str, datetime] | None = None
) -> int:
    """Store proofs of life, the times by device id, in one write; return how many devices changed.

    ``accepted``: when the provider took a message. It ends the row of suspicions before it, and
    switches a device on again that an older answer of a provider, though stored first, has switched
    off. ``receipts``: when the device reported a message. That may be an old one, opened long
    after the token was replaced: it keeps older evidence out and does no more.

    Raises PyMongoError; may be repeated.
    """
    receipts = receipts or {}
    ids = sorted({*accepted, *receipts})
    if not ids:
        return 0
    rows = [{"accepted": accepted.get(one), "receipt": receipts.get(one)} for one in ids]
    pipeline = _success_pipeline(ids, rows)
    return collection("devices").update_many({"_id": {"$in": ids}}, pipeline).modified_count


def reactivate(*, device_id: str, now: datetime) -> bool:
    """Push to a device again, and forget what was held against it; False if it is active or gone.

    Answers about sends that began before ``now`` do not switch it off again. Raises PyMongoError;
    may be repeated.
    """
    change = {
        "$set": {"is_active": True, "suspicions": 0, "updated_at": now},
        "$max": {"proven_at": now},
        "$unset": dict.fromkeys((*DEACTIVATION_FIELDS, "suspected_at"), ""),
    }
    inactive = {"_id": device_id, "is_active": False}
    if not collection("devices").update_one(inactive, change).modified_count:
        return False
    log.info("device_reactivated", device_id=device_id)
    return True


def _match_unproven(ids: list[str], at: datetime) -> dict[str, Any]:
    """Return what holds for those of these devices that an answer of this age speaks against."""
    return {"_id": {"$in": ids}, "proven_at": {"$not": {"$gte": at}}}


def _success_pipeline(
    ids: list[str], rows: list[dict[str, datetime | None]]
) -> list[dict[str, Any]]:
    """Return the pipeline that gives each device its own row of proofs."""
    position = {"$indexOfArray": [{"$literal": ids}, "$_id"]}
    refuted = {
        "$and": [
            {"$in": ["$deactivation_reason", _BY_PROVIDER]},
            {"$gte": ["$__proof.accepted", "$deactivation_evidence.at"]},
        ]
    }
    suspected_at = {"$ifNull": ["$suspected_at", "$__proof.accepted"]}
    ends_suspicion = {"$gte": ["$__proof.accepted", suspected_at]}
    return [
        {"$set": {"__proof": {"$arrayElemAt": [{"$literal": rows}, position]}}},
        {"$set": {"__refuted": refuted}},
        {
            "$set": {
                "last_accepted_at": _latest("$last_accepted_at", "$__proof.accepted"),
                "last_receipt_at": _latest("$last_receipt_at", "$__proof.receipt"),
                "proven_at": _latest("$proven_at", "$__proof.accepted", "$__proof.receipt"),
                "suspicions": {"$cond": [ends_suspicion, 0, "$suspicions"]},
                "is_active": {"$or": ["$is_active", "$__refuted"]},
                **{
                    name: {"$cond": ["$__refuted", "$$REMOVE", f"${name}"]}
                    for name in DEACTIVATION_FIELDS
                },
            }
        },
        {"$unset": ["__proof", "__refuted"]},
    ]


def _latest(*times: Expression) -> Expression:
    return {"$ifNull": [{"$max": list(times)}, "$$REMOVE"]}


def _document(evidence: Evidence) -> dict[str, Any]:
    return {name: value for name, value in asdict(evidence).items() if value is not None}
