"""The service in memory: it refuses what the API refuses, keeps what it accepts, and sends nothing.

Its rules are the API's: structures and problems come from the OpenAPI document, and addresses,
times, channels, and links are checked by the service's own code, which the build copies. What it
doesn't have is an error, never an answer: see :class:`NotInMemoryError`.
"""

import json
import re
import secrets
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import httpx

from .checks import Checked, Delivery, NotInMemoryError, check, rfc3339
from .document import Document, Operation, Schema, document
from .rules.channels import Channel
from .rules.identifiers import find_identifier_fault
from .rules.validation import (
    FieldProblem,
    ProblemCollector,
    check_storable,
    is_all,
    parse_channel,
    parse_channels,
)
from .structure import find_problems
from .types import Types

URL = "http://notify.invalid"
"""No host has this name: a request that isn't answered in memory fails."""
KEY = "ntf_test_memory0000_" + "m" * 43
TEST_KEY = "ntf_test_"
MAX_BYTES = 256 * 1024
MAX_BYTES_BULK = 4 * 1024 * 1024
MAX_DEPTH = 20
MAX_PROPERTIES = 500
NOT_RENDERED = "(The service in memory renders no template.)"
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)
_ID = re.compile(r"[0-9a-fA-F]{24}", re.ASCII)
_FILTERS = frozenset({"user_id", "type", "entity_id", "external_id", "phase", "limit"})
_OUTBOX_FILTERS = frozenset({"user_id", "type", "channel", "limit"})
_NEWEST_FIRST = {"ordering": ["-created_at"]}
"""What the generated client asks for."""
_LIMIT = 50
_ENDED = frozenset({"suppressed", "cancelled"})
_STATES = {"pending": "queued", "sent": "sent", "delivered": "delivered"}
Clock = Callable[[], datetime]


@dataclass(slots=True, kw_only=True)
class Refusal(Exception):
    """A problem that is the answer to a request."""

    code: str
    status: int
    errors: Sequence[FieldProblem] = ()
    detail: str | None = None
    notification_id: str | None = None


@dataclass(slots=True, kw_only=True)
class _Kept:
    """An accepted notification: what the API shows, and what it was accepted by."""

    view: dict[str, Any]
    checked: Checked
    body: Mapping[str, Any]
    idempotency_key: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Request:
    operation: Operation
    named: Mapping[str, str]
    query: Mapping[str, list[str]]
    headers: Mapping[str, str]
    body: Any
    path: str

    @property
    def key(self) -> str | None:
        """The idempotency key."""
        return self.headers.get("idempotency-key")


@dataclass(kw_only=True)
class MemoryService:
    """A service of one test client, which has every scope, without providers and workers.

    ``types`` is a folder as ``notify pull`` writes it; without one, every type exists. A notifier
    is connected by ``transport``: ``Notifier(URL, key=KEY, transport=memory.transport)``.
    """

    types: Path | None = None
    clock: Clock = lambda: datetime.now(UTC)
    recipients: dict[str, dict[str, str]] = field(default_factory=dict)
    """Registered recipients, which a test key can't register: fields by user ID."""
    devices: dict[str, str] = field(default_factory=dict)
    """The users of registered devices."""

    def __post_init__(self) -> None:
        self._types = Types(self.types)
        self._document: Document = document()
        self._lock = threading.RLock()
        self._kept: dict[str, _Kept] = {}
        self._keys: dict[str, tuple[bytes, Any]] = {}
        self._outbox: list[dict[str, Any]] = []
        self._last_id = 0

    @property
    def transport(self) -> httpx.MockTransport:
        """What connects a notifier, synchronous or asynchronous, to this service."""
        return httpx.MockTransport(self.respond)

    def reset(self) -> None:
        """Forget all notifications, keys, messages, recipients, and devices."""
        with self._lock:
            for store in (self._kept, self._keys, self._outbox, self.recipients, self.devices):
                store.clear()

    def respond(self, request: httpx.Request) -> httpx.Response:
        """Return the answer to a request. Raises NotInMemoryError for what isn't here."""
        with self._lock:
            path = request.url.path
            try:
                status, view, headers = self._answer(request)
            except Refusal as refusal:
                media_type = {"Content-Type": "application/problem+json"}
                problem = self._problem(refusal, path=path)
                return httpx.Response(refusal.status, json=problem, headers=media_type)
        if view is None:
            return httpx.Response(status, headers=headers)
        return httpx.Response(status, json=view, headers=headers)

    def _answer(self, request: httpx.Request) -> tuple[int, Any, Mapping[str, str]]:
        path = request.url.path
        found = self._document.find(path)
        if not found:
            raise self._refusal("not_found")
        if request.method not in found:
            raise Refusal(code="method_not_allowed", status=HTTPStatus.METHOD_NOT_ALLOWED)
        operation, named = found[request.method]
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip().startswith(TEST_KEY):
            raise self._refusal("unauthenticated")
        if operation.refuses_test_keys:
            raise self._refusal("test_key")
        query: dict[str, list[str]] = {}
        for name, value in request.url.params.multi_items():
            if name not in operation.query:
                raise self._refusal("unknown_parameter", detail="Unknown parameter.")
            query.setdefault(name, []).append(value)
        idempotency_key = request.headers.get("idempotency-key")
        if idempotency_key is not None and not _KEY.fullmatch(idempotency_key):
            raise self._refusal("invalid_idempotency_key")
        if operation.needs_key and idempotency_key is None:
            raise self._refusal("missing_idempotency_key")
        asked = _Request(
            operation=operation,
            named={name: unquote(value) for name, value in named.items()},
            query=query,
            headers=request.headers,
            body=self._read_body(request, operation),
            path=path,
        )
        handler = _HANDLERS.get(operation.name)
        if handler is None:
            raise NotInMemoryError(
                f"The service in memory has no {operation.name}: use a service, with NOTIFY_URL."
            )
        return handler(self, asked)

    def _read_body(self, request: httpx.Request, operation: Operation) -> Any:
        if operation.body is None:
            return None
        raw = request.read()
        if not raw.strip():
            if operation.is_body_required:
                raise self._refusal("empty_body")
            return None
        content_type = request.headers.get("content-type", "").partition(";")[0].strip()
        if content_type != "application/json":
            raise self._refusal("unsupported_media_type")
        is_bulk = operation.name == "createNotifications"
        if len(raw) > (MAX_BYTES_BULK if is_bulk else MAX_BYTES):
            raise self._refusal("too_large")
        try:
            body = json.loads(raw)
        except ValueError:
            raise self._refusal("malformed_json") from None
        if not isinstance(body, dict):
            raise self._invalid([FieldProblem("", "wrong_type", "Expected a JSON object.")])
        if is_bulk:
            return self._read_items(body, operation.body)
        self._check_body(body, operation.body)
        return body

    def _check_body(self, body: Mapping[str, Any], schema: Schema) -> None:
        """Raise the problems of a body that don't depend on what it is for."""
        if _depth(body) > MAX_DEPTH:
            raise Refusal(code="too_deep", status=HTTPStatus.BAD_REQUEST)
        problems = ProblemCollector()
        if check_storable(body, "", problems, in_data=False) > MAX_PROPERTIES:
            problems.add("", "too_many_properties", "Too many properties in total.")
        if found := problems.problems or list(find_problems(body, schema, self._document)):
            raise self._invalid(found)

    def _read_items(self, body: Mapping[str, Any], schema: Schema) -> Any:
        """Return the body of a bulk create: each item is checked by itself."""
        items = body.get("notifications")
        if isinstance(items, list):
            body = {**body, "notifications": [{"type": "x"} for _ in items]}
        if found := list(find_problems(body, schema, self._document)):
            raise self._invalid(found)
        return items

    def _create(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        view, is_replayed = self._accept(asked.body, key=asked.key)
        return self._accepted(asked, view, is_replayed=is_replayed)

    def _put(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        key = asked.named["key"]
        if (fault := find_identifier_fault(key)) is not None:
            raise self._invalid([FieldProblem("", fault.code, fault.detail)])
        if not _KEY.fullmatch(key):
            raise self._invalid([FieldProblem("", "invalid_key", "Not a key.")])
        current = next((one for one in self._newest() if one.idempotency_key == key), None)
        if current is None or current.body == asked.body:
            view, is_replayed = self._accept(asked.body, key=key)
            return self._accepted(asked, view, is_replayed=is_replayed)
        statuses = {one["status"] for one in current.view["delivery"]}
        refused = {"notification_id": current.view["id"]}
        if statuses & {"sent", "delivered"}:
            code = "already_sending" if "pending" in statuses else "already_sent"
            raise self._refusal(code, **refused)
        if "cancelled" in statuses or not current.view["is_active"]:
            raise self._refusal("already_cancelled", **refused)
        checked = self._checked(asked.body, replaced=current.view["id"])
        view = self._keep(asked.body, checked, key=key, new_id=current.view["id"])
        view["created_at"], view["replaced_at"] = current.view["created_at"], view["created_at"]
        self._keys[key] = (_canonical(asked.body), view)
        return self._accepted(asked, view, is_replayed=False)

    def _create_many(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        known = self._keys.get(asked.key or "")
        content = _canonical({"notifications": asked.body})
        if known is not None:
            if known[0] != content:
                raise self._refusal("idempotency_key_reused")
            return 200, known[1], {"Idempotent-Replayed": "true"}
        results: list[dict[str, Any]] = []
        seen: dict[bytes, int] = {}
        for index, item in enumerate(asked.body):
            first = seen.setdefault(_canonical(item), index)
            results.append({"index": index, **self._result(item, index, first, asked)})
        accepted = sum("id" in one for one in results)
        view = {"accepted": accepted, "rejected": len(results) - accepted, "results": results}
        self._keys[asked.key or ""] = (content, view)
        return 200, view, {}

    def _result(self, item: Any, index: int, first: int, asked: _Request) -> dict[str, Any]:
        """Return what became of an item, whose equal is the ``first`` one."""
        if first != index:
            detail = f"Identical to item {first} of this request."
            refusal = Refusal(code="duplicate_item", status=HTTPStatus.CONFLICT, detail=detail)
            return {"error": self._problem(refusal, path=asked.path)}
        try:
            self._check_body(item, self._document.schemas["NotificationRequest"])
            view = self._keep(item, self._checked(item), key=asked.key)
        except Refusal as refusal:
            return {"error": self._problem(refusal, path=asked.path)}
        return {"id": view["id"]}

    def _get(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        if asked.query:
            raise NotInMemoryError("The service in memory has no `fields` and `expand`.")
        view = dict(self._find(asked).view)
        del view["warnings"]
        return 200, view, {}

    def _list(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        found = self._page(
            [one.view for one in self._newest() if one.view["is_active"]], asked, _FILTERS
        )
        results = [{k: v for k, v in view.items() if k != "warnings"} for view in found]
        return 200, {"results": results, "next": None, "previous": None}, {}

    def _cancel(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        kept, names = self._find(asked), (asked.body or {}).get("channels")
        channels: Sequence[Channel] = tuple(Channel)
        if names is not None and not is_all(names):
            problems = ProblemCollector()
            channels = parse_channels(names, problems=problems, takes_all=True)
            if problems.problems:
                raise self._invalid(problems.problems)
        if not self._cancel_pending(kept, channels):
            raise self._refusal("invalid_state", detail="Nothing is pending.")
        return self._get(asked)

    def _cancel_entity(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        slug = asked.body.get("type")
        if slug is not None and self._types.find(slug) is None:
            raise self._invalid([FieldProblem("/type", "unknown_type", "Unknown type.")])
        count = sum(
            self._cancel_pending(one, tuple(Channel))
            for one in self._kept.values()
            if all(
                one.view[name] == asked.body[name]
                for name in ("entity_id", "type", "user_id")
                if asked.body.get(name) is not None
            )
        )
        return 200, {"cancelled": count}, {}

    def _delete(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        kept = self._find(asked)
        self._cancel_pending(kept, tuple(Channel))
        kept.view |= {"is_active": False, "deleted_at": self._now()}
        return 204, None, {}

    def _list_outbox(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        for name in asked.query.get("channel", ()):
            if parse_channel(name) is None:
                problem = FieldProblem("/channel", "unknown_channel", "Unknown channel.")
                raise self._invalid([problem])
        results = self._page(self._outbox[::-1], asked, _OUTBOX_FILTERS)
        return 200, {"results": results, "next": None, "previous": None}, {}

    def _clear_outbox(self, asked: _Request) -> tuple[int, Any, Mapping[str, str]]:
        self._outbox.clear()
        return 204, None, {}

    def _accept(self, body: Mapping[str, Any], *, key: str | None) -> tuple[dict[str, Any], bool]:
        """Return the view of a notification, and whether its key was used for it before."""
        content = _canonical(body)
        if key is not None and (known := self._keys.get(key)) is not None:
            if known[0] != content:
                raise self._refusal("idempotency_key_reused")
            return known[1], True
        view = self._keep(body, self._checked(body), key=key)
        if key is not None:
            self._keys[key] = (content, view)
        return view, False

    def _checked(self, body: Mapping[str, Any], *, replaced: str | None = None) -> Checked:
        problems = ProblemCollector()
        checked = check(
            body,
            types=self._types,
            recipients=self.recipients,
            devices=self.devices,
            now=self.clock(),
            problems=problems,
        )
        if checked is None:
            raise self._invalid(problems.problems)
        entity, user = body.get("entity_id"), body.get("user_id")
        same = {"type": checked.type.slug, "entity_id": entity, "user_id": user}
        if entity is not None and user is not None:
            for one in self._kept.values():
                is_same = all(one.view[name] == value for name, value in same.items())
                if is_same and one.view["id"] != replaced:
                    raise self._refusal("already_notified", notification_id=one.view["id"])
        return checked

    def _keep(
        self,
        body: Mapping[str, Any],
        checked: Checked,
        *,
        key: str | None,
        new_id: str | None = None,
    ) -> dict[str, Any]:
        view = self._view(body, checked, new_id=new_id or self._new_id())
        self._kept[view["id"]] = _Kept(view=view, checked=checked, body=body, idempotency_key=key)
        for delivery in view["delivery"]:
            if delivery["status"] in ("sent", "delivered"):
                self._outbox.append(self._message(body, view, delivery))
        return view

    def _view(self, body: Mapping[str, Any], checked: Checked, *, new_id: str) -> dict[str, Any]:
        now, definition = self._now(), checked.type.definition
        content, retries = body.get("content") or {}, body.get("max_retries")
        retries = definition.get("max_retries", 3) if retries is None else retries
        deliveries = [self._delivery(one, checked, retries=retries) for one in checked.deliveries]
        has_template = content.get("body") is None
        lines = [line.strip() for line in (content.get("body") or "").splitlines()]
        view = {
            "id": new_id,
            "type": checked.type.slug,
            "category": definition.get("category", "transactional"),
            "priority": checked.priority.value,
            "recipient": checked.recipient,
            "channels": [one["channel"] for one in deliveries],
            "content": {
                **content,
                "subject": content.get("subject") or next(filter(None, lines), None),
                "template_id": (content.get("template_id") or checked.type.slug)
                if has_template
                else None,
            },
            "data": body.get("data") or {},
            "delivery": deliveries,
            "plan_until": checked.until,
            "scheduled_at": _written(checked.scheduled_at),
            "adjusted": checked.is_adjusted,
            "expires_at": _written(checked.expires_at),
            "retry_count": 0,
            "max_retries": retries,
            "is_read": False,
            "is_active": True,
            "created_at": now,
            "updated_at": now,
            "is_test": True,
            "can_retry": False,
            "is_failed": False,
            "deleted_at": None,
            "failed_channels": [],
            "warnings": [*checked.warnings, *_suppressed(body, checked)],
            **{name: body.get(name) for name in ("user_id", "entity_id", "external_id", "source")},
        }
        return view | _status_of(view)

    def _delivery(self, one: Delivery, checked: Checked, *, retries: int) -> dict[str, Any]:
        found: dict[str, Any] = {
            "channel": one.channel.value,
            "attempt_count": 0,
            "max_attempts": 1 + retries,
            "step": one.step,
        }
        if one.failure is not None:
            code, reason = one.failure
            return {**found, "status": "suppressed", "failure_code": code, "failure_reason": reason}
        at = checked.send_at + one.after
        is_digest = bool(checked.type.definition.get("digest"))
        if at > self.clock() or is_digest:
            return {**found, "status": "pending", "next_attempt_at": rfc3339(at)}
        sent = {"attempt_count": 1, "sent_at": self._now(), "provider": "memory"}
        if one.channel.is_inbox:
            return {**found, "status": "delivered", "delivered_at": self._now()}
        return {**found, **sent, "status": "sent"}

    def _message(
        self, body: Mapping[str, Any], view: Mapping[str, Any], delivery: Mapping[str, Any]
    ) -> dict[str, Any]:
        channel, content = Channel(delivery["channel"]), view["content"]
        kind = channel.spec.address
        address = view["user_id"] if kind is None else view["recipient"][kind.field]
        shown = ("subject", "image_url", "deep_link", "payload", "reply_to")
        return {
            "id": self._new_id(),
            "notification_id": view["id"],
            "type": view["type"],
            "channel": channel.value,
            "user_id": view["user_id"],
            "address": address,
            "sent_at": self._now(),
            "text": content.get("body") or NOT_RENDERED,
            **{name: content.get(name) for name in shown},
        }

    def _cancel_pending(self, kept: _Kept, channels: Sequence[Channel]) -> bool:
        pending = [
            one
            for one in kept.view["delivery"]
            if one["status"] == "pending" and one["channel"] in channels
        ]
        for one in pending:
            one |= {"status": "cancelled", "next_attempt_at": None}
        kept.view |= {"updated_at": self._now(), **_status_of(kept.view)}
        return bool(pending)

    def _find(self, asked: _Request) -> _Kept:
        found = self._kept.get(asked.named["notification_id"].lower())
        if found is None:
            raise self._refusal("not_found")
        return found

    def _newest(self) -> Iterator[_Kept]:
        return reversed(self._kept.values())

    def _page(
        self, views: Sequence[Mapping[str, Any]], asked: _Request, known: frozenset[str]
    ) -> list[Mapping[str, Any]]:
        query = {k: values for k, values in asked.query.items() if _NEWEST_FIRST.get(k) != values}
        if unknown := query.keys() - known:
            names = ", ".join(sorted(unknown))
            raise NotInMemoryError(f"The service in memory doesn't filter by {names}.")
        limit = int(query.pop("limit", [str(_LIMIT)])[0])
        found = [view for view in views if all(view[name] in query[name] for name in query)]
        if len(found) > limit:
            raise NotInMemoryError("The service in memory has one page: ask for fewer, or more.")
        return found

    def _accepted(
        self, asked: _Request, view: Mapping[str, Any], *, is_replayed: bool
    ) -> tuple[int, Any, Mapping[str, str]]:
        collection = asked.path.partition("/by-key/")[0]
        headers = {"Location": f"{collection}/{view['id']}"}
        return 202, view, headers | ({"Idempotent-Replayed": "true"} if is_replayed else {})

    def _refusal(self, code: str, **more: Any) -> Refusal:
        return Refusal(code=code, status=self._document.problems[code]["status"], **more)

    def _invalid(self, errors: Sequence[FieldProblem]) -> Refusal:
        return self._refusal("validation_failed", errors=errors)

    def _problem(self, refusal: Refusal, *, path: str) -> dict[str, Any]:
        title = HTTPStatus(refusal.status).phrase
        known = self._document.problems.get(refusal.code, {"title": title, "detail": title})
        problem = {
            "type": f"urn:notifications:problem:{refusal.code}",
            "title": known["title"],
            "status": refusal.status,
            "detail": refusal.detail or known["detail"],
            "instance": path,
            "code": refusal.code,
            "request_id": secrets.token_hex(8),
            "errors": [
                {"pointer": one.pointer, "code": one.code, "detail": one.detail}
                for one in refusal.errors
            ],
        }
        if refusal.notification_id is not None:
            problem["notification_id"] = refusal.notification_id
        return problem

    def _now(self) -> str:
        return rfc3339(self.clock())

    def _new_id(self) -> str:
        self._last_id += 1
        return f"{int(self.clock().timestamp()):08x}{self._last_id:016x}"


def _canonical(body: Any) -> bytes:
    return json.dumps(body, sort_keys=True).encode()


def _depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    is_nested = isinstance(value, dict | list)
    return is_nested + max(map(_depth, inner), default=0)


def _written(instant: datetime | None) -> str | None:
    return None if instant is None else rfc3339(instant)


def _status_of(view: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a notification that follow from its deliveries."""
    statuses = [one["status"] for one in view["delivery"]]
    live = [one for one in statuses if one not in _ENDED]
    succeeded = [
        one["channel"] for one in view["delivery"] if one["status"] in ("sent", "delivered")
    ]
    is_pending = "pending" in live
    if not live:
        status = "cancelled" if "cancelled" in statuses else "suppressed"
    elif is_pending:
        status = "queued" if succeeded else "created"
    else:
        status = "sent" if "sent" in live else "delivered"
        if "cancelled" in statuses:
            status = "partially_delivered"
    phase = "pending" if is_pending else "sent" if succeeded else "failed"
    return {
        "status": status,
        "phase": phase,
        "is_pending": is_pending,
        "is_delivered": bool(succeeded) and not is_pending,
        "is_confirmed": status == "delivered",
        "successful_channels": succeeded,
    }


def _suppressed(body: Mapping[str, Any], checked: Checked) -> Iterator[Mapping[str, Any]]:
    is_told = not any(one.failure is None for one in checked.deliveries)
    names = body.get("channels")
    for one in checked.deliveries:
        if one.failure and (is_told or (names is not None and not is_all(names))):
            code, reason = one.failure
            detail = f"Suppressed: {reason}"
            yield {"channel": one.channel.value, "code": code, "detail": detail}


_HANDLERS: Mapping[str, Callable[[MemoryService, _Request], tuple[int, Any, Mapping[str, str]]]] = {
    "createNotification": MemoryService._create,
    "createNotifications": MemoryService._create_many,
    "putNotification": MemoryService._put,
    "getNotification": MemoryService._get,
    "listNotifications": MemoryService._list,
    "deleteNotification": MemoryService._delete,
    "cancelNotification": MemoryService._cancel,
    "cancelNotifications": MemoryService._cancel_entity,
    "listTestOutbox": MemoryService._list_outbox,
    "clearTestOutbox": MemoryService._clear_outbox,
}
