"""The fingerprint of a broadcast: of each byte that decides what is sent, to whom, and when."""

import hashlib
from typing import Any

import msgspec

from domain.content import Look
from notifications.documents.broadcasts import BroadcastDocument

from ..catalog import types
from ..catalog.designs import UnknownBrandError
from ..catalog.types import TypeConfig
from ..content import looks, templates
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
        "idempotency_key",
        "authors",
        "created_at",
        "updated_at",
    }
)
"""Fields of a broadcast that say how far it is. All others are part of what is approved."""
TYPE_FIELDS = (
    "category",
    "priority",
    "ttl_seconds",
    "notify_before",
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


def fingerprint_of(document: BroadcastDocument, *, template_version: int, design: int) -> str:
    """Return the fingerprint of a broadcast as it would be sent now. Raises PyMongoError.

    ``template_version`` is that of the type's own template, which was fixed when the broadcast was
    submitted, as the number of the ``design`` was. Another template that the request names counts
    as it is now.
    """
    given: dict[str, Any] = dict(document)
    config = types.find_type(document["type"])
    name, version = _template(document, template_version)
    secrets = types.sensitive_variables(document["type"], request_of(document).content.template_id)
    stored = None if name is None else templates.get_version(type_slug=name, number=version)
    parts = {
        "broadcast": {name: value for name, value in given.items() if name not in PROGRESS},
        "type": None if config is None else _deciding(config),
        "template": [name, version, stored.parts if stored is not None else None, sorted(secrets)],
        "look": None if config is None else _look(document, config, name, version, design),
    }
    encoded = msgspec.json.encode(parts, enc_hook=str, order="deterministic")
    return hashlib.sha256(encoded).hexdigest()


def _deciding(config: TypeConfig) -> dict[str, Any]:
    # The cells of a file are read by the schema.
    schema = config.schema.text if config.schema is not None else None
    return {"schema": schema, **{name: getattr(config, name) for name in TYPE_FIELDS}}


def _template(document: BroadcastDocument, own_version: int) -> tuple[str | None, int]:
    """Return the template and its version; None for the name if the broadcast has its own text."""
    content = request_of(document).content
    if content.body is not None:
        return None, own_version
    if content.template_id in (None, document["type"]):
        return document["type"], own_version
    return content.template_id, types.get_template_version(content.template_id or "")


def _look(
    document: BroadcastDocument, config: TypeConfig, name: str | None, version: int, design: int
) -> Look | None:
    """Return the brand and the layout as the type names them now, and the fixed design."""
    brand = request_of(document).brand or config.brand
    try:
        return looks.find_look(
            name=name, version=version, brand=brand, layout=config.layout, pinned=design
        )
    except UnknownBrandError:
        return None
