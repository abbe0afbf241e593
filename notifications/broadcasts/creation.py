"""Beginning a broadcast: what is wrong for everybody is told at once, and nothing is stored."""

import hashlib
from dataclasses import dataclass, replace
from datetime import datetime

import msgspec
from bson import ObjectId
from pymongo.errors import DuplicateKeyError

from domain import time
from domain.states import AudienceKind, Priority
from notifyproject.db.collections import collection
from recipients.topics import TOPIC

from ..catalog import types
from ..intake.idempotency import KEY_LIFETIME, record_id
from ..intake.requests import Caller, KeyReusedError, NotificationRequest
from ..store import NewNotification
from ..validation import InvalidRequestError, ProblemCollector
from . import control, fan_out, repository
from .documents import Audience, Document, NewBroadcast, fields_of
from .requests import AudienceRequest, BroadcastRequest


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBroadcast:
    """A broadcast that is stored and will be told."""

    document: Document
    replayed: bool
    """The idempotency key had been used for it before."""


def create(request: BroadcastRequest, *, caller: Caller, now: datetime) -> CreatedBroadcast:
    """Check and store a broadcast, and have a worker read its audience.

    Raises InvalidRequest, KeyReused; PyMongoError when nothing can be promised. Two calls with one
    idempotency key, at once or after a lost answer, make one broadcast.
    """
    if caller.idempotency_key is None:
        return _store(_check(request, caller, now), now)
    fingerprint = _fingerprint(request)
    first = _created_before(caller, fingerprint)
    if first is not None:
        return first
    new = _check(request, caller, now)
    return _store(replace(new, id=_reserve(new.id, fingerprint, caller, now)), now)


def _store(new: NewBroadcast, now: datetime) -> CreatedBroadcast:
    document = fields_of(new)
    try:
        collection("broadcasts").insert_one(document)
    except DuplicateKeyError:
        # The same call, at the same time.
        return CreatedBroadcast(document=repository.one(new.id) or document, replayed=True)
    control.enqueue(new.id, at=document["due_at"], now=now)
    return CreatedBroadcast(document=document, replayed=False)


def _created_before(caller: Caller, fingerprint: str) -> CreatedBroadcast | None:
    """Return what the same call has begun before; raises KeyReused if the key was for another."""
    taken = collection("idempotency_keys").find_one({"_id": record_id(caller)})
    if taken is None:
        return None
    if taken["fingerprint"] != fingerprint:
        raise KeyReusedError
    document = repository.one(taken["broadcast_id"])
    return CreatedBroadcast(document=document, replayed=True) if document is not None else None


def _reserve(broadcast_id: ObjectId, fingerprint: str, caller: Caller, now: datetime) -> ObjectId:
    """Take the idempotency key for a broadcast with this id; return the id it stands for.

    The key is stored first: whoever comes again after a crash between the two writes, or comes
    second, stores the same broadcast. Raises KeyReused.
    """
    try:
        collection("idempotency_keys").insert_one(
            {
                "_id": record_id(caller),
                "fingerprint": fingerprint,
                "broadcast_id": broadcast_id,
                "notification_ids": [],
                "created_at": now,
                "expires_at": now + KEY_LIFETIME,
            }
        )
    except DuplicateKeyError:
        taken = collection("idempotency_keys").find_one({"_id": record_id(caller)})
        if taken is None:
            # It ran out between the two calls.
            return _reserve(broadcast_id, fingerprint, caller, now)
        if taken["fingerprint"] != fingerprint:
            raise KeyReusedError from None
        return ObjectId(taken["broadcast_id"])
    return broadcast_id


def _check(request: BroadcastRequest, caller: Caller, now: datetime) -> NewBroadcast:
    """Return the broadcast a request asks for; raises InvalidRequest with all its problems."""
    problems = ProblemCollector()
    audience = _audience(request.audience, problems)
    _check_type(request, problems)
    asked = _for_everybody(request)
    sample: NewNotification | None = None
    try:
        sample = fan_out.validate_for_everyone(
            msgspec.structs.replace(asked, scheduled_at=request.scheduled_at),
            caller=caller,
            now=now,
        )
    except InvalidRequestError as wrong:
        for one in wrong.problems:
            problems.add(one.pointer, one.code, one.detail)
    if sample is not None and sample.priority is Priority.CRITICAL:
        expected = "A broadcast is high, normal or low: nothing is sent before a login code."
        problems.add("/priority", "critical_broadcast", expected)
    if sample is None or problems.problems:
        raise InvalidRequestError(problems.problems)
    return NewBroadcast(
        id=ObjectId(),
        caller=caller,
        type=sample.type,
        priority=sample.priority,
        request=asked,
        audience=audience,
        audience_size=repository.size(audience),
        scheduled_at=sample.scheduled_at,
        expires_at=time.parse_timestamp(request.expires_at) if request.expires_at else None,
        created_at=now,
    )


def _for_everybody(request: BroadcastRequest) -> NotificationRequest:
    """Return what each person is told: the broadcast's own time says when, so it has none."""
    return NotificationRequest(
        type=request.type,
        channels=request.channels,
        priority=Priority.LOW.value if request.priority is None else request.priority,
        content=request.content,
        data=request.data,
        ttl=request.ttl,
        expires_at=request.expires_at,
    )


def _check_type(request: BroadcastRequest, problems: ProblemCollector) -> None:
    """Note a type that is for one person alone. That there is none is noted with the rest."""
    try:
        kind = types.get_type(request.type)
    except types.UnknownTypeError:
        return
    if kind.priority is Priority.CRITICAL:
        expected = "A critical type is for one person: it passes their wishes and quiet hours."
        problems.add("/type", "critical_type", expected)
    elif types.sensitive_variables(kind.slug, request.content.template_id):
        problems.add("/type", "secret_type", "What this says is secret, so for one person.")


def _audience(asked: AudienceRequest, problems: ProblemCollector) -> Audience:
    given = [asked.topic is not None, asked.user_ids is not None, asked.all is not None]
    if sum(given) != 1:
        problems.add("/audience", "conflict", "Give exactly one of topic, user_ids and all.")
        return Audience(kind=AudienceKind.ALL)
    if asked.all is False:
        problems.add("/audience/all", "out_of_range", "Expected true, or another audience.")
    if asked.topic is not None and not TOPIC.fullmatch(asked.topic):
        problems.add("/audience/topic", "invalid_topic", "A topic has a-z, 0-9, _ and -.")
    if asked.topic is not None:
        return Audience(kind=AudienceKind.TOPIC, topic=asked.topic)
    if asked.user_ids is not None:
        return Audience(kind=AudienceKind.USER_IDS, user_ids=sorted(set(asked.user_ids)))
    return Audience(kind=AudienceKind.ALL)


def _fingerprint(request: BroadcastRequest) -> str:
    encoded = msgspec.json.encode(request, order="sorted")
    return hashlib.sha256(b"broadcast" + encoded).hexdigest()
