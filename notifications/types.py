"""The registered types, read often and changed seldom."""

import difflib
import re
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from threading import Lock
from typing import Any

from notifyproject.db.collections import collection

from .default_types import DEFAULT_TYPES
from .retry import UnknownPolicy
from .states import Category, Channel, Priority
from .timing import utc_now

FRESH_SECONDS = 5.0
"""A change of a type is seen by every process within this time."""
MASK = "••••••"
"""Stands for a secret wherever it may be seen."""
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


@dataclass(frozen=True, slots=True, kw_only=True)
class NotificationKind:
    """A registered type, as the engine needs it."""

    slug: str
    category: Category
    priority: Priority
    channels: tuple[Channel, ...]
    max_retries: int
    ttl_seconds: int | None
    on_unknown: UnknownPolicy
    sensitive_variables: frozenset[str]


class UnknownType(LookupError):
    """There is no such type, or it is switched off. ``near`` lists names that look like it."""

    def __init__(self, near: list[str]) -> None:
        super().__init__("unknown type")
        self.near = near


@dataclass(frozen=True, slots=True)
class _Snapshot:
    kinds: Mapping[str, NotificationKind]
    read_at: float


_snapshots: dict[str, _Snapshot] = {}
_lock = Lock()


def get(name: str) -> NotificationKind:
    """Return the type of this name; raises UnknownType.

    ``MfaCode`` and ``CONTEST_REMINDER`` are understood as ``mfa_code`` and ``contest_reminder``.
    """
    kinds = _current()
    kind = kinds.get(name) or kinds.get(_CAMEL.sub("_", name).lower())
    if kind is None:
        raise UnknownType(difflib.get_close_matches(name.lower(), kinds, n=3, cutoff=0.5))
    return kind


def forget() -> None:
    """Read the types anew at the next use."""
    _snapshots.clear()


def add_missing_defaults() -> int:
    """Store every shipped type that is not there; return how many that were."""
    now = utc_now()
    added = 0
    for default in DEFAULT_TYPES:
        fields = asdict(default)
        slug = fields.pop("slug")
        for name in ("channels", "sensitive_variables"):
            fields[name] = [str(value) for value in fields[name]]
        for name in ("category", "priority", "on_unknown"):
            fields[name] = str(fields[name])
        result = collection("notification_types").update_one(
            {"_id": slug},
            {"$setOnInsert": {**fields, "is_active": True, "created_at": now, "updated_at": now}},
            upsert=True,
        )
        added += result.upserted_id is not None
    forget()
    return added


def _current() -> Mapping[str, NotificationKind]:
    snapshot = _snapshots.get("all")
    if snapshot is None or time.monotonic() - snapshot.read_at > FRESH_SECONDS:
        with _lock:
            snapshot = _Snapshot(_read(), time.monotonic())
            _snapshots["all"] = snapshot
    return snapshot.kinds


def _read() -> dict[str, NotificationKind]:
    documents = collection("notification_types").find({"is_active": True})
    return {document["_id"]: _kind(document) for document in documents}


def _kind(document: Mapping[str, Any]) -> NotificationKind:
    return NotificationKind(
        slug=document["_id"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        channels=tuple(Channel(c) for c in document["channels"]),
        max_retries=document["max_retries"],
        ttl_seconds=document.get("ttl_seconds"),
        on_unknown=UnknownPolicy(document["on_unknown"]),
        sensitive_variables=frozenset(document["sensitive_variables"]),
    )
