"""Types of a new installation: the folders of templates/notifications with a ``type.yaml``."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from domain.time import utc_now
from notifications.documents.catalog import NOTIFICATION_TYPES

from . import definitions, types
from .definitions import TypeRequest

FOLDER = Path(__file__).resolve().parents[2] / "templates" / "notifications"
DEFINITION, SCHEMA = "type.yaml", "schema.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class ShippedType:
    """A type of the release: its definition, and its fields as they are stored."""

    slug: str
    definition: TypeRequest
    fields: Mapping[str, Any]


@cache
def shipped_types() -> tuple[ShippedType, ...]:
    """Return the shipped types by slug. Raises InvalidRequestError."""
    return tuple(_read(path) for path in sorted(FOLDER.glob(f"*/{DEFINITION}")))


def add_missing_types() -> int:
    """Store the shipped types that are missing. Return how many."""
    now = utc_now()
    added = 0
    for shipped in shipped_types():
        fields = {
            **shipped.fields,
            "categories": [shipped.fields["category"]],
            "template_version": 0,
            "created_at": now,
            "updated_at": now,
        }
        result = NOTIFICATION_TYPES().update_one(
            {"_id": shipped.slug}, {"$setOnInsert": fields}, upsert=True
        )
        added += result.upserted_id is not None
    if added:
        types.invalidate_types()
    return added


def _read(path: Path) -> ShippedType:
    import yaml

    definition = yaml.safe_load(path.read_text(encoding="utf-8"))
    schema = path.with_name(SCHEMA)
    if schema.is_file():
        definition["schema"] = json.loads(schema.read_text(encoding="utf-8"))
    request = msgspec.convert(definition, TypeRequest)
    slug = path.parent.name
    fields = definitions.validate_type(slug, request)
    return ShippedType(slug=slug, definition=request, fields=fields)
