"""Changes by workers: claim, start, settle, defer, and release; and the attempts log."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo.errors import BulkWriteError

from domain.channels import Channel
from domain.errors import FailureCode
from domain.plans import FIRST_STEP
from domain.retry import UNCOUNTED_MAX_DELAY
from domain.states import SUCCEEDED, TRANSITIONS, AttemptStatus, DeliveryStatus
from domain.wait_reasons import OUTAGES, Hold, WaitReason
from notifications.documents.notification import NotificationDocument
from notifyproject.db.collections import is_duplicate
from notifyproject.db.leases import Leases, held_with, is_unclaimed, new_token, unclaimed
from notifyproject.platform import crash_points
from notifyproject.platform.crash_points import Boundary

from .claims import ClaimedDelivery, NotSent, Settlement, TargetAttempt, claimed_delivery_of
from .collections import attempts, notifications, retry_transient
from .pipelines import (
    ERROR_LENGTH,
    Computed,
    claimed_with,
    error_entry,
    row_of,
    transition,
    update_each,
    with_device_receipts,
    with_hold,
)
from .steps import match_unreached

S = DeliveryStatus
_OUTAGE_CODES = frozenset({FailureCode.CHANNEL_UNAVAILABLE, FailureCode.DECRYPTION_FAILED})
"""Failure codes of deliveries that wait for something which staff must mend."""
MAX_LATENESS = 2 * UNCOUNTED_MAX_DELAY
"""Time from the end of a wait until a worker has time for the delivery that counts as outage. The
rest is the time of a long queue, or of stopped workers."""
UNSENT_ENDS = frozenset({S.EXPIRED, S.SUPPRESSED, S.CANCELLED})
LEASE = timedelta(seconds=90)  # Longer than the slowest batch: four rounds of requests of 15 s each
LEASES = Leases(collection=notifications, length=LEASE, max_claims=3)
"""After three claims without a send, a delivery counts as a poison message."""
NOT_ATTEMPTED = "Not sent: the lease or lifetime ended first."
A = AttemptStatus
_ATTEMPT_STATUSES = {S.SENT: A.SENT, S.DELIVERED: A.SENT, S.UNKNOWN: A.UNKNOWN}


def _log_started(started: Sequence[ClaimedDelivery]) -> None:
    """Log the attempts of deliveries with devices; the delivery itself records other attempts."""
    # A device's receipt may come before the settlement, and names the attempt of the device.
    documents: list[Any] = [
        {
            "_id": claimed.reference_to(device_id),
            **_attempt_fields(claimed),
            "status": AttemptStatus.STARTED.value,
            **_device_fields(claimed, device_id),
        }
        for claimed in started
        for device_id in claimed.device_ids
    ]
    if not documents:
        return
    try:
        retry_transient(attempts().insert_many, documents, ordered=False)
    except BulkWriteError as error:
        # The driver repeats a write whose response was lost: then the record already exists.
        if not is_duplicate(error):
            raise


def _device_fields(claimed: ClaimedDelivery, device_id: str) -> dict[str, str]:
    platform = claimed.platforms.get(device_id)
    return {"device_id": device_id} | ({"platform": platform} if platform else {})


def _attempt_fields(claimed: ClaimedDelivery) -> dict[str, Any]:
    return {
        "notification_id": claimed.notification_id,
        "channel": claimed.channel.value,
        "attempt_number": claimed.attempt_count,
        "provider": claimed.provider,
        "worker": claimed.worker,
        "attempted_at": claimed.started_at,
        "purge_at": claimed.purge_at,
    }


def _log_ended(ended: Mapping[str, tuple[ClaimedDelivery, dict[str, Any]]]) -> None:
    """Log how attempts ended: the delivery and the result of each, by the attempt's reference."""
    new: dict[str, Any] = {
        key: {"_id": key, **_attempt_fields(claimed), **result}
        for key, (claimed, result) in ended.items()
        if not claimed.device_ids
    }
    known = {key: result for key, (claimed, result) in ended.items() if claimed.device_ids}
    if new:
        try:
            retry_transient(attempts().insert_many, list(new.values()), ordered=False)
        except BulkWriteError as error:
            # A repeated write, or the sweeper has recorded the attempt as lost.
            if not is_duplicate(error):
                raise
            known |= {key: ended[key][1] for key in new}
    if known:
        ids, rows = list(known), list(known.values())
        retry_transient(
            attempts().update_many,
            {"_id": {"$in": ids}},
            [{"$replaceWith": {"$mergeObjects": ["$$ROOT", row_of(ids, rows)]}}],
        )


def _outcomes(s: Settlement) -> list[tuple[str, dict[str, Any]]]:
    if s.target_attempts:
        return [
            (s.claimed.reference_to(target.device_id), _record(target, target.status))
            for target in s.target_attempts
        ]
    status = _ATTEMPT_STATUSES.get(s.status, AttemptStatus.FAILED)
    units = {} if s.units is None else {"units": s.units}
    return [(s.claimed.reference, {**_record(s, status), **units})]


def _record(settled: Settlement | TargetAttempt, status: AttemptStatus) -> dict[str, Any]:
    fields = {
        "status": status.value,
        "provider_message_id": settled.provider_message_id,
        "platform_response": settled.response,
        "error_code": settled.code.value if settled.code else None,
        "error_message": settled.reason[:ERROR_LENGTH] if settled.reason else None,
        "finished_at": settled.finished_at,
        "duration_ms": settled.duration_ms,
    }
    return {name: value for name, value in fields.items() if value is not None}


def claim(
    *,
    ids: Sequence[ObjectId],
    channel: Channel,
    worker: str,
    now: datetime,
    include_poison_candidates: bool = False,
) -> list[ClaimedDelivery]:
    """Claim those deliveries that are due and unclaimed. Concurrent callers get different ones."""
    # Poison candidates are left out unless requested. Each is claimed alone, because it may have
    # crashed its worker and must not take other deliveries along.
    token = new_token()
    claimable = _claimable(channel, now)
    conditions = [
        {"$eq": ["$$d.channel", channel.value]},
        {"$eq": ["$$d.status", S.PENDING.value]},
        {"$lte": ["$$d.next_attempt_at", now]},
        is_unclaimed("$$d.claim", now=now),
    ]
    if not include_poison_candidates:
        claimable["claim_count"] = 0
        conditions.append({"$eq": ["$$d.claim_count", 0]})
    pipeline = transition(
        condition={"$and": conditions},
        changes={
            "claim": LEASES.new_claim(token=token, worker=worker, now=now),
            "claim_count": Computed({"$add": ["$$d.claim_count", 1]}),
        },
        now=now,
    )
    collection = notifications()
    wanted = {"_id": {"$in": list(ids)}}
    result = collection.update_many({**wanted, "delivery": {"$elemMatch": claimable}}, pipeline)
    crash_points.reach(Boundary.CLAIM_WRITTEN)
    if not result.matched_count:
        return []
    claimed = collection.find({**wanted, "delivery.claim.token": token})
    return [_claimed_from(document, token) for document in claimed]


def _claimed_from(document: NotificationDocument, token: str) -> ClaimedDelivery:
    """Return the delivery in a notification's document that is claimed with this token."""
    delivery, claim = next(
        (delivery, claim)
        for delivery in document["delivery"]
        if (claim := delivery.get("claim")) is not None and claim["token"] == token
    )
    return claimed_delivery_of(document, delivery, token=token, lease_until=claim["lease_until"])


def poison_candidates(
    *, ids: Sequence[ObjectId], channel: Channel, now: datetime
) -> list[ObjectId]:
    """Return the due, unclaimed deliveries whose last claim ended without an attempt."""
    candidate = {**_claimable(channel, now), "claim_count": {"$gt": 0}}
    wanted = {"_id": {"$in": list(ids)}, "delivery": {"$elemMatch": candidate}}
    return [document["_id"] for document in notifications().find(wanted, {"_id": 1})]


def start(
    claims: Sequence[ClaimedDelivery], *, provider: str, worker: str, now: datetime
) -> list[ClaimedDelivery]:
    """Mark deliveries of one :func:`claim` as sending. Return those whose lease is still held.

    A later step of a plan isn't started if the recipient has been reached since the claim.
    """
    # Counts an attempt for each. Called just before the request: if the worker is lost after this,
    # the outcome is unknown.
    if not claims:
        return []
    groups: dict[tuple[bool, int | None], list[ClaimedDelivery]] = {}
    for claim in claims:
        groups.setdefault((claim.step > FIRST_STEP, claim.series_first), []).append(claim)
    if len(groups) > 1:
        return [
            claim
            for some in groups.values()
            for claim in start(some, provider=provider, worker=worker, now=now)
        ]
    is_guarded, series_first = next(iter(groups))
    token, channel = claims[0].token, claims[0].channel
    renewed = LEASES.new_claim(token=token, worker=worker, now=now)
    pipeline = transition(
        condition=claimed_with(channel, token, S.PENDING),
        changes={
            "status": S.SENDING.value,
            "attempt_count": Computed({"$add": ["$$d.attempt_count", 1]}),
            "claim_count": 0,
            "claim": renewed,
            "provider": provider,
            "last_attempt_at": now,
            "next_attempt_at": None,
            "failure_code": None,
            "failure_reason": None,
            "held_reason": None,
            **(_series_fields(series_first) if series_first is not None else {}),
        },
        now=now,
    )
    ids = [c.notification_id for c in claims]
    wanted = _owned_filter(ids, token, S.PENDING) | (match_unreached() if is_guarded else {})
    result = retry_transient(notifications().update_many, wanted, pipeline)
    owned_ids = set(ids)
    if result.matched_count < len(claims):
        still_owned = notifications().find(_owned_filter(ids, token, S.SENDING), {"_id": 1})
        owned_ids = {document["_id"] for document in still_owned}
    started = [
        replace(
            c,
            attempt_count=c.attempt_count + 1,
            lease_until=renewed["lease_until"],
            started_at=now,
            worker=worker,
            provider=provider,
        )
        for c in claims
        if c.notification_id in owned_ids
    ]
    crash_points.reach(Boundary.START_WRITTEN)
    _log_started(started)
    return started


def _series_fields(first: int) -> dict[str, Any]:
    # Any further attempt, of whichever version, ends the series by its number alone.
    return {"series_first": first, "series_last": Computed({"$add": ["$$d.attempt_count", 1]})}


def settle(settlements: Sequence[Settlement], *, now: datetime) -> int:
    """Write the results of started deliveries. Return how many leases were still held."""
    # The attempts log is written even without a lease: it records what happened.
    if not settlements:
        return 0
    _log_ended(
        {reference: (s.claimed, result) for s in settlements for reference, result in _outcomes(s)}
    )
    crash_points.reach(Boundary.SETTLE_LOGGED)
    changes = {s.claimed.reference: _outcome(s, now) for s in settlements}
    errors = {
        s.claimed.reference: error_entry(
            s.claimed.channel, s.code or FailureCode.PROVIDER_ERROR, s.reason, now
        )
        for s in settlements
        if s.status not in SUCCEEDED
    }
    return _write([s.claimed for s in settlements], S.SENDING, changes, errors, now)


def return_unsent(started: Sequence[ClaimedDelivery], *, now: datetime) -> int:
    """Make started but unsent deliveries due at once. Return how many leases were still held."""
    if not started:
        return 0
    status = AttemptStatus.EXPIRED.value
    fields = {"status": status, "error_message": NOT_ATTEMPTED, "finished_at": now}
    _log_ended({c.reference_to(device): (c, fields) for c in started for device in c.targets})
    crash_points.reach(Boundary.RETURN_LOGGED)
    changes = {
        claimed.reference: {
            "status": S.PENDING.value,
            "claim": None,
            "next_attempt_at": now,
            "uncounted_attempts": claimed.uncounted_attempts + 1,
        }
        for claimed in started
    }
    return _write(started, S.SENDING, changes, {}, now)


def settle_not_sent(not_sent: Sequence[NotSent], *, now: datetime) -> int:
    """Defer or end claimed deliveries without an attempt. Return how many leases were held."""
    changes = {unsent.claimed.reference: _not_sent_fields(unsent, now) for unsent in not_sent}
    errors = {
        unsent.claimed.reference: error_entry(
            unsent.claimed.channel, unsent.code, unsent.reason, now
        )
        for unsent in not_sent
        if unsent.status is S.FAILED
    }
    return _write([unsent.claimed for unsent in not_sent], S.PENDING, changes, errors, now)


def release(claims: Sequence[ClaimedDelivery], *, now: datetime) -> int:
    """Release claims without a send, as if they had not been made, for example at shutdown."""
    changes = {
        claim.reference: {
            "status": S.PENDING.value,
            "claim": None,
            "claim_count": max(claim.claim_count - 1, 0),
        }
        for claim in claims
    }
    return _write(claims, S.PENDING, changes, {}, now)


def _claimable(channel: Channel, now: datetime) -> dict[str, Any]:
    return {
        "channel": channel.value,
        "status": S.PENDING.value,
        "next_attempt_at": {"$lte": now},
        **unclaimed(now=now),
    }


def _outcome(s: Settlement, now: datetime) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "status": s.status.value,
        "claim": None,
        "next_attempt_at": s.next_attempt_at,
        "provider": s.provider,
        "provider_message_id": s.provider_message_id,
    }
    if s.accepted_targets:
        changes["accepted_targets"] = list(s.accepted_targets)
    if s.ambiguous_targets or s.claimed.ambiguous_targets:
        changes["ambiguous_targets"] = list(s.ambiguous_targets)
    if s.ambiguous_targets or s.status is S.UNKNOWN:
        changes["ambiguous_provider"] = s.provider
    if s.fails_over or s.claimed.failed_over_from:
        changes["failed_over_from"] = s.provider if s.fails_over else None
    if s.status in SUCCEEDED:
        changes["sent_at"] = s.finished_at
        return changes | ({"delivered_at": s.finished_at} if s.status is S.DELIVERED else {})
    if s.uncounted:
        changes["ready_at"] = s.next_attempt_at
        if s.code is not FailureCode.QUIET_HOURS:
            changes |= _held_changes(s, now)
        changes["uncounted_attempts"] = s.claimed.uncounted_attempts + 1
    if s.status is S.PENDING and s.code is FailureCode.CHANNEL_UNAVAILABLE:
        changes |= with_hold(
            s.claimed,
            Hold(
                reason=WaitReason.PROVIDER_UNAVAILABLE,
                provider=s.provider,
                since=now,
                detail=s.reason or "",
            ),
        )
    return changes | _failure(s, now)


def _not_sent_fields(unsent: NotSent, now: datetime) -> dict[str, Any]:
    fields: dict[str, Any] = (
        {"sent_at": now, "failure_code": None, "failure_reason": None}
        if unsent.status is S.SENT
        else _failure(unsent, now)
    )
    if unsent.claimed.failed_over_from:
        # After a wait, providers are tried in their normal order again.
        fields["failed_over_from"] = None
    if unsent.digest_id is not None:
        fields |= {"digest_id": unsent.digest_id, "digest_epoch": None}
    elif unsent.claimed.digest_id is not None and unsent.code is not FailureCode.IN_DIGEST:
        # It has left its digest, which missed it.
        fields |= {"digest_id": None, "digest_epoch": None}
    if unsent.status is S.PENDING:
        fields["ready_at"] = unsent.next_attempt_at
    if unsent.code in _OUTAGE_CODES:
        fields |= _held_changes(unsent, now)
    if unsent.hold is not None:
        fields |= with_hold(unsent.claimed, unsent.hold)
    hold = unsent.hold or unsent.claimed.hold
    if "failed_at" in fields and hold is not None and hold.provider:
        # Its cause is named by the provider whose outage ended it, even without an attempt.
        fields["provider"] = hold.provider
    return {
        "status": unsent.status.value,
        "claim": None,
        "claim_count": 0,
        "next_attempt_at": unsent.next_attempt_at,
        **fields,
    }


def _held_changes(held: Settlement | NotSent, now: datetime) -> dict[str, Any]:
    """Return the change that adds a wait to the time for which outages have held a delivery."""
    if held.next_attempt_at is None or held.next_attempt_at <= now:
        return {}
    # Until a worker has time for it, the same outage goes on.
    since = max(min(held.claimed.held_until or now, now), now - MAX_LATENESS)
    total = held.claimed.held_for + (held.next_attempt_at - since)
    return {"held_ms": total // timedelta(milliseconds=1)}


def _failure(ended: Settlement | NotSent, now: datetime) -> dict[str, Any]:
    changes: dict[str, Any] = {
        "failure_code": (ended.code or FailureCode.PROVIDER_ERROR).value,
        "failure_reason": (ended.reason or "")[:ERROR_LENGTH],
        "held_reason": ended.held_reason.value if ended.held_reason else None,
    }
    if ended.status is S.FAILED or (ended.status is S.EXPIRED and ended.held_reason in OUTAGES):
        changes["failed_at"] = now
    return changes | ({"ended_at": now} if ended.status in UNSENT_ENDS else {})


def _write(
    claims: Sequence[ClaimedDelivery],
    status: DeliveryStatus,
    changes: Mapping[str, Mapping[str, Any]],
    errors: Mapping[str, Mapping[str, Any]],
    now: datetime,
) -> int:
    for change in changes.values():
        if DeliveryStatus(change["status"]) not in TRANSITIONS[status]:
            raise ValueError(f"no transition from {status} to {change['status']}")
    matched = 0
    for channel, token in {(c.channel, c.token) for c in claims}:
        some = [c for c in claims if (c.channel, c.token) == (channel, token)]
        pipeline = update_each(
            condition=claimed_with(channel, token, status),
            changes={c.notification_id: changes[c.reference] for c in some},
            errors={c.notification_id: errors[c.reference] for c in some if c.reference in errors},
            now=now,
            complete=with_device_receipts if channel.has_devices else None,
        )
        owned = _owned_filter([c.notification_id for c in some], token, status)
        matched += retry_transient(notifications().update_many, owned, pipeline).matched_count
    return matched


def _owned_filter(ids: Sequence[ObjectId], token: str, status: DeliveryStatus) -> dict[str, Any]:
    return {
        "_id": {"$in": list(ids)},
        "delivery": {"$elemMatch": {**held_with(token), "status": status.value}},
    }
