"""The end of a program's log: the lines that explain why it ended."""

import json
import signal
from pathlib import Path
from typing import Any

LINES = 10
MAX_LINE = 500
MAX_TAIL = 64_000
"""Bytes at the end of a log that are looked at."""
SEVERE = frozenset({"E", "F"})
"""Errors and fatal errors, as mongod's log marks them."""


def size(path: Path) -> int:
    """Return how long a log is now; 0 if there is none."""
    return path.stat().st_size if path.exists() else 0


def last_lines(path: Path, *, since: int) -> list[str]:
    """Return the last lines of a log after a position.

    mongod writes much after the error that ends it: of its log it is the errors that are returned.
    """
    if not path.exists():
        return []
    with path.open("rb") as file:
        file.seek(max(since, size(path) - MAX_TAIL))
        written = file.read().decode(errors="replace").splitlines()
    entries = [_parse_entry(line) for line in written]
    severe = [_format_entry(entry) for entry in entries if entry and entry.get("s") in SEVERE]
    return [line[:MAX_LINE] for line in (severe or written)[-LINES:] if line.strip()]


def describe_exit(code: int) -> str:
    """Return how a process ended."""
    return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"


def indent(lines: list[str]) -> str:
    """Return lines for the end of a message."""
    return "".join(f"\n  {line}" for line in lines)


def _parse_entry(line: str) -> dict[str, Any] | None:
    """Return a line of mongod's log, which is JSON, or None."""
    try:
        entry = json.loads(line)
    except ValueError:
        return None
    return entry if isinstance(entry, dict) else None


def _format_entry(entry: dict[str, Any]) -> str:
    attributes = entry.get("attr")
    message = str(entry.get("msg", ""))
    return f"{message} {json.dumps(attributes)}" if attributes else message
