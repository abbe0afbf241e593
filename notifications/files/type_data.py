"""What the type of a file takes as data."""

import json

from domain.states import SchemaMode

from ..catalog import types
from ..catalog.schemas import schema_mode
from ..content.properties import properties_of
from .columns import TypeData

NOTHING_KNOWN = TypeData(properties={}, required=frozenset(), is_open=True)


def read(slug: str) -> TypeData:
    """Return what a type's data may be. Of an unknown type, nothing is known."""
    document = types.read_type(slug)
    if document is None:
        return NOTHING_KNOWN
    schema = json.loads(document.get("schema") or "{}")
    refuses = schema_mode(document.get("schema_mode")) is SchemaMode.REJECT
    properties = {one.name: one for one in properties_of(document)}
    required = [name for name, one in properties.items() if one.is_required and refuses]
    return TypeData(
        properties=properties,
        required=frozenset(required),
        is_open=not refuses or schema.get("additionalProperties") is not False,
    )
