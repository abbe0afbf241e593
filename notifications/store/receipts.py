"""Applies receipts to deliveries. Order and repetition of receipts don't affect the result."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from domain.errors import RECEIPT_FAILURES, FailureCode
from domain.states import TRANSITIONS, DeliveryStatus

from .collections import attempts, notifications
from .pipelines import (
    ERROR_LENGTH,
    Computed,
    Expression,
    Pipeline,
    any_delivery,
    error_entry,
    in_statuses,
    list_union,
    of_channel,
    status_from_devices,
    update,
)
from .references import AttemptReference

S = DeliveryStatus
RANK = {S.SENT: 1, S.DELIVERED: 2, S.FAILED: 3, S.READ: 4}
"""A receipt is applied if it ranks higher than the current state.

A reported failure outranks delivered: a mail server may accept a message and bounce it later. A
failure that this service declared ranks lowest: any receipt is better evidence.
"""
ARRIVED = (S.DELIVERED, S.READ)
STILL_OPEN = (S.PENDING, S.SENDING)
"""In these states, a push may still have other devices to reach than the reporting one."""
_SANDBOX: Expression = {"$cond": ["$is_test", "$$d.provider", None]}
"""The stored provider of a test delivery, since the sandbox reports as a real provider."""
_REPORTED_CODES = sorted(code.value for code in RECEIPT_FAILURES)
_DEFAULT_CODE = FailureCode.REPORTED_FAILED


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryReceipt:
    """One receipt for one delivery, independent of the provider."""

    reference: AttemptReference
    status: DeliveryStatus  # Sent, delivered, read, or failed
    at: datetime  # Time of the event according to the provider
    provider: str
    reports_on: tuple[str, ...] = ()
    """The providers whose attempts it may change. Empty: all, as for a device's receipt."""
    provider_message_id: str | None = None
    code: FailureCode | None = None
    reason: str | None = None


def apply_receipt(receipt: DeliveryReceipt, *, now: datetime) -> bool:
    """Apply a receipt if it outranks the current state. Return whether the delivery changed."""
    # For an open push, a device's receipt is only recorded, because other devices may still wait.
    # It decides the state of the push when no other device is left.
    channel, device_id = receipt.reference.channel, receipt.reference.device_id
    is_one_of_many = channel.has_devices and receipt.status in ARRIVED
    noted_device = device_id if is_one_of_many else None
    lower = [
        status.value
        for status in DeliveryStatus
        if receipt.status in TRANSITIONS[status]
        and RANK.get(status, 0) < RANK[receipt.status]
        and (noted_device is None or status not in STILL_OPEN)
    ]
    conditions: list[dict[str, Any]] = [
        {"status": {"$in": lower}},
        # Declared by this service, not reported: see RANK.
        {"status": S.FAILED.value, "failure_code": {"$nin": _REPORTED_CODES}},
    ]
    guard: dict[str, Any] = {"channel": channel.value, "$or": conditions}
    is_lower = {"$in": ["$$d.status", lower]}
    is_reported = {"$in": ["$$d.failure_code", _REPORTED_CODES]}
    is_declared_here = {"$and": [{"$eq": ["$$d.status", S.FAILED.value]}, {"$not": [is_reported]}]}
    pipeline = update(
        condition={"$and": [of_channel(channel), {"$or": [is_lower, is_declared_here]}]},
        changes=_changes(receipt) | ({} if noted_device is None else _changes_with_notes(receipt)),
        now=now,
        error=error_entry(channel, receipt.code or _DEFAULT_CODE, receipt.reason, now)
        if receipt.status is S.FAILED
        else None,
    )
    if noted_device is not None:
        conditions.append(_is_new_information(receipt, noted_device))
        pipeline = [*_note_device_receipt(receipt, noted_device, now), *pipeline]
    if not receipt.reports_on:
        return _update(receipt, guard, pipeline)
    # The start of an attempt records its provider. Without one, the attempt isn't on record, as
    # after a restored backup.
    own = {"provider": {"$in": [*receipt.reports_on, None]}}
    if _update(receipt, guard | own, pipeline):
        return True
    # An earlier attempt may be of another provider than the last. That it was sent is no news: of
    # receipts that change nothing, most say only this, and they shall cost no read.
    return (
        receipt.status is not S.SENT and _is_recorded(receipt) and _update(receipt, guard, pipeline)
    )


def _update(receipt: DeliveryReceipt, guard: Mapping[str, Any], pipeline: Pipeline) -> bool:
    wanted = {"_id": receipt.reference.notification_id, **_match(receipt, guard)}
    return notifications().update_one(wanted, pipeline).modified_count == 1


def _is_recorded(receipt: DeliveryReceipt) -> bool:
    """Return whether the record of the attempt names a provider that the receipt reports on."""
    reference = receipt.reference
    wanted = {
        "_id": str(reference),
        "notification_id": reference.notification_id,
        "provider": {"$in": list(receipt.reports_on)},
    }
    return attempts().find_one(wanted, {"_id": 1}) is not None


def _match(receipt: DeliveryReceipt, guard: Mapping[str, Any]) -> dict[str, Any]:
    """Return a filter for the delivery that meets ``guard``, unless a later attempt counts."""
    if receipt.status is not S.FAILED:
        return {"delivery": {"$elemMatch": guard}}
    # A failure of an earlier attempt says nothing about a later one, unless all later ones are
    # repeats of it that the provider takes as one request.
    number = receipt.reference.attempt_number
    is_repeated = {
        "$and": [
            of_channel(receipt.reference.channel),
            {"$eq": ["$$d.series_first", number]},
            {"$eq": ["$$d.series_last", "$$d.attempt_count"]},
        ]
    }
    return {
        "$or": [
            {"delivery": {"$elemMatch": {**guard, "attempt_count": {"$lte": number}}}},
            {
                "delivery": {"$elemMatch": {**guard, "series_first": number}},
                "$expr": any_delivery(is_repeated),
            },
        ]
    }


def _is_new_information(receipt: DeliveryReceipt, device_id: str) -> dict[str, Any]:
    unknown: list[Expression] = [{"accepted_targets": {"$ne": device_id}}, {"delivered_at": None}]
    if receipt.status is S.READ:
        unknown.append({"read_at": None})
    return {"status": {"$in": [status.value for status in STILL_OPEN]}, "$or": unknown}


def _note_device_receipt(receipt: DeliveryReceipt, device_id: str, now: datetime) -> Pipeline:
    at = _not_before_attempt(receipt)
    changes: dict[str, Any] = {
        "accepted_targets": Computed(list_union("accepted_targets", [device_id])),
        "delivered_at": Computed(_earlier("delivered_at", at)),
    }
    if receipt.status is S.READ:
        changes["read_at"] = Computed(_earlier("read_at", at))
    condition = in_statuses(receipt.reference.channel, STILL_OPEN)
    return update(condition=condition, changes=changes, now=now)


def _changes_with_notes(receipt: DeliveryReceipt) -> dict[str, Any]:
    """Return the changes by a device's receipt, given earlier receipts of other devices."""
    sent_at = {"$min": [_sent_at(receipt), "$$d.delivered_at"]}
    earliest = _earlier("delivered_at", receipt.at)
    changes: dict[str, Any] = {
        "sent_at": Computed(sent_at),
        "delivered_at": Computed({"$max": [sent_at, earliest]}),
    }
    if receipt.status is S.DELIVERED:
        changes["status"] = Computed(status_from_devices(receipt.status.value))
    return changes


def _changes(receipt: DeliveryReceipt) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "status": receipt.status.value,
        "claim": None,
        "next_attempt_at": None,
        "provider": Computed({"$ifNull": [_SANDBOX, {"$literal": receipt.provider}]}),
        "provider_message_id": Computed(
            {"$ifNull": ["$$d.provider_message_id", {"$literal": receipt.provider_message_id}]}
        ),
    }
    if receipt.status is S.FAILED:
        return changes | {
            "failed_at": Computed(_not_before_attempt(receipt)),
            "failure_code": (receipt.code or _DEFAULT_CODE).value,
            "failure_reason": (receipt.reason or "")[:ERROR_LENGTH],
        }
    changes |= {"failed_at": None, "failure_code": None, "failure_reason": None}
    sent_at = _sent_at(receipt)
    changes["sent_at"] = Computed(sent_at)
    if receipt.status is S.DELIVERED:
        changes["delivered_at"] = Computed({"$max": [sent_at, receipt.at]})
    if receipt.status is S.READ:
        earliest = _earlier("delivered_at", receipt.at)
        changes["delivered_at"] = Computed({"$max": [sent_at, earliest]})
        changes["read_at"] = Computed({"$max": [sent_at, receipt.at]})
    return changes


def _sent_at(receipt: DeliveryReceipt) -> Expression:
    """Return the recorded time of the provider's response, or else the receipt's time.

    Providers report whole seconds, so that a receipt's time may seem to lie before the attempt.
    Then the attempt's time is returned.
    """
    is_recorded = {"$gte": ["$$d.sent_at", _attempted_at(receipt)]}
    return {"$cond": [is_recorded, "$$d.sent_at", _not_before_attempt(receipt)]}


def _not_before_attempt(receipt: DeliveryReceipt) -> Expression:
    return {"$max": [receipt.at, _attempted_at(receipt)]}


def _attempted_at(receipt: DeliveryReceipt) -> Expression:
    """Return when the receipt's attempt began. For an earlier attempt, the time of acceptance."""
    is_current = {"$eq": ["$$d.attempt_count", receipt.reference.attempt_number]}
    began_at = {"$cond": [is_current, "$$d.last_attempt_at", None]}
    return {"$max": [began_at, "$created_at"]}


def _earlier(name: str, at: Expression) -> Expression:
    """Return the earlier of the stored time and ``at``, as a provider's clock may be behind."""
    return {"$min": [f"$$d.{name}", at]}
