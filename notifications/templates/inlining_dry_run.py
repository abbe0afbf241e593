"""Dry run of the inlining of styles, in a process of its own, before a template is stored.

The library is native code: whatever it does with a source that nobody thought of, it does it there.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import structlog

log = structlog.get_logger(__name__)

TIMEOUT_SECONDS = 20.0
"""How long the process may take on a busy machine; its processor time is limited far below."""
_PROGRAM = Path(__file__).with_name("inliner.py")


@dataclass(frozen=True, slots=True)
class DryRun:
    """The result of a dry run: the inlined fragments, in their order."""

    inlined: Sequence[str]
    """Up to the first one that failed."""
    reason: str | None = None
    """Why that one failed; None if none did."""


def run(fragments: Sequence[str], *, css: str) -> DryRun:
    """Inline fragments with a style sheet; never raises for what is in them."""
    request = json.dumps({"css": css, "fragments": [*fragments]})
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(_PROGRAM)],
            input=request.encode(),
            capture_output=True,
            timeout=TIMEOUT_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        log.warning("inlining_not_tried", error=type(error).__name__)
        return DryRun((), "It could not be tried on this machine just now: try again.")
    inlined = tuple(json.loads(line) for line in done.stdout.splitlines() if line.endswith(b'"'))
    if len(inlined) == len(fragments):
        return DryRun(inlined)
    log.warning("inlining_failed", status=done.returncode)
    return DryRun(
        inlined, "Styles cannot be written into this HTML within the limits of memory and time."
    )
