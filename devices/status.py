"""Activates and deactivates devices, because of providers' results or by people.

Late results must not undo newer ones. A rejection counts only if its send began after the device's
``proven_at``. A success counts from the provider's response, so that a success and a rejection have
the same effect in either order.
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

import structlog

from .documents import DEVICES
from .models import BY_PROVIDER, DeactivationReason

log = structlog.get_logger(__name__)
Expression = Any
MAX_TOKEN_REJECTIONS = 3
"""Rejections of a token in a row, as malformed or another sender's, that deactivate a device."""
DEACTIVATION_FIELDS = ("deactivated_at", "deactivation_reason", "deactivation_evidence")
_BY_PROVIDER = [reason.value for reason in BY_PROVIDER]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Evidence against a device, as stored in :class:`devices.models.DeactivationEvidence`."""

    at: datetime
    source: str
    code: str | None = None
    notification_id: str | None = None


def deactivate(
    *, device_ids: Iterable[str], reason: DeactivationReason, evidence: Evidence, now: datetime
) -> int:
    """Deactivate devices. Return the number that changed.

    A provider's reason doesn't apply to a device with a registration or success since
    ``evidence.at``. Of two such reasons, the later is stored. A person's reason always applies, and
    no provider's replaces it. Idempotent. Raises PyMongoError.
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
    change = {**deactivation(reason, evidence=evidence, now=now), "updated_at": now}
    count = DEVICES().update_many(match, [{"$set": change}]).modified_count
    log.info("devices_deactivated", device_ids=ids, count=count, reason=reason.value)
    return count


def deactivation(
    reason: DeactivationReason, *, evidence: Evidence, now: datetime
) -> dict[str, Expression]:
    """Return the fields of a deactivated device, as expressions of an update."""
    return {
        "is_active": False,
        "deactivated_at": {"$ifNull": ["$deactivated_at", now]},
        "deactivation_reason": reason.value,
        "deactivation_evidence": {"$literal": _document(evidence)},
    }


def record_suspect_result(
    *,
    device_ids: Iterable[str],
    reason: DeactivationReason = DeactivationReason.SUSPECT,
    evidence: Evidence,
    now: datetime,
) -> int:
    """Count a rejection of these devices' tokens. Return the number of devices that changed.

    The third rejection in a row deactivates a device. A send that began no later than one already
    counted doesn't count, so that repetition is harmless.

    With SENDER_MISMATCH, a device with an earlier success is exempt: a token belongs to one sender
    for life, so the service's own credentials are wrong. Idempotent. Raises PyMongoError.
    """
    ids = sorted(set(device_ids))
    if not ids:
        return 0
    match = _match_unproven(ids, evidence.at) | {"is_active": True}
    if reason is DeactivationReason.SENDER_MISMATCH:
        match["last_accepted_at"] = None
    match["suspected_at"] = {"$not": {"$gte": evidence.at}}
    is_over_limit = {"$gte": ["$token_rejections", MAX_TOKEN_REJECTIONS]}
    deactivation: dict[str, Expression] = {
        "deactivated_at": now,
        "deactivation_reason": reason.value,
        "deactivation_evidence": {"$literal": _document(evidence)},
    }
    counted = {
        "token_rejections": {"$add": [{"$ifNull": ["$token_rejections", 0]}, 1]},
        "suspected_at": evidence.at,
        "updated_at": now,
    }
    consequence: dict[str, Expression] = {"is_active": {"$not": [is_over_limit]}}
    for name, value in deactivation.items():
        consequence[name] = {"$cond": [is_over_limit, value, "$$REMOVE"]}
    pipeline = [{"$set": counted}, {"$set": consequence}]
    count = DEVICES().update_many(match, pipeline).modified_count
    log.info("devices_suspected", device_ids=ids, count=count, reason=reason.value)
    return count


def record_success(
    *, accepted: Mapping[str, datetime], receipts: Mapping[str, datetime] | None = None
) -> int:
    """Record successes by device ID in one write. Return the number of devices that changed.

    ``accepted`` are times at which the provider accepted a message. They reset earlier rejections
    and reactivate a device that an older provider result deactivated. ``receipts`` are times of
    device receipts. These may concern a message sent before the current token, so they only outdate
    older evidence. Idempotent. Raises PyMongoError.
    """
    receipts = receipts or {}
    ids = sorted({*accepted, *receipts})
    if not ids:
        return 0
    rows = [
        {"accepted": accepted.get(device_id), "receipt": receipts.get(device_id)}
        for device_id in ids
    ]
    pipeline = _success_pipeline(ids, rows)
    return DEVICES().update_many({"_id": {"$in": ids}}, pipeline).modified_count


def reactivate(*, device_id: str, now: datetime) -> bool:
    """Reactivate a device and reset its rejections. Return False if it is active or unknown."""
    # Results of sends that began before ``now`` don't deactivate it again.
    change = {
        "$set": {"is_active": True, "token_rejections": 0, "updated_at": now},
        "$max": {"proven_at": now},
        "$unset": dict.fromkeys((*DEACTIVATION_FIELDS, "suspected_at", "replaced_by"), ""),
    }
    inactive = {"_id": device_id, "is_active": False}
    if not DEVICES().update_one(inactive, change).modified_count:
        return False
    log.info("device_reactivated", device_id=device_id)
    return True


def _match_unproven(ids: list[str], at: datetime) -> dict[str, Any]:
    return {"_id": {"$in": ids}, "proven_at": {"$not": {"$gte": at}}}


def _success_pipeline(
    ids: list[str], rows: list[dict[str, datetime | None]]
) -> list[dict[str, Any]]:
    position = {"$indexOfArray": [{"$literal": ids}, "$_id"]}
    refuted = {
        "$and": [
            {"$in": ["$deactivation_reason", _BY_PROVIDER]},
            {"$gte": ["$__proof.accepted", "$deactivation_evidence.at"]},
        ]
    }
    suspected_at = {"$ifNull": ["$suspected_at", "$__proof.accepted"]}
    clears_suspect_results = {"$gte": ["$__proof.accepted", suspected_at]}
    changes: dict[str, Expression] = {
        "last_accepted_at": _latest("$last_accepted_at", "$__proof.accepted"),
        "last_receipt_at": _latest("$last_receipt_at", "$__proof.receipt"),
        "proven_at": _latest("$proven_at", "$__proof.accepted", "$__proof.receipt"),
        "token_rejections": {"$cond": [clears_suspect_results, 0, "$token_rejections"]},
        "is_active": {"$or": ["$is_active", "$__refuted"]},
    }
    for name in DEACTIVATION_FIELDS:
        changes[name] = {"$cond": ["$__refuted", "$$REMOVE", f"${name}"]}
    return [
        {"$set": {"__proof": {"$arrayElemAt": [{"$literal": rows}, position]}}},
        {"$set": {"__refuted": refuted}},
        {"$set": changes},
        {"$unset": ["__proof", "__refuted"]},
    ]


def _latest(*times: Expression) -> Expression:
    return {"$ifNull": [{"$max": list(times)}, "$$REMOVE"]}


def _document(evidence: Evidence) -> dict[str, Any]:
    return {name: value for name, value in asdict(evidence).items() if value is not None}
