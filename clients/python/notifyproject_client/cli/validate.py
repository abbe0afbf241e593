"""``notify validate``: whether a request's data fits the schema of a type in the files."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from jsonschema_rs import Draft202012Validator, ValidationError

from . import files, lint
from .files import Content, FileError


def find_problems(kind: Content, path: Path) -> Iterator[tuple[str, str]]:
    """Yield where a file of data differs from a type's schema: a place, and the reason.

    Raises FileError for data or a schema that can't be read.
    """
    data = _read(path)
    schema: Any = kind.definition.get("schema", {})
    try:
        validator = Draft202012Validator(schema, validate_formats=True, offline=True)
    except ValidationError as error:
        raise FileError(Path(files.SCHEMA), error.message) from error
    for error in sorted(validator.iter_errors(data), key=lambda each: str(each.instance_path)):
        within = "/".join(map(lint.path_token, error.instance_path))
        reason = f"{within}: {error.message}" if within else error.message
        yield f"{path}:{lint.line_of(path, within)}", reason


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise FileError(path, str(error)) from error
