"""The end of a program's log: the lines that explain why it ended."""

import json
import signal
from pathlib import Path
from typing import Any

LINES = 10
LONGEST_LINE = 500
LONGEST_TAIL = 64_000
"""Bytes at the end of a log that are looked at."""
SEVERE = frozenset({"E", "F"})
"""Errors and fatal errors, as mongod's log marks them."""


def size(path: Path) -> int:
    """Return how long a log is now; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def lines(path: Path, *, since: int) -> list[str]:
    """Return the last lines of a log after a position.

    mongod writes much after the error that ends it: of its log it is the errors that are returned.
    """
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(since, size(path) - LONGEST_TAIL))
        said = file.read().decode(errors="replace").splitlines()
    entries = [_entry(line) for line in said]
    severe = [_in_words(entry) for entry in entries if entry and entry.get("s") in SEVERE]
    return [line[:LONGEST_LINE] for line in (severe or said)[-LINES:] if line.strip()]


def exit_in_words(code: int) -> str:
    """Return how a process ended."""
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def quoted(said: list[str]) -> str:
    """Return lines for the end of a message."""
    return "".join(f"\n  {line}" for line in said)


def _entry(line: str) -> dict[str, Any] | None:
    """Return a line of mongod's log, which is JSON, or None."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _in_words(entry: dict[str, Any]) -> str:
    attributes = entry.get("attr")
    message = str(entry.get("msg", ""))
    return f"{message} {json.dumps(attributes)}" if attributes else message
