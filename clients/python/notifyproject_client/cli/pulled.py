"""What a server had when its items were last those of the files, in ``.pulled`` beside them.

A conflict is shown as what has changed there and here since. The folder belongs to one working
copy: it excludes itself from version control, and whoever lacks it sees both sides alone.
"""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from .files import Content, FileError
from .kinds import Item

FOLDER = ".pulled"


class Pulled:
    """The items of a server, each as of one revision."""

    def __init__(self, folder: Path, server: str) -> None:
        self._top = folder / FOLDER
        self._folder = self._top / hashlib.sha256(server.encode()).hexdigest()[:16]

    def get(self, item: Item, revision: str) -> Item | None:
        """Return an item as of a revision, None if that isn't known here."""
        path = self._path(item)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            known = Content(stored["definition"], stored["parts"])
            return replace(item, content=known) if stored["revision"] == revision else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, item: Item, revision: str) -> None:
        """Store an item as of a revision. Raises FileError."""
        content = {
            "revision": revision,
            "definition": item.content.definition,
            "parts": item.content.parts,
        }
        text = json.dumps(content, ensure_ascii=False)
        path = self._path(item)
        try:
            # As bytes: a file that was cut off may be no text.
            if path.is_file() and path.read_bytes() == text.encode():
                return
            path.parent.mkdir(parents=True, exist_ok=True)
            (self._top / ".gitignore").write_text("*\n", encoding="utf-8")
            fresh = path.with_suffix(".new")
            fresh.write_bytes(text.encode())
            fresh.replace(path)
        except (OSError, UnicodeError) as error:
            raise FileError(path, str(error)) from error

    def _path(self, item: Item) -> Path:
        if not item.kind.pattern.fullmatch(item.name):
            raise FileError(self._folder, f"{item.name!r} is no {item.kind.name}.")
        return self._folder / f"{item.key}.json"
