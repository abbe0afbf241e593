"""What a server had when its types were last those of the files, in ``.pulled`` beside them.

A conflict is shown as what has changed there and here since. The folder belongs to one working
copy: it excludes itself from version control, and whoever lacks it sees both sides alone.
"""

import hashlib
import json
from pathlib import Path

from .files import NAME, FileError, TypeFiles

FOLDER = ".pulled"


class Pulled:
    """The types of a server, each as of one revision."""

    def __init__(self, folder: Path, server: str) -> None:
        self._top = folder / FOLDER
        self._folder = self._top / hashlib.sha256(server.encode()).hexdigest()[:16]

    def get(self, slug: str, revision: str) -> TypeFiles | None:
        """Return a type of a revision, None if it isn't known here."""
        path = self._path(slug)
        try:
            stored = json.loads(path.read_text(encoding="utf-8"))
            known = TypeFiles(stored["definition"], stored["parts"])
            return known if stored["revision"] == revision else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def keep(self, slug: str, revision: str, files: TypeFiles) -> None:
        """Store a type of a revision. Raises FileError."""
        content = {"revision": revision, "definition": files.definition, "parts": files.parts}
        text = json.dumps(content, ensure_ascii=False)
        path = self._path(slug)
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

    def _path(self, slug: str) -> Path:
        if not NAME.fullmatch(slug):
            raise FileError(self._folder, f"{slug!r} is no type.")
        return self._folder / f"{slug}.json"
