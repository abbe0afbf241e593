"""Digests: opened by their first member, closed under a lease, and merged into a carrier.

Membership is on the member: its delivery names the digest. A lease that closes a digest has an
epoch, a fencing token that grows with each lease: it selects the members by writing its epoch to
them, and then seals the digest. Only members with the epoch of the seal are part of the carrier, so
that a frozen worker neither adds to a digest nor takes from it. A member that was stored too late
is rechecked after ``RECHECK``, and joins another digest.
"""

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bson import ObjectId
from pymongo import ReturnDocument, UpdateOne
from pymongo.errors import BulkWriteError

from domain.channels import Channel
from domain.content import Content
from domain.digests import CLOSE_GRACE, MAX_SLIDES, DigestOutcome, DigestStatus
from domain.errors import FailureCode
from domain.states import DeliveryStatus, Priority
from notifications.documents.policies import DigestDocument
from notifyproject.db.collections import collection, is_duplicate
from notifyproject.db.leases import Leases

from .claims import ClaimedDelivery, claimed_delivery_of
from .collections import digests, notifications, retry_transient
from .pipelines import Computed, Expression, cancelled_changes, error_entry, row_of, update
from .search_keys import SEARCH_INDEX, KeyKind, search_key

S, D = DeliveryStatus, DigestStatus
LEASES = Leases(
    collection=digests, length=timedelta(seconds=90), max_claims=2, max_length_factor=20
)
"""Each further lease of a digest is 90 seconds longer, up to half an hour. If a close took longer
than every lease, others would lease the digest again without end. After two leases without a
close, a digest is leased alone."""
DIGEST_RETENTION = timedelta(days=90)
CANCEL_REASON = "Its digest was cancelled."
HEAD = 16
"""Batches at the head of the due digests among which concurrent closers choose at random."""
BY_ID = "_id_"
"""Without this hint, MongoDB may read all digests of a status."""
WITHOUT_CONTENT = {"content.body": 0, "content.payload": 0, "error_history": 0}
"""Fields of members that a digest doesn't need. A digest may have thousands."""
_random = random.SystemRandom()


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """A window in which a digest may be open, and the ID of that digest."""

    id: ObjectId
    ends_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """A digest that a member needs, and its form if none is open."""

    group: str
    client_id: ObjectId
    user_id: str | None
    type: str
    channel: Channel
    is_test: bool
    key: str | None
    windows: Sequence[Window]
    """The current window, and those to use if its digest is closed already."""
    leader: str | None
    slides: timedelta | None
    """The sliding window, None if it doesn't slide."""
    max_items: int
    min_items: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Closing:
    """A digest that the holder of a lease closes."""

    id: ObjectId
    document: DigestDocument
    token: str
    epoch: int
    members: Sequence[ClaimedDelivery]

    @property
    def is_sealed(self) -> bool:
        """Whether its members and outcome are fixed."""
        return bool(self.document["status"] == D.SEALED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Seal:
    """The outcome of a digest, fixed in one write."""

    closing: Closing
    outcome: DigestOutcome
    members: Sequence[ClaimedDelivery]
    dropped: int
    template_version: int | None
    content: Content | None = None
    """The carrier's, None if a worker that was lost has sealed the digest."""


def open_digests(openings: Sequence[Opening], *, now: datetime) -> dict[str, DigestDocument]:
    """Return the open digest of each group, opened if needed. Raises PyMongoError.

    A group is missing if others closed its digests meanwhile.
    """
    found: dict[str, DigestDocument] = {}
    missing = {opening.group: opening for opening in openings}
    tries = {opening.group: 0 for opening in openings}
    # An ended window makes room for the next one, even if no worker has closed its digest yet.
    digests().update_many(
        {"group": {"$in": sorted(missing)}, "status": D.OPEN.value, "closes_at": {"$lte": now}},
        {"$set": {"status": D.CLOSING.value}},
    )
    while missing:
        _insert_missing(
            [(opening, opening.windows[tries[opening.group]]) for opening in missing.values()], now
        )
        wanted = {"group": {"$in": sorted(missing)}, "status": D.OPEN.value}
        for document in digests().find(wanted):
            found[document["group"]] = document
            missing.pop(document["group"], None)
        if missing:
            _skip_closed(missing, tries)
    return found


def _skip_closed(missing: dict[str, Opening], tries: dict[str, int]) -> None:
    """Advance ``tries`` to each group's next window.

    Remove a group without one from ``missing``.
    """
    tried = {group: opening.windows[tries[group]] for group, opening in missing.items()}
    existing = find_digests(window.id for window in tried.values())
    for group, opening in list(missing.items()):
        window, closed = tried[group], existing.get(tried[group].id)
        # A window has another digest only if its digest was closed early.
        is_over = closed is not None and closed["closes_at"] >= closed["window_ends_at"]
        tries[group] += 1
        while is_over and tries[group] < len(opening.windows):
            if opening.windows[tries[group]].ends_at > window.ends_at:
                break
            tries[group] += 1
        if tries[group] >= len(opening.windows):
            del missing[group]


def _insert_missing(openings: Sequence[tuple[Opening, Window]], now: datetime) -> None:
    operations = [
        UpdateOne(
            {"group": opening.group, "status": D.OPEN.value},
            {"$setOnInsert": _new_digest(opening, window, now)},
            upsert=True,
        )
        for opening, window in openings
    ]
    try:
        digests().bulk_write(operations, ordered=False)
    except BulkWriteError as error:
        # Another worker opened it, or the window's digest is closed already.
        if not is_duplicate(error):
            raise


def _new_digest(opening: Opening, window: Window, now: datetime) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "_id": window.id,
        "client_id": opening.client_id,
        "user_id": opening.user_id,
        "type": opening.type,
        "channel": opening.channel.value,
        "is_test": opening.is_test,
        "key": opening.key,
        "leader": opening.leader,
        "max_items": opening.max_items,
        "min_items": opening.min_items,
        "opened_at": now,
        "window_ends_at": window.ends_at,
        "closes_at": window.ends_at,
        "due_at": window.ends_at + CLOSE_GRACE,
        "is_cancelled": False,
        "epoch": 0,
        "claim_count": 0,
    }
    return {name: value for name, value in fields.items() if value is not None}


def slide_digests(slides: Mapping[ObjectId, timedelta], *, now: datetime) -> None:
    """Move the ends of sliding windows, which a new member restarts. Raises PyMongoError."""
    if not slides:
        return
    operations = []
    for digest_id, window in slides.items():
        milliseconds = int(window.total_seconds() * 1000)
        last = {"$add": ["$opened_at", milliseconds * MAX_SLIDES]}
        ends_at = {"$max": ["$closes_at", {"$min": [now + window, last]}]}
        fields = {"closes_at": ends_at, "window_ends_at": ends_at}
        due_at = {"due_at": {"$add": ["$closes_at", int(CLOSE_GRACE.total_seconds() * 1000)]}}
        wanted = {"_id": digest_id, "status": D.OPEN.value}
        operations.append(UpdateOne(wanted, [{"$set": fields}, {"$set": due_at}]))
    digests().bulk_write(operations, ordered=False)


def find_digests(ids: Iterable[ObjectId]) -> dict[ObjectId, DigestDocument]:
    """Return digests by their IDs. Raises PyMongoError."""
    return {digest["_id"]: digest for digest in digests().find({"_id": {"$in": sorted(set(ids))}})}


def opening_times(groups: Iterable[str], *, now: datetime) -> dict[str, datetime]:
    """Return since when the groups that have an open digest have it. Raises PyMongoError."""
    wanted = {
        "group": {"$in": sorted(set(groups))},
        "status": D.OPEN.value,
        "closes_at": {"$gt": now},
    }
    found = digests().find(wanted, {"group": 1, "opened_at": 1})
    return {digest["group"]: digest["opened_at"] for digest in found}


def leave_digests(members: Sequence[tuple[ObjectId, ObjectId]], *, now: datetime) -> int:
    """Make members due now whose digest doesn't take any more. Return how many left.

    ``members`` are pairs of notification and digest. A member that the digest has selected stays.
    """
    if not members:
        return 0
    ids = sorted({digest_id for _, digest_id in members})
    condition = {"$and": [_waits_in(ids), _is_unselected()]}
    pipeline = update(condition=condition, changes={"next_attempt_at": now}, now=now)
    waiting = {"digest_id": {"$in": ids}, "status": S.PENDING.value, "digest_epoch": None}
    wanted = {
        "_id": {"$in": [notification_id for notification_id, _ in members]},
        "delivery": {"$elemMatch": waiting},
    }
    return notifications().update_many(wanted, pipeline).modified_count


def next_due(*, until: datetime, limit: int) -> tuple[datetime | None, int]:
    """Return when the first digest is to be closed, and how many are until then, up to a limit."""
    found = digests().find({"due_at": {"$lte": until}}, {"_id": 0, "due_at": 1})
    times = [digest["due_at"] for digest in found.sort([("due_at", 1), ("_id", 1)]).limit(limit)]
    return (times[0] if times else None), len(times)


def count_open(*, limit: int) -> int:
    """Return how many digests are open, up to a limit. Raises PyMongoError."""
    wanted = {"status": D.OPEN.value}
    return digests().count_documents(wanted, limit=limit, hint="dig_status")


def count_closed(*, since: datetime) -> dict[DigestOutcome, tuple[int, int]]:
    """Return how many digests were closed since a time, and their members, by outcome."""
    pipeline: list[Mapping[str, Any]] = [
        # Each is deleted the same time after its end, which an index has.
        {"$match": {"purge_at": {"$gte": since + DIGEST_RETENTION}}},
        {"$group": {"_id": "$outcome", "digests": {"$sum": 1}, "members": {"$sum": "$count"}}},
    ]
    found = collection(digests.name).aggregate(pipeline, hint="dig_purge")
    return {
        DigestOutcome(digest["_id"]): (digest["digests"], digest["members"]) for digest in found
    }


def acquire_due(
    *, worker: str, now: datetime, limit: int, client_id: ObjectId | None = None
) -> list[Closing]:
    """Lease due digests, and select their members. Raises PyMongoError.

    ``client_id``: only those of one client.
    """
    wanted: dict[str, Any] = {"due_at": {"$lte": now}}
    if client_id is not None:
        wanted["client_id"] = client_id
    skip = _random.randrange(HEAD) * limit
    ids = _due_ids(wanted, limit, skip=skip) or _due_ids(wanted, limit, skip=0)
    ids = _isolate_lost(ids)
    if not ids:
        return []
    is_sealed = {"$eq": ["$status", D.SEALED.value]}
    changes = {
        "status": {"$cond": [is_sealed, "$status", D.CLOSING.value]},
        "epoch": {"$cond": [is_sealed, "$epoch", {"$add": ["$epoch", 1]}]},
        "due_at": "$claim.lease_until",
    }
    due = {"due_at": {"$lte": now}}
    token, leased = LEASES.claim_many(ids, due, changes=changes, worker=worker, now=now)
    members = _select_members(leased, now) if leased else {}
    return [
        Closing(
            id=digest["_id"],
            document=digest,
            token=token,
            epoch=digest["epoch"],
            members=members.get(digest["_id"], []),
        )
        for digest in leased
    ]


def _isolate_lost(ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return the digests to lease together: one alone if its leases ended without a close.

    It may be the cause, and must not take others along.
    """
    wanted = {"_id": {"$in": list(ids)}, "claim_count": {"$gte": LEASES.max_claims}}
    lost = [digest["_id"] for digest in digests().find(wanted, {"_id": 1})]
    others = [digest_id for digest_id in ids if digest_id not in lost]
    if lost and (not others or _random.choice((True, False))):
        return [_random.choice(lost)]
    return others


def _due_ids(wanted: Mapping[str, Any], limit: int, *, skip: int) -> list[ObjectId]:
    found = digests().find(wanted, {"_id": 1})
    return [
        digest["_id"] for digest in found.sort([("due_at", 1), ("_id", 1)]).skip(skip).limit(limit)
    ]


def _select_members(
    leased: Sequence[DigestDocument], now: datetime
) -> dict[ObjectId, list[ClaimedDelivery]]:
    """Write each open digest's epoch to its members. Return all that have it, oldest first.

    The members of a sealed digest are fixed: one that was missed isn't in its carrier.
    """
    epochs = {digest["_id"]: digest["epoch"] for digest in leased}
    unsealed = {digest["_id"]: digest["epoch"] for digest in leased if digest["status"] != D.SEALED}
    if unsealed:
        ids = list(unsealed)
        epoch = _of_digest(ids, list(unsealed.values()))
        is_earlier = {"$lt": [{"$ifNull": ["$$d.digest_epoch", 0]}, epoch]}
        # A worker that has claimed a member can only defer it again, which its token then prevents.
        condition = {"$and": [_waits_in(ids), is_earlier]}
        changed = {"$mergeObjects": ["$$d", {"digest_epoch": epoch, "claim": None}]}
        element = {"$cond": [condition, changed, "$$d"]}
        deliveries = {"$map": {"input": "$delivery", "as": "d", "in": element}}
        change = [{"$set": {"delivery": deliveries}}]
        notifications().update_many(_match_waiting(ids), change, hint=SEARCH_INDEX)
    found = notifications().find(_match_waiting(list(epochs)), WITHOUT_CONTENT).hint(SEARCH_INDEX)
    selected: dict[ObjectId, list[ClaimedDelivery]] = {}
    for document in found:
        for delivery in document["delivery"]:
            digest_id = delivery.get("digest_id")
            if digest_id is None or digest_id not in epochs or delivery["status"] != S.PENDING:
                continue
            if delivery.get("digest_epoch") == epochs[digest_id]:
                member = claimed_delivery_of(document, delivery, token="", lease_until=now)
                selected.setdefault(digest_id, []).append(member)
    for members in selected.values():
        members.sort(key=lambda member: (member.created_at, member.notification_id))
    return selected


def drop_members(
    dropped: Sequence[tuple[ClaimedDelivery, DeliveryStatus, FailureCode, str]], *, now: datetime
) -> None:
    """End members of digests that aren't needed any more, each with status, code, and reason."""
    operations = [
        UpdateOne(
            _selected_filter(member),
            update(
                condition=_is_selected(member),
                changes={
                    "status": status.value,
                    "next_attempt_at": None,
                    "failure_code": code.value,
                    "failure_reason": reason,
                    "failed_at": now if status is S.FAILED else None,
                },
                now=now,
                error=error_entry(member.channel, code, reason, now)
                if status is S.FAILED
                else None,
            ),
        )
        for member, status, code, reason in dropped
    ]
    if operations:
        retry_transient(notifications().bulk_write, operations, ordered=False)


def seal(seals: Sequence[Seal], *, now: datetime) -> list[Seal]:
    """Seal digests, which makes their outcomes final. Return the seals that were stored."""
    if not seals:
        return []
    rows = []
    for seal in seals:
        row = {"outcome": seal.outcome.value, "count": len(seal.members), "dropped": seal.dropped}
        if seal.template_version is not None:
            row["template_version"] = seal.template_version
        rows.append(row)
    ids = [seal.closing.id for seal in seals]
    # Each lease has a token of its own, so that the token also names the epoch.
    wanted = {
        "_id": {"$in": ids},
        "claim.token": {"$in": sorted({seal.closing.token for seal in seals})},
        "status": D.CLOSING.value,
    }
    fields = {"status": D.SEALED.value, "sealed_at": now}
    pipeline = _merge_rows(ids, rows, fields)
    result = retry_transient(digests().update_many, wanted, pipeline, hint=BY_ID)
    if result.matched_count == len(seals):
        return list(seals)
    kept = {
        digest["_id"]: digest["epoch"]
        for digest in digests().find({"_id": {"$in": ids}, "status": D.SEALED.value}, {"epoch": 1})
    }
    return [seal for seal in seals if kept.get(seal.closing.id) == seal.closing.epoch]


def merge_members(carriers: Mapping[ObjectId, tuple[int, ObjectId]], *, now: datetime) -> int:
    """End the selected members of digests as merged. Return how many notifications changed.

    ``carriers`` has the epoch and the carrier of each digest. Idempotent.
    """
    changes = {
        "status": S.MERGED.value,
        "carried_by": Computed(
            _of_digest(list(carriers), [carrier for _, carrier in carriers.values()])
        ),
        "merged_at": now,
        **_ENDED,
    }
    return _change_selected(
        {digest_id: epoch for digest_id, (epoch, _) in carriers.items()}, changes, now
    )


def separate_members(epochs: Mapping[ObjectId, int], *, now: datetime) -> int:
    """Make the selected members of digests due now, by themselves. Idempotent."""
    changes = {
        **_ENDED,
        "next_attempt_at": now,
        "first_due_at": now,
        "digest_id": None,
        "digest_epoch": None,
        "skips_digest": True,
    }
    return _change_selected(epochs, changes, now)


def cancel_members(epochs: Mapping[ObjectId, int], *, now: datetime) -> int:
    """Cancel the selected members of digests. Idempotent."""
    return _change_selected(epochs, cancelled_changes(CANCEL_REASON, now=now), now)


def finish(closings: Sequence[tuple[ObjectId, ObjectId | None]], *, now: datetime) -> None:
    """Mark sealed digests as closed, with the carriers of those that have one."""
    if not closings:
        return
    rows = [{} if carrier is None else {"carrier_id": carrier} for _, carrier in closings]
    ids = [digest_id for digest_id, _ in closings]
    fields = {
        "status": D.CLOSED.value,
        "closed_at": now,
        "purge_at": now + DIGEST_RETENTION,
    }
    pipeline = [*_merge_rows(ids, rows, fields), {"$unset": ["due_at", "claim"]}]
    wanted = {"_id": {"$in": ids}, "status": D.SEALED.value}
    retry_transient(digests().update_many, wanted, pipeline, hint=BY_ID)


def end_digest(
    digest_id: ObjectId,
    *,
    client_id: ObjectId | None = None,
    is_cancelled: bool = False,
    now: datetime,
) -> DigestDocument | None:
    """End an open digest's window now, to send it or to cancel its members.

    Return the digest, or None if there is no such open one of this client, or of any for None.
    """
    wanted: dict[str, Any] = {"_id": digest_id, "status": D.OPEN.value}
    if client_id is not None:
        wanted["client_id"] = client_id
    changed: DigestDocument | None = digests().find_one_and_update(
        wanted,
        {
            "$set": {
                "status": D.CLOSING.value,
                "closes_at": now,
                "due_at": now + CLOSE_GRACE,
                "is_cancelled": is_cancelled,
            }
        },
        return_document=ReturnDocument.AFTER,
    )
    return changed


def erase_digests(*, user_id: str, ids: Sequence[ObjectId] = (), now: datetime) -> int:
    """Erase a recipient's digests. Return how many. Raises PyMongoError.

    ``ids`` are digests of messages without a user ID, which went to the recipient's address. A
    digest that isn't sealed is cancelled, and its lease ends, so that no worker seals it with
    members that it read before. The carrier of a sealed one may still be stored.
    """
    is_unsealed = {"$in": ["$status", [D.OPEN.value, D.CLOSING.value]]}
    cancelled = {
        "status": D.CLOSING.value,
        "is_cancelled": True,
        "closes_at": {"$min": ["$closes_at", now]},
        "due_at": now + CLOSE_GRACE,
        "claim": None,
    }
    erased = {"$mergeObjects": ["$$ROOT", {"erased_at": now}]}
    pipeline: list[Mapping[str, Any]] = [
        {"$replaceWith": {"$cond": [is_unsealed, {"$mergeObjects": [erased, cancelled]}, erased]}},
        {"$unset": ["user_id", "key"]},
    ]
    match = {"$or": [{"user_id": user_id}, {"_id": {"$in": list(ids)}}], "erased_at": None}
    return digests().update_many(match, pipeline).modified_count


def find_erased(ids: Sequence[ObjectId]) -> list[ObjectId]:
    """Return which of these digests were erased. Raises PyMongoError."""
    found = digests().find({"_id": {"$in": list(ids)}, "erased_at": {"$ne": None}}, {"_id": 1})
    return [digest["_id"] for digest in found.hint(BY_ID)]


def most_urgent(members: Sequence[ClaimedDelivery]) -> Priority:
    """Return the highest priority of a digest's members."""
    return min((member.priority for member in members), key=list(Priority).index)


_ENDED: dict[str, Any] = {
    "claim": None,
    "claim_count": 0,
    "next_attempt_at": None,
    "failure_code": None,
    "failure_reason": None,
    "held_reason": None,
}


def _merge_rows(
    ids: Sequence[ObjectId], rows: Sequence[Mapping[str, Any]], fields: Mapping[str, Any]
) -> list[Mapping[str, Any]]:
    """Return a pipeline that merges each digest's own row, and the fields of all."""
    merged = {"$mergeObjects": ["$$ROOT", row_of(ids, rows), {"$literal": dict(fields)}]}
    return [{"$replaceWith": merged}]


def _change_selected(
    epochs: Mapping[ObjectId, int], changes: Mapping[str, Any], now: datetime
) -> int:
    if not epochs:
        return 0
    ids = list(epochs)
    # The position of another digest is -1, the last.
    epoch = _of_digest(ids, [*epochs.values(), None])
    is_selected = {"$eq": ["$$d.digest_epoch", epoch]}
    pipeline = update(condition={"$and": [_is_pending(), is_selected]}, changes=changes, now=now)
    wanted = _match_waiting(ids, digest_epoch={"$gt": 0})
    update_many = notifications().update_many
    return int(retry_transient(update_many, wanted, pipeline, hint=SEARCH_INDEX).matched_count)


def _match_waiting(ids: Sequence[ObjectId], **fields: Any) -> dict[str, Any]:
    """Return a query for notifications with pending members of digests."""
    waiting = {"digest_id": {"$in": list(ids)}, "status": S.PENDING.value, **fields}
    return {**match_members(ids), "delivery": {"$elemMatch": waiting}}


def match_members(ids: Sequence[ObjectId]) -> dict[str, Any]:
    """Return a query for notifications that wait for digests or are part of them."""
    return {"search_keys": {"$in": [search_key(KeyKind.DIGEST_ID, id_) for id_ in ids]}}


def _waits_in(ids: Sequence[ObjectId]) -> Expression:
    return {"$and": [_is_pending(), {"$in": ["$$d.digest_id", list(ids)]}]}


def _is_pending() -> Expression:
    return {"$eq": ["$$d.status", S.PENDING.value]}


def _is_unselected() -> Expression:
    return {"$eq": [{"$ifNull": ["$$d.digest_epoch", None]}, None]}


def _of_digest(ids: Sequence[ObjectId], values: Sequence[Any]) -> Expression:
    """Return the value of the digest of ``$$d``, which is one of ``ids``."""
    index = {"$indexOfArray": [{"$literal": list(ids)}, "$$d.digest_id"]}
    return {"$arrayElemAt": [{"$literal": list(values)}, index]}


def _selected_filter(claim: ClaimedDelivery) -> dict[str, Any]:
    selected = {
        "channel": claim.channel.value,
        "status": S.PENDING.value,
        "digest_id": claim.digest_id,
        "digest_epoch": claim.digest_epoch,
    }
    return {"_id": claim.notification_id, "delivery": {"$elemMatch": selected}}


def _is_selected(claim: ClaimedDelivery) -> Expression:
    is_member = {"$eq": ["$$d.digest_epoch", claim.digest_epoch]}
    return {"$and": [_waits_in([claim.digest_id]), is_member]} if claim.digest_id else False
