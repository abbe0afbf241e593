"""``notify.lock``: what each server had when its items were last those of the files.

Apart from them, it has items that came from another server, since the files may not have them, and
types that a push has disabled, since the files have them no longer.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .files import Content, FileError

NAME = "notify.lock"
PROMOTED, PRUNED = "promoted", "pruned"


@dataclass(frozen=True, slots=True)
class Synced:
    """An item when files and server were the same: the server's revision, and the files' digest."""

    revision: str
    files: str


class Lock:
    """What is known of the items of a server, by their keys."""

    def __init__(self, path: Path, server: str) -> None:
        self._path, self._server = path, server
        self._servers: dict[str, dict[str, Synced]] = {}
        self._promoted: dict[str, dict[str, str]] = {}
        self._pruned: dict[str, dict[str, str]] = {}
        if path.is_file():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))
                self._servers = {
                    each: {key: Synced(**found) for key, found in items.items()}
                    for each, items in stored["servers"].items()
                }
                self._promoted, self._pruned = (
                    {each: dict(items) for each, items in stored.get(name, {}).items()}
                    for name in (PROMOTED, PRUNED)
                )
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise FileError(path, "Not a lock of this command.") from error

    def get(self, key: str) -> Synced | None:
        """Return what is known of an item, None if it has never been the same."""
        return self._servers.get(self._server, {}).get(key)

    def items(self) -> list[tuple[str, Synced]]:
        """Return what is known of each item, by its key."""
        return sorted(self._servers.get(self._server, {}).items())

    def replaced(self, key: str) -> str | None:
        """Return the revision that an item of the files replaces, None if it has none."""
        synced = self.get(key)
        return synced.revision if synced else self.pruned(key)

    def pruned(self, key: str) -> str | None:
        """Return the revision of a type since it was disabled, as the files didn't have it."""
        return self._pruned.get(self._server, {}).get(key)

    def revisions(self, key: str) -> set[str | None]:
        """Return the revisions of an item on the server that came from here."""
        synced = self.get(key)
        promoted = self._promoted.get(self._server, {}).get(key)
        return {promoted, synced.revision if synced else None}

    def set(self, items: Mapping[str, Synced]) -> None:
        """Store that items are the same. Raises FileError."""
        self._servers.setdefault(self._server, {}).update(items)
        self._forget(self._pruned, items)
        self._write()

    def set_pruned(self, removed: Iterable[str], disabled: Mapping[str, str]) -> None:
        """Store that items aren't in the files, nor as such on the server. Raises FileError."""
        self._forget(self._servers, [*removed, *disabled])
        if disabled:
            self._pruned.setdefault(self._server, {}).update(disabled)
        self._write()

    def set_promoted(self, revisions: Mapping[str, str]) -> None:
        """Store the revisions of items that came from another server. Raises FileError."""
        self._promoted.setdefault(self._server, {}).update(revisions)
        self._write()

    def _forget(self, servers: dict[str, dict[str, Any]], keys: Iterable[str]) -> None:
        known = servers.get(self._server, {})
        for key in keys:
            known.pop(key, None)
        if not known:
            servers.pop(self._server, None)

    def _write(self) -> None:
        servers = {
            server: {key: asdict(each) for key, each in synced.items()}
            for server, synced in self._servers.items()
        }
        others = {PROMOTED: self._promoted, PRUNED: self._pruned}
        content = {"servers": servers} | {name: items for name, items in others.items() if items}
        text = json.dumps(content, indent=2, sort_keys=True) + "\n"
        try:
            if self._path.is_file() and self._path.read_text(encoding="utf-8") == text:
                return
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(text, encoding="utf-8")
        except OSError as error:
            raise FileError(self._path, str(error)) from error


def digest(content: Content) -> str:
    """Return a digest of what files say, whatever their comments and style."""
    text = json.dumps([content.definition, content.parts], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
