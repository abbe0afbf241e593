"""``notify init``: the files of a type, to begin with."""

from pathlib import Path

from . import files
from .files import DEFINITION, OWN_LANGUAGE, FileError, TypeFiles

FIRST_SLUG = "welcome"


def write_first_type(folder: Path, slug: str) -> list[Path]:
    """Write the files of a type that can be pushed as it is. Return them. Raises FileError."""
    if not files.NAME.fullmatch(slug):
        raise FileError(folder / slug, f"{slug!r} can't be the name of a type.")
    if (folder / slug / DEFINITION).exists():
        raise FileError(folder / slug / DEFINITION, "There already is such a type.")
    return files.write_type(folder / slug, _first_type(slug))


def _first_type(slug: str) -> TypeFiles:
    definition = {
        "name": slug.replace("_", " ").capitalize(),
        "description": "Somebody has signed up.",
        "category": "transactional",
        "channels": ["email"],
        "example_data": {"first_name": "Ada"},
        "schema": {
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "first_name": {"type": "string", "description": "What they are called."}
            },
            "required": ["first_name"],
        },
    }
    texts = {
        "subject": "Welcome, {{ first_name }}",
        "body": "Hello {{ first_name }},\n\nthank you for signing up.",
    }
    return TypeFiles(definition, {OWN_LANGUAGE: texts})
