"""The fingerprint of a broadcast: of each byte that decides what is sent, to whom, and when."""

import hashlib
from typing import Any

import msgspec

from notifications.documents.broadcasts import BroadcastDocument

from ..catalog import types
from ..catalog.types import TypeConfig
from ..content import templates
from .requests import request_of

PROGRESS = frozenset(
    {
        "status",
        "approval",
        "due_at",
        "claim",
        "claim_count",
        "cursor",
        "is_waiting",
        "audience_size",
        "accepted",
        "skipped",
        "rejected",
        "withdrawn",
        "failure_code",
        "failure_reason",
        "started_at",
        "finished_at",
        "purge_at",
        "request_id",
        "created_at",
        "updated_at",
    }
)
"""Fields of a broadcast that say how far it is. All others are part of what is approved."""
TYPE_FIELDS = (
    "category",
    "channels",
    "room",
    "plan",
    "digest",
    "actions",
    "whatsapp_templates",
    "text_rules",
    "sensitive_variables",
)
"""Fields of a type that decide what its recipients get."""


def fingerprint_of(document: BroadcastDocument, *, template_version: int) -> str:
    """Return the fingerprint of a broadcast as it would be sent now. Raises PyMongoError.

    ``template_version`` is that of the type's own template, which was fixed when the broadcast was
    submitted. Another template that the request names counts as it is published now.
    """
    given: dict[str, Any] = dict(document)
    config = types.find_type(document["type"])
    parts = {
        "broadcast": {name: value for name, value in given.items() if name not in PROGRESS},
        "type": None if config is None else _deciding(config),
        "template": _template(document, template_version),
    }
    encoded = msgspec.json.encode(parts, enc_hook=str, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def _deciding(config: TypeConfig) -> dict[str, Any]:
    return {name: getattr(config, name) for name in TYPE_FIELDS}


def _template(document: BroadcastDocument, own_version: int) -> Any:
    """Return the texts that the broadcast is rendered from, or None if it has its own."""
    content = request_of(document).content
    if content.body is not None:
        return None
    name, version = document["type"], own_version
    if content.template_id not in (None, name):
        name = content.template_id or name
        version = types.get_template_version(name)
    stored = templates.get_version(type_slug=name, number=version)
    return [name, version, stored.parts if stored is not None else None]
