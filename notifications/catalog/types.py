"""Registered notification types, cached in each process."""

import difflib
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

from pymongo.client_session import ClientSession

from domain.channels import Channel
from domain.digests import Digest
from domain.plans import Plan
from domain.retry import UnknownPolicy
from domain.sms import TextRules
from domain.states import Category, Priority
from domain.stored import known_member
from notifications.documents.catalog import (
    NOTIFICATION_TYPES,
    EmergencyChangeDocument,
    NotificationTypeDocument,
)
from notifyproject.db import paging
from notifyproject.db.paging import Cursor, Page
from notifyproject.platform.cache import SharedCache

from .approval import approval_above
from .digests import digest_of
from .emergencies import MAX_CHANGES
from .plans import plan_of
from .schemas import DataSchema, data_schema
from .texts import DEFAULT_RULES, rules_of

MASK = "••••••"  # Replaces a sensitive value in everything that is stored or shown
SLUG = re.compile(r"[a-z][a-z0-9_]{0,63}", re.ASCII)
URGENCY = tuple(Priority)
"""The priorities, most urgent first."""
BY_SLUG = (("_id", 1),)
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_CAMEL_CASE_BOUNDARY = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


class ActionStyle(StrEnum):
    """How a button looks."""

    PRIMARY = "primary"
    DEFAULT = "default"
    DANGER = "danger"


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """A button that the inbox shows below a notification. With a link, it is followed."""

    id: str
    label: str
    style: ActionStyle = ActionStyle.DEFAULT
    link: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WhatsAppTemplate:
    """A WhatsApp template that Meta has approved, for one language."""

    locale: str
    name: str
    language: str  # Meta's language code: ``pt_PT``
    parameters: tuple[str, ...]  # Variables, in the order of the template's parameters
    body: str | None = None  # The wording to submit; None if it is known to Meta alone
    button: str | None = None  # Authentication: the variable that the button copies


@dataclass(frozen=True, slots=True, kw_only=True)
class TypeConfig:
    """A registered type, in the form that intake and delivery use."""

    slug: str
    name: str = ""
    category: Category
    priority: Priority
    max_priority: Priority = Priority.CRITICAL
    channels: tuple[Channel, ...]
    room: str | None = None
    """The room of messages that name none."""
    max_retries: int
    ttl_seconds: int | None
    notify_before: timedelta | None = None  # Reminder lead time; None if the type isn't a reminder
    on_unknown: UnknownPolicy
    sensitive_variables: frozenset[str]
    schema: DataSchema | None = None  # None: data isn't checked
    plan: Plan | None = None
    digest: Digest | None = None
    actions: tuple[Action, ...] = ()
    whatsapp_templates: tuple[WhatsAppTemplate, ...] = ()
    text_rules: TextRules = DEFAULT_RULES
    brand: str | None = None
    """The brand of messages that name none."""
    layout: str | None = None
    """The frame of its emails; None: the brand's or the built-in one."""
    template_version: int = 0  # Template version for new notifications; 0 is the shipped files
    console_send: bool = False
    """Whether staff may send one message of it from the console, unless it's critical."""

    approval_above: int | None = None
    """Recipients that a broadcast may have without an approval; None: any number."""

    @property
    def is_locked(self) -> bool:
        """Whether no preference of a recipient applies: critical, or with sensitive variables."""
        return _is_locked(self.priority, self.sensitive_variables)

    @property
    def is_sendable_by_staff(self) -> bool:
        """Whether staff may send one message of it from the console. It's never a critical one."""
        return self.console_send and self.priority is not Priority.CRITICAL


class UnknownTypeError(LookupError):
    """The type doesn't exist or is disabled. ``suggestions`` lists similar names."""

    def __init__(self, suggestions: list[str]) -> None:
        super().__init__("unknown type")
        self.suggestions = suggestions


@dataclass(frozen=True, slots=True)
class _Snapshot:
    """The types as last read from the database. ``active`` contains those that aren't disabled."""

    active: Mapping[str, TypeConfig]
    versions: Mapping[str, int]
    digested: frozenset[str]
    sensitive_variables: Mapping[str, frozenset[str]]
    locked: frozenset[str]


def get_type(name: str) -> TypeConfig:
    """Return a type by its slug or in the form ``MfaCode``. Raises UnknownTypeError."""
    active = _snapshot_cache.get().active
    type_config = active.get(name) or active.get(_CAMEL_CASE_BOUNDARY.sub("_", name).lower())
    if type_config is None:
        raise UnknownTypeError(difflib.get_close_matches(name.lower(), active, n=3, cutoff=0.5))
    return type_config


def active_types() -> list[TypeConfig]:
    """Return the types that aren't disabled, by category and slug."""
    active = _snapshot_cache.get().active.values()
    return sorted(active, key=lambda config: (list(Category).index(config.category), config.slug))


def digested_slugs() -> frozenset[str]:
    """Return the slugs of the types that have a digest and aren't disabled."""
    return _snapshot_cache.get().digested


def slugs_of_category(category: str) -> list[str]:
    """Return the slugs of the types whose notifications may have a category, even if disabled.

    They are read uncached: a process may have used a type's new category before another knows it.
    """
    may_have = {"$or": [{"category": category}, {"categories": category}]}
    return [document["_id"] for document in NOTIFICATION_TYPES().find(may_have, {"_id": 1})]


def get_template_version(slug: str) -> int:
    """Return a type's published template version. 0 means the shipped files, or no such type."""
    return _snapshot_cache.get().versions.get(slug, 0)


def sensitive_variables(*slugs: str | None) -> frozenset[str]:
    """Return the sensitive variables of these types, even if disabled."""
    # A template has the name of its type, whose sensitive variables apply wherever it is used.
    known = _snapshot_cache.get().sensitive_variables
    found = [names for slug in slugs if slug is not None and (names := known.get(slug))]
    return found[0].union(*found[1:]) if found else frozenset()


def is_locked(slug: str, template_id: str | None = None) -> bool:
    """Return whether no preference applies to notifications of a type, even if it is disabled.

    A template with sensitive variables locks a notification of any type.
    """
    return slug in _snapshot_cache.get().locked or bool(sensitive_variables(template_id))


def define_type(slug: str, fields: Mapping[str, Any], *, now: datetime) -> bool:
    """Store a type with these fields and keep its template version. Return whether it is new."""
    is_new = store_type(slug, fields, now=now)
    invalidate_types()
    return is_new


def store_type(
    slug: str,
    fields: Mapping[str, Any],
    *,
    now: datetime,
    emergency: EmergencyChangeDocument | None = None,
    session: ClientSession | None = None,
) -> bool:
    """Store a type with these fields, in a transaction if there is a session.

    Return whether it is new. Processes know it once :func:`invalidate_types` was called.
    """
    category = [fields["category"]] if "category" in fields else []
    inserted = {"template_version": 0, "created_at": now}
    added = {"$each": [emergency], "$slice": -MAX_CHANGES}
    result = NOTIFICATION_TYPES().update_one(
        {"_id": slug},
        {
            "$set": {**fields, "updated_at": now},
            "$addToSet": {"categories": {"$each": category}},
            "$setOnInsert": {k: v for k, v in inserted.items() if k not in fields},
            **({"$push": {"emergency_changes": added}} if emergency else {}),
        },
        upsert=True,
        session=session,
    )
    return result.upserted_id is not None


def read_type(slug: str) -> NotificationTypeDocument | None:
    """Return a type's document, even if disabled, or None if it doesn't exist."""
    return NOTIFICATION_TYPES().find_one({"_id": slug})


def page(*, limit: int, cursor: Cursor | None = None) -> Page[NotificationTypeDocument]:
    """Return up to ``limit`` types by slug, including disabled types. Raises PyMongoError."""
    return paging.page(NOTIFICATION_TYPES, {}, order=BY_SLUG, limit=limit, cursor=cursor)


def stored_slug(name: str) -> str:
    """Return the slug of a type, even if disabled, by slug or in the form ``MfaCode``.

    Raises UnknownTypeError.
    """
    known = _snapshot_cache.get().versions
    for slug in (name, _CAMEL_CASE_BOUNDARY.sub("_", name).lower()):
        if slug in known:
            return slug
    raise UnknownTypeError(difflib.get_close_matches(name.lower(), known, n=3, cutoff=0.5))


def find_type(slug: str) -> TypeConfig | None:
    """Return the type of a stored notification, or None if it is missing or disabled."""
    return _snapshot_cache.get().active.get(slug)


def whatsapp_templates(slug: str) -> tuple[WhatsAppTemplate, ...]:
    """Return the approved WhatsApp templates of a type. Empty if it is missing or disabled."""
    type_config = find_type(slug)
    return type_config.whatsapp_templates if type_config else ()


def text_rules(slug: str) -> TextRules:
    """Return what a text of a type may cost; the default if it is missing or disabled."""
    type_config = find_type(slug)
    return type_config.text_rules if type_config else DEFAULT_RULES


def actions_of(slug: str) -> tuple[Action, ...]:
    """Return the actions of a type. Empty if it is missing or disabled."""
    type_config = find_type(slug)
    return type_config.actions if type_config else ()


def stored_actions(document: NotificationTypeDocument) -> tuple[Action, ...]:
    """Return the actions of a stored type."""
    return tuple(
        Action(
            id=action["id"],
            label=action["label"],
            style=known_member(action["style"], otherwise=ActionStyle.DEFAULT),
            link=action["link"],
        )
        for action in document.get("actions") or ()
    )


def invalidate_types() -> None:
    """Make every process reload the types. Raises PyMongoError."""
    _snapshot_cache.invalidate()


def _read_snapshot() -> _Snapshot:
    documents = list(NOTIFICATION_TYPES().find())
    active = {d["_id"]: _parse_type(d) for d in documents if d["is_active"]}
    return _Snapshot(
        active=active,
        digested=frozenset(slug for slug, config in active.items() if config.digest is not None),
        versions={d["_id"]: d.get("template_version") or 0 for d in documents},
        sensitive_variables={d["_id"]: frozenset(d["sensitive_variables"]) for d in documents},
        locked=frozenset(
            d["_id"] for d in documents if _is_locked(d["priority"], d["sensitive_variables"])
        ),
    )


def _is_locked(priority: str, sensitive_variables: Collection[str]) -> bool:
    return priority == Priority.CRITICAL or bool(sensitive_variables)


def max_priority(document: NotificationTypeDocument) -> Priority:
    """Return the highest priority that a request for this type may have.

    By default, that is high for marketing and otherwise critical, but at least the type's own.
    """
    is_marketing = document["category"] == Category.MARKETING
    default = Priority.HIGH if is_marketing else Priority.CRITICAL
    limit = Priority(document.get("max_priority") or default)
    return min(limit, Priority(document["priority"]), key=URGENCY.index)


def _parse_type(document: NotificationTypeDocument) -> TypeConfig:
    lead_time = document.get("notify_before_seconds")
    return TypeConfig(
        slug=document["_id"],
        name=document["name"],
        category=Category(document["category"]),
        priority=Priority(document["priority"]),
        max_priority=max_priority(document),
        channels=tuple(Channel(c) for c in document["channels"]),
        room=document.get("room"),
        max_retries=document["max_retries"],
        ttl_seconds=document.get("ttl_seconds"),
        notify_before=None if lead_time is None else timedelta(seconds=lead_time),
        on_unknown=known_member(document["on_unknown"], otherwise=UnknownPolicy.FAIL),
        sensitive_variables=frozenset(document["sensitive_variables"]),
        schema=data_schema(document.get("schema"), document.get("schema_mode")),
        plan=plan_of(document),
        digest=digest_of(document),
        actions=stored_actions(document),
        whatsapp_templates=tuple(
            WhatsAppTemplate(
                locale=template["locale"],
                name=template["name"],
                language=template["language"],
                parameters=tuple(template["parameters"]),
                body=template.get("body"),
                button=template.get("button"),
            )
            for template in document["approved_templates"]
        ),
        text_rules=rules_of(document),
        brand=document.get("brand"),
        layout=document.get("layout"),
        template_version=document.get("template_version") or 0,
        console_send=document.get("console_send", False),
        approval_above=approval_above(document["category"], document.get("approval")),
    )


_snapshot_cache = SharedCache("types", _read_snapshot)
