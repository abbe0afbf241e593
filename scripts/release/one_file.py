"""Packs the command ``notify`` with all that it needs into one file that Python runs."""

import io
import zipfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

ENTRY = Path(__file__).with_name("one_file_entry.py")
SHEBANG = b"#!/usr/bin/env python3\n"
_LEFT_OUT = frozenset({"RECORD", "INSTALLER", "REQUESTED", "direct_url.json", "uv_cache.json"})
"""Files of an installation that say where and how it was made."""
_MODE = 0o100644 << 16
_EARLIEST = datetime(1980, 1, 1, tzinfo=UTC)
"""A ZIP archive knows no time before."""


def packed_command(installed: Path, *, seconds: int) -> bytes:
    """Return the file, of a folder into which the command with its libraries was installed.

    It depends on nothing but that and the time. Code for one version of Python is left out: the
    libraries that have it do without it. What is left runs on the version that installed them and
    on later ones, on machines of the same kind.
    """
    time = max(datetime.fromtimestamp(seconds, UTC), _EARLIEST).timetuple()[:6]
    archive = io.BytesIO()
    archive.write(SHEBANG)
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in [("__main__.py", ENTRY.read_bytes()), *_files(installed)]:
            entry = zipfile.ZipInfo(name, time)
            entry.external_attr, entry.compress_type = _MODE, zipfile.ZIP_DEFLATED
            zipped.writestr(entry, content)
    return archive.getvalue()


def _files(installed: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(installed.rglob("*")):
        within = path.relative_to(installed)
        is_for_one_version = path.suffix == ".so" and ".cpython-" in path.name
        is_left_out = path.name in _LEFT_OUT or path.suffix == ".pyc" or within.parts[0] == "bin"
        if path.is_file() and not is_left_out and not is_for_one_version:
            yield within.as_posix(), path.read_bytes()
