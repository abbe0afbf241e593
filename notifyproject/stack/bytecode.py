"""Bytecode cache for machines on which Python writes no bytecode."""

import os
import sys
from pathlib import Path

BYTECODE = Path(sys.prefix) / "bytecode"


def enable_cache() -> None:
    """Cache the bytecode of this process and its children in the virtual environment.

    With ``PYTHONDONTWRITEBYTECODE``, as in most container images, a Celery worker compiles for 5 s.
    """
    is_private = sys.prefix != sys.base_prefix
    if sys.dont_write_bytecode and sys.pycache_prefix is None and is_private:
        sys.dont_write_bytecode = False
        sys.pycache_prefix = str(BYTECODE)
        # For child processes.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)
