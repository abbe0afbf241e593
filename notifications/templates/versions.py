"""Versions of templates: stored once, never changed, chosen by publishing.

A version is a document of its own, so two people who make one at the same time make two. Which one
new notifications take is a field of the type, so that publishing is one write; whoever published
last is right. Version 0 is the files of the release.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache

from pymongo.errors import DuplicateKeyError

from notifyproject.db.collections import collection

from .. import types
from ..store import Document
from . import files

SHIPPED = 0
"""The version that is the files."""
MAX_NUMBER = 999_999
TRIES = 100
"""How often a number is looked for: each time it was taken, somebody else has got a version."""
KEPT = 512
"""Versions a process remembers. They do not change."""
Parts = Mapping[str, Mapping[str, str]]
"""Texts by language and part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A version of a type's template. One of the files has neither dates nor an author."""

    type: str
    number: int
    parts: Parts
    note: str = ""
    created_at: datetime | None = None
    created_by: str | None = None
    published_at: datetime | None = None
    """When it was published last; None if it never was."""


class UnknownVersion(LookupError):
    """There is no such version of this type."""


class NumbersTaken(Exception):
    """Too many versions of one type are made at the same time: try again."""


def create(*, type_slug: str, parts: Parts, note: str, created_by: str, now: datetime) -> Version:
    """Store a new version under the next number and return it; raises NumbersTaken.

    It is used by nobody before it is published. The parts were checked: :mod:`.checking`.
    """
    for _ in range(TRIES):
        newest = listing(type_slug=type_slug, limit=1)
        number = newest[0].number + 1 if newest else 1
        document = {
            "_id": _id(type_slug, number),
            "type": type_slug,
            "number": number,
            "parts": {language: dict(texts) for language, texts in parts.items()},
            "note": note,
            "created_at": now,
            "created_by": created_by,
        }
        try:
            collection("template_versions").insert_one(document)
        except DuplicateKeyError:
            continue
        return _version(document)
    raise NumbersTaken


def publish(*, type_slug: str, number: int, now: datetime) -> None:
    """Make a version the one that new notifications of its type take.

    Raises UnknownVersion, and types.UnknownType if there is no such type. What was accepted before
    keeps its version.
    """
    if get(type_slug=type_slug, number=number) is None:
        raise UnknownVersion
    types.choose_template(type_slug, version=number, now=now)
    if number != SHIPPED:
        collection("template_versions").update_one(
            {"_id": _id(type_slug, number)}, {"$set": {"published_at": now}}
        )


def get(*, type_slug: str, number: int) -> Version | None:
    """Return a version; None if there is none."""
    if number == SHIPPED:
        parts = files.everything(type_slug)
        return Version(type=type_slug, number=SHIPPED, parts=parts) if parts else None
    document = collection("template_versions").find_one({"_id": _id(type_slug, number)})
    return _version(document) if document else None


def listing(
    *, type_slug: str, limit: int, below: int | None = None, above: int | None = None
) -> list[Version]:
    """Return stored versions of a type, the newest first: the first ``limit`` under ``below``.

    With ``above``, the last of those over it.
    """
    within = {"$gt": _id(type_slug, above or SHIPPED), "$lte": _id(type_slug, MAX_NUMBER)}
    if below is not None:
        within = {"$gt": _id(type_slug, SHIPPED), "$lt": _id(type_slug, below)}
    upwards = above is not None
    cursor = collection("template_versions").find({"_id": within}).sort("_id", 1 if upwards else -1)
    found = [_version(document) for document in cursor.limit(limit)]
    return found[::-1] if upwards else found


@lru_cache(maxsize=KEPT)
def parts_of(type_slug: str, number: int) -> Parts:
    """Return the texts of a stored version, remembered; raises UnknownVersion."""
    version = get(type_slug=type_slug, number=number)
    if version is None:
        raise UnknownVersion
    return version.parts


def forget() -> None:
    """Read the versions anew at the next use."""
    parts_of.cache_clear()


def _id(type_slug: str, number: int) -> str:
    """Return a version's id. It orders by number, and is unique on every shard."""
    return f"{type_slug}:{number:06}"


def _version(document: Document) -> Version:
    return Version(
        type=document["type"],
        number=document["number"],
        parts=document["parts"],
        note=document["note"],
        created_at=document["created_at"],
        created_by=document["created_by"],
        published_at=document.get("published_at"),
    )
