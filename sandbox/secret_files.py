"""Files of the data folder that only their owner may read."""

import os
from pathlib import Path


def create_secret_file(path: Path, content: bytes) -> None:
    """Write a file unless there is one already: of two processes the quicker wins."""
    draft = _write_draft(path, content)
    try:
        os.link(draft, path)
    except FileExistsError:
        return
    finally:
        draft.unlink()


def replace_secret_file(path: Path, content: bytes) -> None:
    """Write a file in place of the one there is; nobody ever reads half of it."""
    _write_draft(path, content).replace(path)


def _write_draft(path: Path, content: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    draft = path.with_suffix(f".{os.getpid()}")
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
    return draft
