"""One call of the command: what it was asked for, its items, and what it says of them."""

import argparse
import difflib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from . import kinds
from .kinds import Item
from .lock import NAME as LOCK
from .lock import Lock, Synced, digest
from .pulled import Pulled
from .screen import Screen
from .server import Server, ServerItem

PROMOTE = "promote"


class InvalidUseError(Exception):
    """What the command line or the environment lacks, or names and isn't there."""


class Chosen:
    """The items that the command line names; all, if it names none."""

    def __init__(self, keys: Sequence[str]) -> None:
        self.keys = keys

    def of(self, items: Mapping[str, Any]) -> dict[str, Any]:
        """Return the chosen ones of these items."""
        return {k: each for k, each in items.items() if not self.keys or k in self.keys}

    def check(self, *known: Mapping[str, Any]) -> None:
        """Raise InvalidUseError for a name that none of these has."""
        for key in self.keys:
            if not any(key in items for items in known):
                kind, name = kinds.kind_and_name(key)
                raise InvalidUseError(f"There is no {kind.name} {name}.")


@dataclass(slots=True, kw_only=True)
class Report:
    """What one call of the command says, as lines or for ``--json``."""

    options: argparse.Namespace
    screen: Screen
    events: list[dict[str, Any]] = field(default_factory=list)

    @property
    def folder(self) -> Path:
        """The folder of types."""
        folder: Path = self.options.types
        return folder

    def say(self, item: Item, what: str, text: str = "") -> None:
        """Report what happened to an item."""
        self.events.append(
            {item.kind.name: item.name, "what": what, **({"text": text} if text else {})}
        )
        if not self.options.json:
            self.screen.say(f"{self.screen.strong(item.key)}: {what}")
            if text:
                self.screen.say(self.screen.difference(text), end="")

    def report(self, place: str, event: Mapping[str, str], shown: str) -> None:
        """Report what is at a place in a file: an event, and its line."""
        self.events.append({**event, "place": place})
        if not self.options.json:
            self.screen.say(f"{self.screen.strong(place)}: {shown}")

    def warn(self, text: str) -> None:
        """Report what isn't about one item."""
        self.screen.warn(text)

    def end(self, code: int) -> int:
        """Write what ``--json`` asks for. Return the exit code."""
        if self.options.json:
            self.screen.say(json.dumps(self.events, ensure_ascii=False))
        return code


@dataclass(slots=True, kw_only=True)
class Files(Report):
    """One call of the command that reads items of the files, and needs no server."""

    local: dict[str, Item]
    chosen: Chosen


@dataclass(slots=True, kw_only=True)
class Run(Files):
    """One call of the command with a server, which is to have the local items."""

    server: Server
    answers: TextIO

    @property
    def source(self) -> str | None:
        """The profile of the server that has the local items, None if they are the files."""
        return self.options.source if self.options.command == PROMOTE else None

    @property
    def place(self) -> str:
        """Where the local items are."""
        return f"on {self.source}" if self.source else f"in {self.folder}"

    def difference(self, before: Item | None, after: Item) -> str:
        """Return how a local item differs from the server's, both as files."""
        return _difference(before, after, names=("server", self.source or "files"))

    def three_way_difference(self, there: Item, here: Item | None) -> str:
        """Return how the server's item and the local one differ from what was last the same.

        Without that, return how they differ from each other. The files may not have it any more.
        """
        known = self.lock().get(there.key)
        base = self.pulled().get(there, known.revision) if known and not self.source else None
        if base is None:
            return self.difference(there, here) if here else ""
        sides = {"server": there} | ({"files": here} if here else {})
        return "".join(
            _difference(base, side, names=("pulled", name)) for name, side in sides.items()
        )

    def pulled(self) -> Pulled:
        """Return what the server had, beside the folder of types."""
        return Pulled(self.folder.parent, self.server.url)

    def set_synced(self, items: Sequence[ServerItem]) -> None:
        """Store that the files of items are those of the server. Raises FileError."""
        pulled = self.pulled()
        synced: dict[str, Synced] = {}
        for each in items:
            key = each.item.key
            pulled.keep(each.item, each.revision)
            synced[key] = Synced(each.revision, digest(self.local[key].content))
        self.lock().set(synced)

    def lock(self) -> Lock:
        """Return the lock beside the folder of types."""
        return Lock(self.folder.parent / LOCK, self.server.url)


def _difference(before: Item | None, after: Item, *, names: tuple[str, str]) -> str:
    one, other = before.texts if before else {}, after.texts
    lines: list[str] = []
    for name in sorted(one.keys() | other.keys()):
        lines += difflib.unified_diff(
            one.get(name, "").splitlines(keepends=True),
            other.get(name, "").splitlines(keepends=True),
            fromfile=f"{names[0]}/{name}",
            tofile=f"{names[1]}/{name}",
        )
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)
