"""``notify types generate``: code for the data of types, from the files."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path

from .. import files
from ..files import DEFINITION, FileError
from .declarations import Module
from .python import python_code
from .typescript import typescript_code

LANGUAGES: Mapping[str, Callable[[Module], str]] = {
    "python": python_code,
    "typescript": typescript_code,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    for language in LANGUAGES:
        parser.add_argument(f"--{language}", type=Path, metavar="FILE", help="the file to write")
    parser.add_argument("--check", action="store_true", help="exit with 1 if a file would change")


def generate(options: argparse.Namespace) -> list[Path]:
    """Write the files that the options name. Return those that have changed.

    With ``--check``, nothing is written. Raises FileError.
    """
    module = _read(options.types)
    changed: list[Path] = []
    for language, code in LANGUAGES.items():
        path: Path | None = getattr(options, language)
        if path is None:
            continue
        text = code(module)
        if path.is_file() and path.read_bytes() == text.encode():
            continue
        changed.append(path)
        if options.check:
            continue
        try:
            path.write_bytes(text.encode())
        except OSError as error:
            raise FileError(path, str(error)) from error
    return changed


def _read(folder: Path) -> Module:
    module = Module()
    for slug, found in files.read_types(folder).items():
        path = folder / slug / DEFINITION
        if not files.NAME.fullmatch(slug):
            raise FileError(path, f"{slug!r} can't be the name of a type.")
        try:
            module.add(slug, found)
        except RecursionError as error:
            raise FileError(path, "The schema has too many levels.") from error
    return module
