"""The recent requests of API clients, for developers and staff. They name nobody.

A request costs its caller no round trip: it waits in the process, and a thread stores what waits
each second. A process that ends may lose the last second, and beyond a number in a minute a
client's requests aren't kept. Design: docs/decisions/0089-request-log.md.
"""

import json
import os
import re
import threading
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pymongo
import structlog
from bson import ObjectId
from django.conf import settings
from pymongo.errors import PyMongoError

from domain.request_bodies import pointer_without_values, without_values
from notifyproject.platform.process import pause

from .documents.records import REQUEST_LOG, LoggedRequestDocument

log = structlog.get_logger(__name__)
PER_MINUTE = 60
"""Requests of a client that a process keeps in a minute: as many that succeed, and that fail."""
MAX_WAITING = 1_000
MAX_READ = 16 * 1024
"""Bytes of a body. Of a longer one, only the length is kept."""
MAX_ERRORS = 20
STORED_AFTER = 1.0
"""Seconds."""
TIMEOUT = 5.0
FIRST_REFUSAL = 400
_PARAMETER = re.compile(r"\(\?P<(\w+)>.*?\)(?=/|\\Z|$)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """A request of a client that has its response."""

    client_id: ObjectId
    request_id: str
    method: str
    route: str
    """The pattern of its URL."""
    status: int
    took: timedelta
    at: datetime
    notification_id: str | None = None
    """In its path."""
    body: bytes = b""
    answer: bytes = b""
    """The body of the response, unless it is a stream."""
    id: ObjectId = field(default_factory=ObjectId)


class RequestLog:
    """What waits in this process to be stored."""

    def __init__(self) -> None:
        self._waiting: deque[Answered] = deque()
        self._minute: datetime | None = None
        self._counts: Counter[tuple[ObjectId, bool]] = Counter()

    def add(self, request: Answered) -> bool:
        """Let a request wait. Return whether it does: too many of a client aren't kept."""
        minute = request.at.replace(second=0, microsecond=0)
        if minute != self._minute:
            self._minute, self._counts = minute, Counter()
        key = request.client_id, request.status < FIRST_REFUSAL
        self._counts[key] += 1
        is_kept = self._counts[key] <= PER_MINUTE and len(self._waiting) < MAX_WAITING
        if is_kept:
            self._waiting.append(request)
        return is_kept

    def store(self) -> int:
        """Store what waits; return how many. What MongoDB doesn't take is lost."""
        taken = [self._waiting.popleft() for _ in range(len(self._waiting))]
        if taken:
            try:
                with pymongo.timeout(TIMEOUT):
                    REQUEST_LOG().insert_many(map(_document, taken), ordered=False)
            except PyMongoError as error:
                log.warning("requests_not_logged", count=len(taken), error=type(error).__name__)
        return len(taken)


class _Storing:
    """Stores what is noted in this process, in a thread. A forked child has its own."""

    def __init__(self) -> None:
        self.log = RequestLog()
        self.is_needed = threading.Event()
        threading.Thread(target=self._run, name="request-log", daemon=True).start()

    def _run(self) -> None:
        while True:
            self.is_needed.wait()
            pause(STORED_AFTER)
            self.is_needed.clear()
            try:
                self.log.store()
            except Exception:
                log.exception("requests_not_logged")  # Others are, from the next second on


_lock = threading.Lock()
_storing: dict[int, _Storing] = {}
"""That of this process, by its ID."""


def note(request: Answered) -> None:
    """Have a request stored within a second or two, if requests are kept at all."""
    if not settings.REQUEST_LOG_DAYS:
        return
    process_id = os.getpid()
    with _lock:
        if process_id not in _storing:
            _storing[process_id] = _Storing()
        storing = _storing[process_id]
        if storing.log.add(request):
            storing.is_needed.set()


def _document(request: Answered) -> LoggedRequestDocument:
    answer = _read(request.answer)
    document: LoggedRequestDocument = {
        "_id": request.id,
        "client_id": request.client_id,
        "request_id": request.request_id,
        "method": request.method,
        "path": "/" + _PARAMETER.sub(r"{\1}", request.route).removesuffix(r"\Z"),
        "status": request.status,
        "duration_ms": round(request.took.total_seconds() * 1_000),
        "body_bytes": len(request.body),
        "at": request.at,
        "purge_at": request.at + timedelta(days=settings.REQUEST_LOG_DAYS),
    }
    if (body := _read(request.body)) is not None:
        document["body"] = json.dumps(without_values(body), ensure_ascii=False)
    found = request.notification_id
    if isinstance(answer, dict) and request.status >= FIRST_REFUSAL:
        document["code"] = str(answer.get("code", ""))
        document["errors"] = _errors(answer)
    elif isinstance(answer, dict) and "delivery" in answer:
        found = answer.get("id")
    if found is not None and ObjectId.is_valid(found):
        document["notification_id"] = ObjectId(found)
    return document


def _read(raw: bytes) -> Any:
    """Return a JSON value; None for what is none, is too long, or is missing."""
    if not 0 < len(raw) <= MAX_READ:
        return None
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _errors(answer: Mapping[str, Any]) -> list[str]:
    """Return the pointer and the code of each invalid field."""
    errors = answer.get("errors") or []
    return [
        f"{pointer_without_values(each['pointer'])} {each['code']}" for each in errors[:MAX_ERRORS]
    ]
