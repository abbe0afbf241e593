"""Validates and stores a broadcast. An error that affects every recipient is reported at once."""

import difflib
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec
from bson import ObjectId
from pymongo.client_session import ClientSession
from pymongo.errors import DuplicateKeyError

from access import actors
from access.actors import Actor
from domain import time
from domain.states import AudienceKind, BroadcastStatus, FileStatus, Priority
from notifications.documents.broadcasts import BROADCASTS, BroadcastDocument
from notifications.store.new_notifications import NewNotification
from recipients import topics
from recipients.topics import TOPIC

from ..catalog import designs, types
from ..catalog.designs import UnknownBrandError
from ..files import repository as files
from ..files.enumeration import FileRemovedError, first_good_row
from ..intake import idempotency
from ..intake.addressees import Addressee
from ..intake.requests import Caller, NotificationRequest
from ..validation import ALL, FieldProblem, InvalidRequestError, ProblemCollector
from . import approvals, audiences, control, fan_out, repository
from .audiences import Audience
from .requests import AudienceRequest, BroadcastRequest

UNKNOWN_FILE = "Unknown file."
CHANGED_FILE = "The file was checked again meanwhile. Look at what was found."
USED_FILE = "The file was sent before. Upload it again to send it again."
FILE_MARGIN = timedelta(days=1)
"""What is left of a file's time, at least, when its broadcast begins."""
MAX_COMPARED = 500  # Topics that a misspelt one is compared with


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedBroadcast:
    """A broadcast that is stored and will run."""

    document: BroadcastDocument
    is_replayed: bool  # The idempotency key was already used for this broadcast


@dataclass(frozen=True, slots=True, kw_only=True)
class _CheckedFile:
    """A file as it was checked, with the first row that would be sent."""

    check_number: int
    first_row: Addressee


def create(
    request: BroadcastRequest,
    *,
    caller: Caller,
    author: Actor | None = None,
    file_check: int | None = None,
    now: datetime,
) -> CreatedBroadcast:
    """Validate, store, and enqueue a broadcast, once per idempotency key.

    It awaits an approval if its type or the caller's key wants one. ``author`` is the member of
    staff who wrote it, by default the client. ``file_check`` is the check of its file that was
    seen; another one is refused.

    Raises InvalidRequestError or KeyReusedError. After a PyMongoError, nothing was accepted.
    """
    if caller.idempotency_key is None:
        unrepeated = validate(request, caller=caller, now=now)
        if file_check is not None and unrepeated.get("file_check") != file_check:
            raise InvalidRequestError([FieldProblem("/audience/file", "changed", CHANGED_FILE)])
        return _store(unrepeated, caller, author, now)
    fingerprint = idempotency.fingerprint_of(request, kind=b"broadcast")
    existing = idempotency.find(caller=caller, fingerprint=fingerprint)
    document = repository.get(existing["broadcast_id"]) if existing is not None else None
    if document is not None and _is_created_by(caller, document):
        return CreatedBroadcast(document=document, is_replayed=True)
    new = validate(request, caller=caller, now=now)
    existing = idempotency.reserve(
        caller=caller,
        broadcast_id=new["_id"],
        fingerprint=fingerprint,
        now=now,
    )
    if existing is not None:
        new["_id"] = existing["broadcast_id"]
    return _store(new, caller, author, now)


def _is_created_by(caller: Caller, document: BroadcastDocument) -> bool:
    """Return whether a broadcast is the one of a caller's key.

    A broadcast of a file has the file's ID, so another key may have led to it.
    """
    key = caller.idempotency_key
    return key is not None and document.get("idempotency_key") == key


def _store(
    document: BroadcastDocument, caller: Caller, author: Actor | None, now: datetime
) -> CreatedBroadcast:
    broadcast_id = document["_id"]
    if (file_id := document.get("file_id")) is not None and not files.seal(
        file_id, check_number=document["file_check"], now=now
    ):
        raise InvalidRequestError([FieldProblem("/audience/file", "changed", CHANGED_FILE)])
    is_required = caller.requires_approval and not caller.is_test
    if is_required or approvals.needs_approval(document):
        writer = author or actors.client_actor(caller.client_id)
        approvals.ask_for_new(document, author=writer, now=now)
    elif author is not None:
        # It may outgrow the policy, and then wait for another person.
        document["authors"] = sorted(author.keys)

    def insert(session: ClientSession | None) -> None:
        BROADCASTS().insert_one(document, session=session)

    try:
        designs.store_with_brand(document["request"].get("brand"), insert)
    except UnknownBrandError:
        raise InvalidRequestError([approvals.UNKNOWN_BRAND]) from None
    except DuplicateKeyError:
        # A concurrent call with the same idempotency key, or another broadcast of the file.
        stored = repository.get(broadcast_id) or document
        if not _is_created_by(caller, stored):
            raise InvalidRequestError([FieldProblem("/audience/file", "used", USED_FILE)]) from None
        return CreatedBroadcast(document=stored, is_replayed=True)
    control.enqueue(broadcast_id, at=document["due_at"], now=now)
    return CreatedBroadcast(document=document, is_replayed=False)


def validate(request: BroadcastRequest, *, caller: Caller, now: datetime) -> BroadcastDocument:
    """Return the document of a new broadcast. Raises InvalidRequestError or PyMongoError."""
    problems = ProblemCollector()
    audience = _parse_audience(request.audience, problems)
    _check_type(request, problems)
    _check_pacing(request, problems)
    file: _CheckedFile | None = None
    if audience.file_id is not None:
        file = _check_file(request, audience.file_id, problems, caller=caller, now=now)
    if request.audience.file is not None and file is None:
        # Without a row, nothing else can be checked.
        raise InvalidRequestError(problems.problems)
    # Has no send time, because each page is sent when it is accepted.
    notification_request = NotificationRequest(
        type=request.type,
        channels=[ALL] if request.channels == ALL else request.channels,
        plan=request.plan,
        priority=Priority.LOW.value if request.priority is None else request.priority,
        source=request.source,
        entity_id=request.entity_id,
        event_at=request.event_at,
        content=request.content,
        brand=request.brand,
        data=request.data,
        ttl=request.ttl,
        expires_at=request.expires_at,
    )
    sample: NewNotification | None = None
    try:
        sample = fan_out.validate_for_everyone(
            msgspec.structs.replace(
                notification_request,
                scheduled_at=request.scheduled_at,
                # Of a file, the first good row stands for all.
                data={**request.data, **(file.first_row.data if file is not None else {})},
            ),
            # A critical broadcast is refused below, so the client's scope doesn't matter.
            caller=replace(caller, may_send_critical=True),
            now=now,
        )
    except InvalidRequestError as wrong:
        for problem in wrong.problems:
            problems.add(problem.pointer, problem.code, problem.detail)
    if sample is not None and sample.priority is Priority.CRITICAL:
        expected = "A broadcast's priority must be high, normal or low."
        problems.add("/priority", "critical_broadcast", expected)
    audience_size = audiences.count_audience(audience)
    is_topic = audience.topic is not None and TOPIC.fullmatch(audience.topic) is not None
    if audience.topic is not None and is_topic and audience_size == 0 and not request.scheduled_at:
        problems.add("/audience/topic", "unknown_topic", _unknown_topic(audience.topic, caller))
    if sample is None or problems.problems:
        raise InvalidRequestError(problems.problems)
    document = new_document(
        notification_request,
        type_slug=sample.type,
        priority=sample.priority,
        audience=audience,
        audience_size=audience_size,
        # A reminder has a send time for each recipient, so the audience is read at once.
        scheduled_at=None if request.event_at else sample.scheduled_at,
        expires_at=_end(request),
        caller=caller,
        now=now,
    )
    if file is not None:
        document["file_check"] = file.check_number
    _set_name_and_pace(document, request)
    return document


def _set_name_and_pace(document: BroadcastDocument, request: BroadcastRequest) -> None:
    if request.name is not None:
        document["name"] = request.name
    if request.spread is not None:
        document["spread_seconds"] = request.spread
    if request.local_hour is not None:
        document["local_hour"] = request.local_hour


def new_document(
    request: NotificationRequest,
    *,
    type_slug: str,
    priority: Priority,
    audience: Audience,
    audience_size: int | None,
    scheduled_at: datetime | None,
    expires_at: datetime | None,
    caller: Caller,
    now: datetime,
) -> BroadcastDocument:
    """Return a new broadcast's document. Fields that are None are left out for sparse indexes."""
    send_at = scheduled_at or now
    is_later = send_at > now
    given = msgspec.to_builtins(request)
    document: BroadcastDocument = {
        "_id": ObjectId(),
        "client_id": caller.client_id,
        "type": type_slug,
        "priority": priority.value,
        # Without defaults.
        "request": {name: value for name, value in given.items() if value not in (None, [], {})},
        "audience": audience.kind.value,
        "status": (BroadcastStatus.SCHEDULED if is_later else BroadcastStatus.RUNNING).value,
        "due_at": send_at,
        "claim_count": 0,
        "is_waiting": False,
        "accepted": 0,
        "skipped": {},
        "rejected": {},
        "withdrawn": 0,
        "created_at": now,
        "updated_at": now,
    }
    if caller.request_id is not None:
        document["request_id"] = caller.request_id
    if caller.idempotency_key is not None:
        document["idempotency_key"] = caller.idempotency_key
    if caller.is_test:
        document["is_test"] = True
    if audience.topic is not None:
        document["topic"] = audience.topic
    if audience.user_ids is not None:
        document["user_ids"] = list(audience.user_ids)
    if audience.file_id is not None:
        # Whoever stores it first sends the file.
        document["_id"] = document["file_id"] = audience.file_id
    if audience_size is not None:
        document["audience_size"] = audience_size
    if scheduled_at is not None:
        document["scheduled_at"] = scheduled_at
    if expires_at is not None:
        document["expires_at"] = expires_at
    return document


def _check_pacing(request: BroadcastRequest, problems: ProblemCollector) -> None:
    if request.name is not None:
        problems.check_one_line(request.name, "/name")
    given = [
        name for name in ("event_at", "spread", "local_hour") if getattr(request, name) is not None
    ]
    for name in given[1:]:
        reason = f"`{given[0]}` and `{name}` are mutually exclusive."
        problems.add(f"/{name}", "conflict", reason)


def _check_file(
    request: BroadcastRequest,
    file_id: ObjectId,
    problems: ProblemCollector,
    *,
    caller: Caller,
    now: datetime,
) -> _CheckedFile | None:
    """Add a problem if a file can't be sent as it is."""
    pointer = "/audience/file"
    document = files.get(file_id, client_id=caller.client_id)
    if document is None:
        problems.add(pointer, "unknown_file", UNKNOWN_FILE)
        return None
    if request.data:
        problems.add("/data", "conflict", "The data of a file is in its columns.")
    if document["status"] != FileStatus.CHECKED:
        problems.add(pointer, "unchecked_file", "The file must be checked first.")
        return None
    if request.type != document["type"]:
        expected = f"The file was checked for the type {document['type']}."
        problems.add("/type", "conflict", expected)
    if document["wrong"] and not request.audience.skip_wrong_rows:
        problems.add(
            pointer,
            "wrong_rows",
            f"{document['wrong']:,} of {document.get('rows', 0):,} rows are wrong. Correct them, "
            "or send the others with `skip_wrong_rows`.",
        )
    _check_file_time(request, document["content_until"], problems, now=now)
    try:
        row = first_good_row(file_id)
    except FileRemovedError:
        problems.add(pointer, "removed_file", "The rows of the file are removed.")
        return None
    if row is None:
        problems.add(pointer, "no_good_rows", "No row of the file would be sent.")
        return None
    return _CheckedFile(check_number=document["check_number"], first_row=row)


def _check_file_time(
    request: BroadcastRequest, until: datetime, problems: ProblemCollector, *, now: datetime
) -> None:
    try:
        begins = time.parse_timestamp(request.scheduled_at) if request.scheduled_at else now
    except time.InvalidTimeError:
        return  # Reported with the other times
    if begins > until - FILE_MARGIN:
        latest = f"{until - FILE_MARGIN:%Y-%m-%dT%H:%M:%SZ}"
        detail = f"The rows of the file are removed soon. Start at {latest} or before."
        problems.add("/scheduled_at", "too_late", detail)


def _unknown_topic(topic: str, caller: Caller) -> str:
    known = topics.names(limit=MAX_COMPARED) if caller.may_read_recipients else ()
    similar = difflib.get_close_matches(topic, known, n=1)
    hint = f" Did you mean `{similar[0]}`?" if similar else ""
    return f"The topic has no members.{hint} A broadcast that is scheduled may wait for some."


def _end(request: BroadcastRequest) -> datetime | None:
    """Return when a valid broadcast ends: at its expiry, or when its event begins."""
    times = [request.expires_at, request.event_at]
    return min((time.parse_timestamp(text) for text in times if text is not None), default=None)


def _check_type(request: BroadcastRequest, problems: ProblemCollector) -> None:
    """Add a problem if the type can't be broadcast. An unknown type is reported elsewhere."""
    try:
        type_config = types.get_type(request.type)
    except types.UnknownTypeError:
        return
    if type_config.priority is Priority.CRITICAL:
        expected = "Critical types can't be broadcast: they bypass preferences and quiet hours."
        problems.add("/type", "critical_type", expected)
    elif types.sensitive_variables(type_config.slug, request.content.template_id):
        problems.add("/type", "secret_type", "Types with sensitive variables can't be broadcast.")


def _parse_audience(request: AudienceRequest, problems: ProblemCollector) -> Audience:
    given = (request.topic, request.user_ids, request.all, request.file)
    if sum(each is not None for each in given) != 1:
        expected = "Exactly one of `topic`, `user_ids`, `all`, and `file` is required."
        problems.add("/audience", "conflict", expected)
        return Audience(kind=AudienceKind.ALL)
    if request.skip_wrong_rows and request.file is None:
        problems.add("/audience/skip_wrong_rows", "conflict", "Only a `file` has rows.")
    if request.file is not None:
        if ObjectId.is_valid(request.file):
            return Audience(kind=AudienceKind.FILE, file_id=ObjectId(request.file))
        problems.add("/audience/file", "unknown_file", UNKNOWN_FILE)
        return Audience(kind=AudienceKind.ALL)
    if request.all is False:
        problems.add("/audience/all", "out_of_range", "Must be true, or use another audience.")
    if request.topic is not None:
        if not TOPIC.fullmatch(request.topic):
            problems.add("/audience/topic", "invalid_topic", "Must be a-z, 0-9, _ and -.")
        return Audience(kind=AudienceKind.TOPIC, topic=request.topic)
    if request.user_ids is not None:
        for index, user_id in enumerate(request.user_ids):
            problems.check_identifier(user_id, f"/audience/user_ids/{index}")
        return Audience(kind=AudienceKind.USER_IDS, user_ids=sorted(set(request.user_ids)))
    return Audience(kind=AudienceKind.ALL)
