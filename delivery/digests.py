"""Puts deliveries into digests right before their send, and closes digests that are due."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import bson
import structlog
from bson import ObjectId
from pymongo.errors import PyMongoError

from domain.channels import INBOX, ROOM, address_key
from domain.content import Content, Recipient
from domain.digests import (
    RECHECK,
    Digest,
    DigestOutcome,
    DigestStatus,
    carrier_id,
    group_id,
    scheduled_id,
    window_end,
)
from domain.errors import FailureCode
from domain.plans import Until, how_reached
from domain.states import DeliveryStatus, Priority
from domain.time import Clock, utc_now
from domain.zones import first_known_zone
from notifications import callback_events
from notifications.catalog import digests as definitions
from notifications.catalog import limits, retention, types
from notifications.catalog.types import TypeConfig
from notifications.content import reminders, rendering
from notifications.content.engine import TemplateError
from notifications.documents.notification import NotificationDocument
from notifications.intake.acceptance import enqueue_accepted
from notifications.intake.content import compose_content
from notifications.intake.requests import NotificationRequest
from notifications.queueing import wakeups
from notifications.store import acceptance, digests, removal, steps
from notifications.store.acceptance import Accepted
from notifications.store.claims import ClaimedDelivery, NotSent
from notifications.store.digests import Closing, Opening, Seal, Window
from notifications.store.new_notifications import NewDelivery, NewNotification
from notifications.validation import ProblemCollector
from notifyproject.platform import crash_points, process
from notifyproject.platform.crash_points import Boundary
from recipients import queries as recipients
from recipients.queries import RegisteredRecipient
from rooms import registry as rooms

from . import eligibility

log = structlog.get_logger(__name__)
S, D = DeliveryStatus, DigestStatus
RETRY_DELAY = timedelta(seconds=30)
"""Delay if no digest can be opened: neither sent nor dropped."""
ROUNDS = 4
"""Digests of one window: the last one, and those that were closed early."""
CLOSE_BATCH = 100
"""Digests that are closed together."""
MAX_BATCHES = 20
"""Batches of one task, so that other tasks get their turn."""
MAX_TASKS = 4
"""Tasks that a sweep enqueues, for all processes."""
MAX_CLOSERS = 2
"""Threads of a process that close digests at a time. More of them slow MongoDB down, and take the
threads of deliveries."""
CLOSER_WAIT = 1.0
"""Seconds."""
KEY_LENGTH = 200
MAX_ITEM_BYTES = 100_000
"""Total size of a carrier's items. Those beyond it are only counted."""
ROOM_WINDOW = timedelta(minutes=1)
ROOM_DIGEST = Digest(channels=(ROOM,), window=ROOM_WINDOW, is_only_over_limit=True)
"""Of the messages that come faster than a room takes them."""
ROOM_DIGEST_TYPE = "room_digest"
_closers = threading.BoundedSemaphore(MAX_CLOSERS)
IN_DIGEST = "Waits for its digest."
NOT_OPENED = "No digest could be opened."
EXPIRES = "Expires before its digest is sent."


def join_digests(
    claims: Sequence[ClaimedDelivery], *, now: datetime
) -> tuple[list[ClaimedDelivery], list[NotSent]]:
    """Return the deliveries to send by themselves, and those that wait for a digest."""
    slugs = types.digested_slugs()
    concerned = [claim for claim in claims if claim.digest_id is not None or claim.type in slugs]
    if not concerned:
        return list(claims), []
    waiting = _still_waiting([claim for claim in concerned if claim.digest_id is not None], now)
    joining = [
        (claim, digest)
        for claim in concerned
        if claim.reference not in waiting
        and (digest := digest_for(claim)) is not None
        and not digest.is_only_over_limit
    ]
    joined = _join(joining, now)
    decided = waiting | joined
    alone = [claim for claim in claims if claim.reference not in decided]
    return alone, [decided[claim.reference] for claim in claims if claim.reference in decided]


def join_over_limit(refused: Sequence[NotSent], *, now: datetime) -> list[NotSent]:
    """Put deliveries that a limit refuses into digests of their types.

    One that can't join stays refused, for example because its recipient wants no digests.
    """
    claims = [unsent.claimed for unsent in refused]
    found = [(claim, digest) for claim in claims if (digest := digest_for(claim)) is not None]
    joined = _join(found, now, is_over_limit=True)
    return [joined.get(unsent.claimed.reference, unsent) for unsent in refused]


def late_for_rooms(claims: Sequence[ClaimedDelivery], *, now: datetime) -> frozenset[str]:
    """Return the references of deliveries whose rooms collected others when they became due."""
    groups = {claimed.reference: _group_of(claimed, key=None) for claimed in claims}
    since = digests.opening_times(groups.values(), now=now) if groups else {}
    return frozenset(
        claimed.reference
        for claimed in claims
        if (opened_at := since.get(groups[claimed.reference])) and claimed.first_due_at > opened_at
    )


def join_rooms(crowded: Sequence[ClaimedDelivery], *, now: datetime) -> list[NotSent]:
    """Put deliveries into the digests of their rooms, of which each client has its own."""
    joined = _join([(c, _room_digest(c)) for c in crowded], now, is_over_limit=True)
    return list(joined.values())


def _room_digest(claimed: ClaimedDelivery) -> Digest:
    """Return the digest of a room, which isn't over before the room takes a message again."""
    room = rooms.find_rooms().get(claimed.recipient.room or "")
    gap = timedelta(0) if room is None else room.min_gap
    return replace(ROOM_DIGEST, window=max(ROOM_WINDOW, gap))


def digest_for(claimed: ClaimedDelivery) -> Digest | None:
    """Return the digest that a delivery may join, or None if it is sent by itself.

    A retry, a resend, a carrier, a critical message, one with a secret, and one with attachments
    are.
    """
    type_config = types.find_type(claimed.type)
    digest = type_config.digest if type_config is not None else None
    if digest is None or claimed.channel not in digest.channels:
        return None
    is_retry = claimed.attempt_count > 0
    is_urgent = claimed.priority is Priority.CRITICAL or types.is_locked(
        claimed.type, claimed.content.template_id
    )
    if is_retry or is_urgent or not claimed.may_join_digest or claimed.content.attachments:
        return None
    return digest if _person_of(claimed) is not None else None


def confirm_joined(joined: Sequence[NotSent], *, now: datetime) -> None:
    """Make members due again whose digest was closed while they were stored."""
    pairs = [
        (claim.claimed.notification_id, claim.digest_id) for claim in joined if claim.digest_id
    ]
    if not pairs:
        return
    crash_points.reach(Boundary.DIGEST_JOINED)
    try:
        found = digests.find_digests([digest_id for _, digest_id in pairs])
        # One that isn't sealed yet still selects them.
        late = [
            (notification_id, digest_id)
            for notification_id, digest_id in pairs
            if digest_id not in found or found[digest_id]["status"] in (D.SEALED, D.CLOSED)
        ]
        digests.leave_digests(late, now=now)
    except PyMongoError as error:
        # They are rechecked after RECHECK.
        log.warning("digests_not_confirmed", reason=type(error).__name__, deliveries=len(pairs))


def enqueue_due(*, now: datetime) -> int:
    """Enqueue tasks that close due digests, or one for when the first is due. Return how many."""
    most = MAX_TASKS * CLOSE_BATCH
    first, count = digests.next_due(until=now + wakeups.HORIZON, limit=most)
    if first is None:
        return 0
    if first > now:
        return int(wakeups.publish_digests(at=wakeups.wakeup_time(first, now=now), now=now))
    tasks = min(-(-count // CLOSE_BATCH), MAX_TASKS)
    return sum(wakeups.publish_digests(at=None, now=now) for _ in range(tasks))


def close_due(*, clock: Clock = utc_now, client_id: ObjectId | None = None) -> int:
    """Close the digests that are due, in batches. Return how many. Raises PyMongoError.

    ``client_id``: only those of one client. At most MAX_CLOSERS threads of a process do so at a
    time. Another one waits briefly, and then leaves the rest to them.
    """
    if not _closers.acquire(timeout=CLOSER_WAIT):
        return 0
    try:
        return _close_batches(clock, client_id)
    finally:
        _closers.release()


def _close_batches(clock: Clock, client_id: ObjectId | None) -> int:
    closed = 0
    for _ in range(MAX_BATCHES):
        if process.is_shutting_down():
            return closed
        closings = digests.acquire_due(
            worker=process.worker_name(), now=clock(), limit=CLOSE_BATCH, client_id=client_id
        )
        if not closings:
            return closed
        crash_points.reach(Boundary.DIGEST_SELECTED)
        _close(closings, clock)
        closed += len(closings)
    wakeups.publish_digests(at=None, now=clock())
    return closed


def _person_of(claimed: ClaimedDelivery) -> str | None:
    address = claimed.recipient.address(claimed.channel)
    if not claimed.channel.is_personal:
        return address_key(claimed.channel.value, address) if address else None
    return limits.person_of(user_id=claimed.user_id, channel=claimed.channel, address=address)


def _still_waiting(claims: Sequence[ClaimedDelivery], now: datetime) -> dict[str, NotSent]:
    """Return members whose digest isn't closed yet. The others, which it missed, join again."""
    found = digests.find_digests(
        [claim.digest_id for claim in claims if claim.digest_id is not None]
    )
    waiting = {}
    for claimed in claims:
        digest = found.get(claimed.digest_id) if claimed.digest_id is not None else None
        if digest is None or digest["status"] == D.CLOSED:
            continue
        if digest["status"] == D.SEALED and claimed.digest_epoch != digest["epoch"]:
            continue
        if claimed.digest_epoch:
            # It may be in the carrier: even its expiry doesn't end it here.
            code = FailureCode.IN_DIGEST
            waiting[claimed.reference] = NotSent(claimed, S.PENDING, code, IN_DIGEST, now + RECHECK)
        else:
            waiting[claimed.reference] = _wait(claimed, until=max(digest["closes_at"], now))
    return waiting


def _wait(claimed: ClaimedDelivery, *, until: datetime, joins: ObjectId | None = None) -> NotSent:
    code = FailureCode.IN_DIGEST
    if claimed.expires_at is not None and until >= claimed.expires_at:
        return NotSent(claimed, S.EXPIRED, code, EXPIRES)
    return NotSent(claimed, S.PENDING, code, IN_DIGEST, until + RECHECK, digest_id=joins)


def _join(
    joining: Sequence[tuple[ClaimedDelivery, Digest]],
    now: datetime,
    *,
    is_over_limit: bool = False,
) -> dict[str, NotSent]:
    if not joining:
        return {}
    decided: dict[str, NotSent] = {}
    try:
        user_ids = [claim.user_id for claim, _ in joining if claim.user_id is not None]
        registered = recipients.find_registered(user_ids)
        openings: dict[str, Opening] = {}
        groups: dict[str, str] = {}
        for claimed, digest in sorted(joining, key=lambda pair: pair[0].created_at):
            opening = _opening(claimed, digest, registered.get(claimed.user_id or ""), now)
            if opening is not None:
                groups[claimed.reference] = opening.group
                openings.setdefault(opening.group, opening)
        found = digests.open_digests(list(openings.values()), now=now) if openings else {}
        crash_points.reach(Boundary.DIGEST_OPENED)
        slides: dict[ObjectId, timedelta] = {}
        for claimed, _ in joining:
            if (group := groups.get(claimed.reference)) is None:
                continue
            document = found.get(group)
            if document is None:
                decided[claimed.reference] = _not_opened(claimed, now)
            elif is_over_limit or document.get("leader") != _delivery_id(claimed):
                wait = _wait(claimed, until=document["closes_at"], joins=document["_id"])
                decided[claimed.reference] = wait
                if (slides_by := openings[group].slides) is not None:
                    slides[document["_id"]] = slides_by
        digests.slide_digests(slides, now=now)
    except PyMongoError as error:
        log.warning("digests_not_joined", reason=type(error).__name__, deliveries=len(joining))
        return {claim.reference: _not_opened(claim, now) for claim, _ in joining}
    return decided


def _not_opened(claimed: ClaimedDelivery, now: datetime) -> NotSent:
    until = now + RETRY_DELAY
    return NotSent(claimed, S.PENDING, FailureCode.IN_DIGEST, NOT_OPENED, until)


def _delivery_id(claimed: ClaimedDelivery) -> str:
    return f"{claimed.notification_id}.{claimed.channel}"


def _opening(
    claimed: ClaimedDelivery,
    digest: Digest,
    registered: RegisteredRecipient | None,
    now: datetime,
) -> Opening | None:
    """Return the digest for a delivery. None if the recipient wants none of this type."""
    window = digest.window
    is_personal = claimed.channel.is_personal
    if registered is not None and is_personal:
        own = definitions.preferred_window(
            registered.preferences, type_slug=claimed.type, category=claimed.category
        )
        if own == definitions.OFF:
            return None
        window = own if own is not None and not isinstance(own, str) else window
    own_zone = registered.timezone if registered else None
    zone = first_known_zone(own_zone, claimed.recipient.timezone)
    key = None
    if digest.key is not None:
        key = str(claimed.data.get(digest.key, ""))[:KEY_LENGTH]
    group = _group_of(claimed, key=key)
    ends_at = window_end(window, now=now, recipient_zone=zone)
    if isinstance(window, timedelta):
        windows = [Window(id=ObjectId(), ends_at=ends_at)]
    else:
        following = window_end(window, now=ends_at, recipient_zone=zone)
        windows = [
            Window(id=ObjectId(scheduled_id(group, ends_at=end, number=number)), ends_at=end)
            for end, numbers in ((ends_at, range(ROUNDS)), (following, range(1)))
            for number in numbers
        ]
    return Opening(
        group=group,
        client_id=claimed.client_id,
        user_id=claimed.user_id if is_personal else None,
        type=claimed.type if is_personal else ROOM_DIGEST_TYPE,
        channel=claimed.channel,
        is_test=claimed.is_test,
        key=key,
        windows=windows,
        leader=_delivery_id(claimed) if digest.is_leading else None,
        slides=window if digest.is_sliding and isinstance(window, timedelta) else None,
        max_items=digest.max_items,
        min_items=digest.min_items,
    )


def _group_of(claimed: ClaimedDelivery, *, key: str | None) -> str:
    is_personal = claimed.channel.is_personal
    return group_id(
        _person_of(claimed) or "",
        str(claimed.client_id),
        claimed.type if is_personal else ROOM_DIGEST_TYPE,
        claimed.channel.value,
        "test" if claimed.is_test else "live",
        # A request may name another address than the registered one.
        claimed.recipient.address(claimed.channel) or "",
        ",".join(sorted(claimed.recipient.device_ids)) if is_personal else "",
        key or "",
        # No company's message is in another one's digest.
        _brand_of(claimed) or "",
    )


def _brand_of(claimed: ClaimedDelivery) -> str | None:
    """Return the brand of a delivery. A room's digest has the messages of all brands, and none."""
    look = claimed.content.look
    return look.brand if look is not None and claimed.channel.is_personal else None


def _close(closings: Sequence[Closing], clock: Clock) -> None:
    now = clock()
    sealed = [_sealed_before(closing) for closing in closings if closing.is_sealed]
    sealed += digests.seal(
        _decide([closing for closing in closings if not closing.is_sealed], now), now=now
    )
    crash_points.reach(Boundary.DIGEST_SEALED)
    by_outcome: dict[DigestOutcome, list[Seal]] = {}
    for seal in sealed:
        by_outcome.setdefault(seal.outcome, []).append(seal)
    accepted = _store_carriers(by_outcome.get(DigestOutcome.SENT, []), now)
    crash_points.reach(Boundary.DIGEST_CARRIED)
    _erase_carriers(by_outcome.get(DigestOutcome.SENT, []), now)
    digests.merge_members(
        {
            seal.closing.id: (seal.closing.epoch, _carrier_of(seal.closing.id))
            for seal in by_outcome.get(DigestOutcome.SENT, [])
        },
        now=now,
    )
    separate = by_outcome.get(DigestOutcome.SEPARATE, [])
    digests.separate_members({seal.closing.id: seal.closing.epoch for seal in separate}, now=now)
    digests.cancel_members(
        {
            seal.closing.id: seal.closing.epoch
            for seal in by_outcome.get(DigestOutcome.CANCELLED, [])
        },
        now=now,
    )
    crash_points.reach(Boundary.DIGEST_MERGED)
    digests.finish(
        [
            (
                seal.closing.id,
                _carrier_of(seal.closing.id) if seal.outcome is DigestOutcome.SENT else None,
            )
            for seal in sealed
        ],
        now=now,
    )
    enqueue_accepted(accepted, now=now)
    wakeups.send_later(
        [
            wakeups.Wakeup(member.notification_id, member.channel, member.priority, now)
            for seal in separate
            for member in seal.members
        ],
        now=now,
    )
    lag = max(
        ((now - seal.closing.document["closes_at"]).total_seconds() for seal in sealed), default=0
    )
    log.info(
        "digests_closed", digests=len(sealed), carriers=len(accepted), lag_seconds=round(lag, 1)
    )


def _sealed_before(closing: Closing) -> Seal:
    """Return the seal of a worker that was lost after it."""
    return Seal(
        closing=closing,
        outcome=DigestOutcome(closing.document["outcome"]),
        members=closing.members,
        dropped=closing.document["dropped"],
        template_version=closing.document.get("template_version"),
    )


def _decide(closings: Sequence[Closing], now: datetime) -> list[Seal]:
    """Drop members that aren't needed any more, and return the outcome of each digest."""
    dropped = _not_needed([m for closing in closings for m in closing.members], now)
    digests.drop_members(
        [
            (unsent.claimed, unsent.status, unsent.code, unsent.reason)
            for unsent in dropped.values()
        ],
        now=now,
    )
    ended = [
        unsent.claimed.notification_id
        for unsent in dropped.values()
        if unsent.claimed.later_channels
    ]
    steps.open_next_steps(ids=ended, now=now)
    seals = []
    for closing in closings:
        left = [member for member in closing.members if member.reference not in dropped]
        outcome, version, content = DigestOutcome.SENT, None, None
        type_config = types.find_type(closing.document["type"])
        if closing.document["is_cancelled"]:
            outcome = DigestOutcome.CANCELLED
        elif not left:
            outcome = DigestOutcome.EMPTY
        elif len(left) < closing.document["min_items"] or type_config is None:
            outcome = DigestOutcome.SEPARATE
        else:
            version = type_config.template_version
            content, problem = _compose(closing, left, type_config, now)
            if problem is not None:
                log.warning("digest_not_rendered", digest_id=str(closing.id), reason=problem)
                outcome = DigestOutcome.SEPARATE
        seals.append(
            Seal(
                closing=closing,
                outcome=outcome,
                members=left,
                dropped=len(closing.members) - len(left),
                template_version=version,
                content=content,
            )
        )
    return seals


def _not_needed(members: Sequence[ClaimedDelivery], now: datetime) -> dict[str, NotSent]:
    found: dict[str, NotSent] = {}
    for member in members:
        how = how_reached(
            Until.READ,
            statuses=member.channel_statuses,
            is_marked_read=member.is_marked_read,
            is_acted=member.is_acted,
        )
        if how is not None:
            reason = f"Not needed: {how}."
            found[member.reference] = NotSent(member, S.CANCELLED, FailureCode.NOT_NEEDED, reason)
    # The carrier has its own quiet hours.
    _, ineligible = eligibility.filter_eligible(
        [member for member in members if member.reference not in found],
        now=now,
        has_provider=True,
        with_quiet_hours=False,
    )
    return found | {unsent.claimed.reference: unsent for unsent in ineligible}


def _store_carriers(seals: Sequence[Seal], now: datetime) -> list[NotificationDocument]:
    """Store the carriers of sealed digests. Idempotent by the digests' IDs."""
    # A digest whose carrier is stored has no member left if a lost worker had merged them.
    new = [_carrier(seal, now) for seal in seals if seal.members]
    results = acceptance.accept(callback_events.mark_for_callbacks(new), now=now)
    return [result.document for result in results if isinstance(result, Accepted)]


def _erase_carriers(seals: Sequence[Seal], now: datetime) -> None:
    """Erase the carriers of recipients that were erased after their digests were selected.

    An erasure marks the digests before it looks for notifications, so that it finds the carrier, or
    the mark is found here.
    """
    if erased := digests.find_erased([seal.closing.id for seal in seals]):
        removal.erase_content([_carrier_of(digest_id) for digest_id in erased], now=now)


def _carrier_of(digest_id: ObjectId) -> ObjectId:
    return ObjectId(carrier_id(str(digest_id)))


def _carrier(seal: Seal, now: datetime) -> NewNotification:
    closing, newest = seal.closing, seal.members[-1]
    content, problem = seal.content, None
    if content is None:
        content, problem = _compose_again(seal, now)
    delivery = NewDelivery(channel=newest.channel)
    if content is None:
        # Its members are fixed, so it ends as failed where support staff see it.
        content = Content(subject=newest.content.subject, body="")
        delivery = NewDelivery(
            channel=newest.channel,
            status=S.FAILED,
            failure_code=FailureCode.RENDER_FAILED,
            failure_reason=problem,
        )
    expiries = [member.expires_at for member in seal.members]
    expires_at = max((at for at in expiries if at is not None), default=None)
    return NewNotification(
        id=_carrier_of(closing.id),
        client_id=newest.client_id,
        user_id=newest.user_id if newest.channel.is_personal else None,
        recipient=_recipient_of(newest),
        type=closing.document["type"],
        category=newest.category,
        priority=digests.most_urgent(seal.members),
        content=content,
        data=_data(closing, seal.members, now),
        deliveries=(delivery,),
        max_attempts=newest.max_attempts,
        send_at=now,
        expires_at=None if None in expiries else expires_at,
        purge_at=retention.purge_at(newest.category, send_at=now),
        request_id=newest.request_id,
        is_test=newest.is_test,
        digest_id=closing.id,
        ignores_limits=all(member.ignores_limits for member in seal.members),
        created_at=now,
    )


def _recipient_of(newest: ClaimedDelivery) -> Recipient:
    """Return whom a carrier goes to: a room alone, whoever its members name beside it."""
    if newest.channel.is_personal:
        return newest.recipient
    return Recipient(room=newest.recipient.room, locale=newest.recipient.locale, given=("room",))


def _compose_again(seal: Seal, now: datetime) -> tuple[Content | None, str | None]:
    """Return the content of a carrier whose digest was sealed by a worker that was lost."""
    type_config = types.find_type(seal.closing.document["type"])
    if type_config is None:
        return None, "The type is missing."
    pinned = replace(type_config, template_version=seal.template_version or 0)
    return _compose(seal.closing, seal.members, pinned, now)


def _compose(
    closing: Closing, members: Sequence[ClaimedDelivery], type_config: TypeConfig, now: datetime
) -> tuple[Content | None, str | None]:
    """Return a carrier's content, or why its template can't be rendered."""
    newest, problems = members[-1], ProblemCollector()
    if newest.channel.is_personal:
        # The members were accepted with their own brand, or none, whatever the type names by now.
        type_config = replace(type_config, brand=None)
    try:
        content = compose_content(
            NotificationRequest(
                type=closing.document["type"],
                data=_data(closing, members, now),
                brand=_brand_of(newest),
            ),
            type_config=type_config,
            recipient=_recipient_of(newest),
            channels=[newest.channel],
            problems=problems,
            accepted=newest.content.look,
        )
    except Exception as error:
        # A defect of one digest must not hold up the others of its batch.
        log.exception("digest_not_composed", digest_id=str(closing.id))
        return None, type(error).__name__
    if problems.problems:
        return None, "; ".join(problem.detail for problem in problems.problems)
    return content, None


def _data(closing: Closing, members: Sequence[ClaimedDelivery], now: datetime) -> dict[str, Any]:
    """Return a carrier's variables: those of the newest member, and ``digest``.

    What a member says about the time until its event is that of now.
    """
    items: list[Mapping[str, Any]] = []
    size = 0
    for member in members[-closing.document["max_items"] :]:
        item = {
            "id": str(member.notification_id),
            "created_at": member.created_at.isoformat(),
            "subject": _subject_at(member, now),
            "data": reminders.data_at(member.content, member.data, now=now),
        }
        size += len(bson.encode(item))
        if items and size > MAX_ITEM_BYTES:
            break
        items.append(item)
    count = len(members)
    digest = {"items": items, "count": count, "more": count - len(items)}
    newest = members[-1]
    if not newest.channel.is_personal:
        return {"digest": digest}
    return {**reminders.data_at(newest.content, newest.data, now=now), "digest": digest}


def _subject_at(member: ClaimedDelivery, now: datetime) -> str | None:
    """Return a member's subject as it would be sent now."""
    stored = member.content.subject
    if member.content.is_masked or member.content.event_at is None:
        return stored
    with suppress(TemplateError):
        return rendering.render_message(
            channel=INBOX,
            content=member.content,
            data=member.data,
            recipient=member.recipient,
            now=now,
        ).subject
    return stored
