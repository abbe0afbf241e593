"""Runs ``notify`` from its one file: ``__main__`` of the archive.

Python loads native code from a disk alone. So the first run unpacks the file into the user's cache,
in a folder of its content's name, and each later one finds it there.
"""

import hashlib
import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

OLDEST = (3, 11)


def unpacked(archive: Path) -> Path:
    """Return the folder that has the content of the archive. Raises OSError."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "notify"
    folder = cache / hashlib.sha256(archive.read_bytes()).hexdigest()[:32]
    if folder.is_dir():
        return folder
    cache.mkdir(mode=0o700, parents=True, exist_ok=True)
    # Of two first runs at once, either makes the whole folder.
    fresh = Path(tempfile.mkdtemp(dir=cache))
    try:
        with zipfile.ZipFile(archive) as zipped:
            zipped.extractall(fresh)
        fresh.rename(folder)
    except OSError:
        shutil.rmtree(fresh, ignore_errors=True)
        if not folder.is_dir():
            raise
    return folder


if __name__ == "__main__":
    if sys.version_info < OLDEST:
        sys.exit(f"notify needs Python {OLDEST[0]}.{OLDEST[1]} or later.")
    try:
        sys.path.insert(0, str(unpacked(Path(sys.argv[0]))))
    except OSError as error:
        sys.exit(f"notify can't unpack itself: {error}")

    from notifyproject_client.cli.command import main

    main()
