"""``notify.lock``: what the server had when files and server were last the same."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from .files import FileError, TypeFiles

NAME = "notify.lock"


@dataclass(frozen=True, slots=True)
class Synced:
    """A type when files and server were the same: the server's revision, and the files' digest."""

    revision: str
    files: str


class Lock:
    """The types that were the same, for each server."""

    def __init__(self, path: Path, server: str) -> None:
        self._path, self._server = path, server
        self._servers: dict[str, dict[str, Synced]] = {}
        if path.is_file():
            try:
                stored = json.loads(path.read_text(encoding="utf-8"))["servers"]
                self._servers = {
                    each: {slug: Synced(**found) for slug, found in types.items()}
                    for each, types in stored.items()
                }
            except (ValueError, KeyError, TypeError, AttributeError) as error:
                raise FileError(path, "Not a lock of this command.") from error

    def get(self, slug: str) -> Synced | None:
        """Return what is known of a type, None if it has never been the same."""
        return self._servers.get(self._server, {}).get(slug)

    def set(self, types: Mapping[str, Synced]) -> None:
        """Store that types are the same."""
        known = self._servers.setdefault(self._server, {})
        before = dict(known)
        known |= types
        if known == before and self._path.is_file():
            return
        servers = {
            server: {slug: asdict(each) for slug, each in synced.items()}
            for server, synced in self._servers.items()
        }
        text = json.dumps({"servers": servers}, indent=2, sort_keys=True)
        self._path.write_text(f"{text}\n", encoding="utf-8")


def digest(files: TypeFiles) -> str:
    """Return a digest of what files say, whatever their comments and style."""
    content = json.dumps([files.definition, files.parts], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()[:32]
