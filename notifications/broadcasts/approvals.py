"""Has another person approve a broadcast before it is sent.

Each function does one thing that a person does, in one write, by compare-and-set on the status and
on the revision of the approval: so two decisions, or a decision and a change, never both count.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.client_session import ClientSession

from access import actors
from access.actors import Actor
from domain.states import BroadcastStatus
from notifications.documents.broadcasts import ApprovalDocument, BroadcastDocument

from .. import staff_messages
from ..actions.actions import InvalidStateError
from ..catalog import designs, types
from ..catalog.designs import UnknownBrandError
from ..files.enumeration import first_good_row
from ..validation import FieldProblem, InvalidRequestError
from . import audiences, control, repository
from .fingerprint import PROGRESS, fingerprint_of
from .repository import BroadcastLease
from .requests import request_of

log = structlog.get_logger(__name__)
DECIDE_WITHIN = timedelta(hours=72)
MAX_APPROVERS = 50
MAY_APPROVE = "notifications.approve_broadcast"
B = BroadcastStatus
UNDECIDED = (B.DRAFT, B.AWAITING_APPROVAL, B.REJECTED, B.EXPIRED)
CHANGEABLE = (*UNDECIDED, B.SCHEDULED)
"""Statuses from which a change makes a draft."""
GROWN_BEYOND_POLICY = "The audience has grown beyond what may be sent without an approval."
GROWN_SINCE_APPROVAL = "The audience has grown far beyond what was approved."
MARGIN = 100
"""Recipients that join between an approval and its sending, besides a tenth of the approved."""
LOCKED = "Its type can't be broadcast any more: it is disabled, critical, or has secrets."
UNKNOWN_BRAND = FieldProblem("/brand", "unknown_brand", "Unknown brand.")
BRAND_REMOVED = "Its brand {} was removed: change it first."
ONE_FILE = "A file is sent by a broadcast of its own: create one."
CHANGED = "The broadcast, its type, or its template has changed since the approval."
EXPIRED = "Nobody decided about it in time."
RESTORED = "The database was restored: it may have been sent already."


class HeldError(Exception):
    """A page may not be sent without another decision. The message says why."""


class OwnApprovalError(InvalidStateError):
    """Whoever decides is one of the authors."""

    def __init__(self) -> None:
        super().__init__("Another person must decide: you wrote or submitted it.")


def needs_approval(document: BroadcastDocument) -> bool:
    """Return whether the policy of its type wants a new broadcast approved.

    A test broadcast reaches nobody. An audience that isn't counted is large.
    """
    above = _most_without(document)
    if above is None:
        return False
    size = document.get("audience_size")
    # All means also a topic that nobody has joined yet.
    return size is None or above == 0 or size > above


def ask_for_new(document: BroadcastDocument, *, author: Actor, now: datetime) -> None:
    """Make a new broadcast, which isn't stored yet, await an approval."""
    document["approval"] = _asked(document, authors=author.keys, revision=1, now=now)
    document["status"] = B.AWAITING_APPROVAL.value
    # The worker that gets it tells the approvers.
    document["due_at"] = now


def submit(broadcast_id: ObjectId, *, by: Actor, now: datetime) -> BroadcastDocument:
    """Ask for the approval of a draft. Raises LookupError or InvalidStateError.

    It isn't taken if nothing of it could be sent.
    """
    document = _with_approval(broadcast_id, (B.DRAFT, B.EXPIRED))
    if (end := document.get("expires_at")) is not None and end <= now:
        raise InvalidStateError("Its expiry has passed: change it first.")
    if _is_locked(document):
        raise InvalidStateError(LOCKED)
    if (file_id := document.get("file_id")) is not None:
        first_good_row(file_id)
    approval = _asked(
        document,
        authors={*document["approval"]["authors"], *by.keys},
        revision=document["approval"]["revision"] + 1,
        now=now,
    )

    def write(session: ClientSession | None) -> BroadcastDocument | None:
        return repository.write_approval(
            document, B.AWAITING_APPROVAL, approval=approval, due_at=now, session=session, now=now
        )

    brand = request_of(document).brand
    try:
        submitted = designs.store_with_brand(brand, write)
    except UnknownBrandError:
        # While it was expired, nothing kept its brand.
        raise InvalidStateError(BRAND_REMOVED.format(brand)) from None
    return _written(submitted, at=now, now=now)


def change(new: BroadcastDocument, *, by: Actor, now: datetime) -> BroadcastDocument:
    """Give a broadcast that hasn't begun other content, and make it a draft.

    ``new`` is a valid broadcast with its ID. Raises LookupError, InvalidStateError, or
    InvalidRequestError if its brand was removed meanwhile.
    """
    document = _with_approval(new["_id"], CHANGEABLE)
    if "started_at" in document:
        raise InvalidStateError("A part of its audience was read already.")
    if new.get("file_id") not in (None, new["_id"]):
        # The IDs of its notifications follow from the broadcast, which may have another file's.
        raise InvalidStateError(ONE_FILE)
    given: dict[str, Any] = dict(new)
    content = {name: value for name, value in given.items() if name not in PROGRESS}
    del content["_id"]
    size = new.get("audience_size")
    if size is not None:
        content["audience_size"] = size
    gone = [name for name in document if name not in {*PROGRESS, *content, "_id"}]

    def write(session: ClientSession | None) -> BroadcastDocument | None:
        return repository.write_approval(
            document,
            B.DRAFT,
            approval=_draft(document["approval"], also=by.keys),
            content=content,
            removed=gone if size is not None else [*gone, "audience_size"],
            session=session,
            now=now,
        )

    try:
        return _written(designs.store_with_brand(new["request"].get("brand"), write), now=now)
    except UnknownBrandError:
        raise InvalidRequestError([UNKNOWN_BRAND]) from None


def approve(
    broadcast_id: ObjectId, *, fingerprint: str, by: Actor, now: datetime
) -> BroadcastDocument:
    """Schedule what an approver has seen. Raises LookupError or InvalidStateError.

    Raises OwnApprovalError for an author. Repeating it changes nothing.
    """
    document = repository.read(broadcast_id)
    if _is_repeated(document, fingerprint, by, decided_in=(B.SCHEDULED, B.RUNNING, B.COMPLETED)):
        return document
    approval = _decision(document, fingerprint, by=by, now=now)
    return _released(document, approval, only_others=by, now=now)


def override(
    broadcast_id: ObjectId, *, fingerprint: str, reason: str, by: Actor, now: datetime
) -> BroadcastDocument:
    """Schedule it without another person, in an emergency. Raises as :func:`approve`.

    An author may. The reason is stored, and an alert rule tells operators.
    """
    document = repository.read(broadcast_id)
    approval = _decision(document, fingerprint, by=by, now=now)
    approval["reason"] = reason
    approval["overridden_at"] = now
    return _released(document, approval, only_others=None, now=now)


def reject(
    broadcast_id: ObjectId, *, fingerprint: str, reason: str, by: Actor, now: datetime
) -> BroadcastDocument:
    """Refuse it, until it's changed. Raises as :func:`approve`."""
    document = repository.read(broadcast_id)
    if _is_repeated(document, fingerprint, by, decided_in=(B.REJECTED,)):
        return document
    approval = _decision(document, fingerprint, by=by, now=now)
    approval["reason"] = reason
    _refuse_author(document, by)
    return _written(
        repository.write_approval(
            document,
            B.REJECTED,
            approval=approval,
            is_ended=True,
            where={"approval.authors": {"$nin": sorted(by.keys)}},
            now=now,
        ),
        now=now,
    )


def withdraw_restored(broadcast_id: ObjectId, *, now: datetime) -> None:
    """Make a broadcast a draft after a restore, if it awaits an approval."""
    document = repository.read(broadcast_id)
    if document["status"] == B.AWAITING_APPROVAL:
        approval = _draft(document["approval"], reason=RESTORED, stopped_at=now)
        repository.write_approval(document, B.DRAFT, approval=approval, now=now)


def tell_or_expire(lease: BroadcastLease, *, now: datetime) -> datetime | None:
    """Tell the approvers of a broadcast once, or end it. Return when to continue, or None."""
    document = lease.document
    until = document["approval"]["expires_at"]
    if now >= until:
        _tell_authors(document, EXPIRED, now=now)
        if not repository.expire(lease, now=now):
            return _given_back(lease, now)
        log.info("broadcast_approval_expired", broadcast_id=str(lease.id))
        return None
    tell_approvers(document, now=now)
    if not repository.wait_for_decision(lease, until=until, now=now):
        return _given_back(lease, now)
    return until


def check_page(lease: BroadcastLease, page_size: int) -> None:
    """Raise HeldError if the next page may not be sent. Raises PyMongoError."""
    if (reason := why_held(lease, page_size)) is not None:
        raise HeldError(reason)


def why_held(lease: BroadcastLease, page_size: int) -> str | None:
    """Return why the next page may not be sent without another decision, or None if it may.

    A broadcast that needed no approval costs no read. Raises PyMongoError.
    """
    document = lease.document
    if (approval := document.get("approval")) is not None:
        is_approved = "decided_at" in approval and approval.get("fingerprint") == fingerprint_of(
            document, template_version=approval["template_version"], design=approval["design"]
        )
        if not is_approved:
            return CHANGED
        size = approval.get("audience_size")
        most = None if size is None else size + size // 10 + MARGIN
        return (
            GROWN_SINCE_APPROVAL
            if most is not None and _read_so_far(document) + page_size > most
            else None
        )
    above = _most_without(document)
    if above is None:
        return None
    return GROWN_BEYOND_POLICY if _read_so_far(document) + page_size > above else None


def _most_without(document: BroadcastDocument) -> int | None:
    """Return how many recipients it may have without an approval; None for any number."""
    config = types.find_type(document["type"])
    if config is None or document.get("is_test", False):
        return None
    return config.approval_above


def hold(lease: BroadcastLease, reason: str, *, now: datetime) -> datetime | None:
    """Stop reading an audience for want of an approval. Return when to continue, or None.

    One that has outgrown its policy awaits an approval; one that has changed is a draft again.
    """
    document = lease.document
    known = document.get("approval")
    if known is None:
        authors = document.get("authors") or actors.client_actor(document["client_id"]).keys
        approval: Mapping[str, Any] = {
            **_asked(document, authors={*authors}, revision=1, now=now),
            "reason": reason,
            "stopped_at": now,
        }
        status, due_at = B.AWAITING_APPROVAL, now
    else:
        approval = _draft(known, reason=reason, stopped_at=now)
        status, due_at = B.DRAFT, None
    # Before the write: the worker that repeats it after a crash tells nobody twice.
    _tell_authors(document, reason, now=now)
    if not repository.hold(lease, status, approval=approval, due_at=due_at, now=now):
        return _given_back(lease, now)
    log.warning("broadcast_held", broadcast_id=str(lease.id), status=status.value)
    return due_at


def tell_approvers(document: BroadcastDocument, *, now: datetime) -> int:
    """Tell each approver who isn't an author, once per submission. Return how many there are."""
    key = f"approval:{document['_id']}:{document['approval']['revision']}:"
    size = document["approval"].get("audience_size")
    audience = "an audience that isn't counted" if size is None else f"about {size:,} recipients"
    end = document["approval"]["expires_at"]
    body = (
        f"A broadcast of the type {document['type']} to {audience} awaits your approval.\n\n"
        f"It expires at {end:%Y-%m-%d %H:%M} UTC.\n\n{settings.PUBLIC_URL}{_page_of(document)}"
    )
    told = 0
    for person in actors.staff_with(MAY_APPROVE, limit=MAX_APPROVERS):
        if actors.staff_actor(person.pk).keys.isdisjoint(document["approval"]["authors"]):
            to = staff_messages.address_of(person.get_username(), person.email)
            reason = staff_messages.send(
                to,
                subject=f"Approve: {document['type']} to {audience}",
                body=body,
                key=key,
                channels=staff_messages.possible_channels(to),
                now=now,
            )
            told += reason is None
    if not told:
        log.error("approval_has_no_approvers", broadcast_id=str(document["_id"]))
    return told


def _tell_authors(document: BroadcastDocument, reason: str, *, now: datetime) -> None:
    """Tell the staff who wrote a broadcast that it waits for them, once per submission."""
    approval = document.get("approval")
    authors = document.get("authors") or () if approval is None else approval["authors"]
    revision = 0 if approval is None else approval["revision"]
    for person in actors.staff_among(authors):
        to = staff_messages.address_of(person.get_username(), person.email)
        staff_messages.send(
            to,
            subject=f"Not sent: your broadcast of the type {document['type']}",
            body=f"{reason}\n\n{settings.PUBLIC_URL}{_page_of(document)}",
            key=f"approval-stopped:{document['_id']}:{revision}:",
            channels=staff_messages.possible_channels(to),
            now=now,
        )


def _page_of(document: BroadcastDocument) -> str:
    return f"/admin/notifications/broadcast/{document['_id']}/change/"


def _asked(
    document: BroadcastDocument, *, authors: frozenset[str] | set[str], revision: int, now: datetime
) -> ApprovalDocument:
    version, design = types.get_template_version(document["type"]), designs.current().number
    end = document.get("expires_at")
    until = now + DECIDE_WITHIN
    asked: ApprovalDocument = {
        "revision": revision,
        "fingerprint": fingerprint_of(document, template_version=version, design=design),
        "template_version": version,
        "design": design,
        "authors": sorted(authors),
        "requested_at": now,
        "expires_at": until if end is None else min(until, end),
    }
    if (size := audiences.count_audience(audiences.audience_of(document))) is not None:
        asked["audience_size"] = size
    return asked


def _is_locked(document: BroadcastDocument) -> bool:
    slug, template = document["type"], request_of(document).content.template_id
    return types.find_type(slug) is None or types.is_locked(slug, template)


def _draft(
    known: ApprovalDocument,
    *,
    also: frozenset[str] = frozenset(),
    reason: str | None = None,
    stopped_at: datetime | None = None,
) -> ApprovalDocument:
    draft: ApprovalDocument = {
        "revision": known["revision"] + 1,
        "template_version": known["template_version"],
        "design": known["design"],
        "authors": sorted({*known["authors"], *also}),
    }
    if reason is not None:
        draft["reason"] = reason
    if stopped_at is not None:
        draft["stopped_at"] = stopped_at
    return draft


def _decision(
    document: BroadcastDocument, fingerprint: str, *, by: Actor, now: datetime
) -> ApprovalDocument:
    """Return the approval with a decision. Raises InvalidStateError unless it can be made."""
    approval = document.get("approval")
    if approval is None or document["status"] != B.AWAITING_APPROVAL:
        raise InvalidStateError("It doesn't await an approval.")
    if now >= approval["expires_at"]:
        raise InvalidStateError("The time to decide is over.")
    current = fingerprint_of(
        document, template_version=approval["template_version"], design=approval["design"]
    )
    if approval["fingerprint"] != current:
        draft = _draft(approval, reason=CHANGED, stopped_at=now)
        _tell_authors(document, CHANGED, now=now)
        repository.write_approval(document, B.DRAFT, approval=draft, now=now)
        raise InvalidStateError(CHANGED)
    if fingerprint != current:
        raise InvalidStateError("It isn't what you saw: look at it again.")
    return {**approval, "decided_at": now, "decided_by": by.key}


def _released(
    document: BroadcastDocument,
    approval: ApprovalDocument,
    *,
    only_others: Actor | None,
    now: datetime,
) -> BroadcastDocument:
    where: dict[str, Any] = {"approval.fingerprint": approval["fingerprint"]}
    if only_others is not None:
        _refuse_author(document, only_others)
        where["approval.authors"] = {"$nin": sorted(only_others.keys)}
    at = max(document.get("scheduled_at") or now, now)
    released = repository.write_approval(
        document, B.SCHEDULED, approval=approval, due_at=at, where=where, now=now
    )
    return _written(released, at=at, now=now)


def _refuse_author(document: BroadcastDocument, by: Actor) -> None:
    if not by.keys.isdisjoint(document["approval"]["authors"]):
        raise OwnApprovalError


def _is_repeated(
    document: BroadcastDocument,
    fingerprint: str,
    by: Actor,
    *,
    decided_in: tuple[BroadcastStatus, ...],
) -> bool:
    approval = document.get("approval")
    return (
        approval is not None
        and document["status"] in decided_in
        and approval.get("decided_by") == by.key
        and "overridden_at" not in approval
        and approval.get("fingerprint") == fingerprint
    )


def _with_approval(
    broadcast_id: ObjectId, statuses: tuple[BroadcastStatus, ...]
) -> BroadcastDocument:
    document = repository.read(broadcast_id)
    if "approval" not in document:
        raise InvalidStateError("It needs no approval.")
    if document["status"] not in statuses:
        raise InvalidStateError(f"It's {document['status'].replace('_', ' ')}.")
    return document


def _written(
    written: BroadcastDocument | None, *, at: datetime | None = None, now: datetime
) -> BroadcastDocument:
    """Enqueue and return what was written. Raises InvalidStateError if somebody was faster."""
    if written is None:
        raise InvalidStateError("Somebody has just changed it: look at it again.")
    if at is not None:
        control.enqueue(written["_id"], at=at, now=now)
    return written


def _read_so_far(document: BroadcastDocument) -> int:
    left_out = (document["skipped"], document["rejected"])
    skipped = sum(reason["count"] for reasons in left_out for reason in reasons.values())
    return document["accepted"] + skipped


def _given_back(lease: BroadcastLease, now: datetime) -> datetime | None:
    """Give a lease back after a change by staff, such as a cancellation, took the status away."""
    return now if repository.release_lease(lease, now=now) else None
