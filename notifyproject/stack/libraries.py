"""The shared libraries that an installed program needs, looked at before it is started."""

import re
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

from . import prerequisites

LDD_SECONDS = 10.0
_MISSING = re.compile(r"^\s*(\S+) => not found", re.MULTILINE)
_TOO_OLD = re.compile(r"version `(\S+)' not found")


class MissingLibraryError(RuntimeError):
    """The system lacks a library that a program needs. The message says how to install it."""


def check_libraries(*, program: str, binary: Path) -> None:
    """Look at what a binary needs; raises MissingLibraryError.

    Nothing is said of a system without ``ldd``, or of a binary that ``ldd`` cannot read: the
    program itself says more when it is started.
    """
    ldd = shutil.which("ldd")
    if ldd is None:
        return
    try:
        traced = subprocess.run(
            [ldd, str(binary)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
            timeout=LDD_SECONDS,
        ).stdout
    except subprocess.TimeoutExpired:
        return
    if missing := sorted(set(_MISSING.findall(traced))):
        raise MissingLibraryError(_advice(program, missing))
    if versions := sorted(set(_TOO_OLD.findall(traced))):
        raise MissingLibraryError(
            f"This system is too old for {program}: its libraries lack {', '.join(versions)}."
        )


def playwright_binary() -> Path | None:
    """Return the path of the Node.js that Playwright brings, or None if it is not installed."""
    package = find_spec("playwright")
    if package is None or package.submodule_search_locations is None:
        return None
    path = Path(package.submodule_search_locations[0]) / "driver" / "node"
    return path if path.exists() else None


def check_playwright() -> None:
    """Look at what Playwright's Node.js needs; raises MissingLibraryError."""
    if (binary := playwright_binary()) is not None:
        check_libraries(program="Playwright", binary=binary)


def _advice(program: str, missing: list[str]) -> str:
    lacks = (
        f"This machine lacks {prerequisites.format_missing([(name, program) for name in missing])}"
    )
    unknown = [name for name in missing if name not in prerequisites.PACKAGES]
    known = [prerequisites.PACKAGES[name] for name in missing if name not in unknown]
    advice = [f"install the package that has {' and '.join(unknown)}"] if unknown else []
    advice += [prerequisites.how_to_install(known)] if known else []
    return f"{lacks}: {'; '.join(advice)}."
