"""Reads the environment variables that ``variables.py`` declares."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from .kinds import RefusedError
from .variables import VARIABLES, Environment

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = BASE_DIR / ".data"
STACK_FILE = DATA_DIR / "stack.json"
"""Process ID and environment of a running local stack."""
CREDENTIALS_FILE = DATA_DIR / "local-credentials.json"
"""The first account and API key of a local stack."""


def read(environ: Mapping[str, str], *, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the validated environment, with defaults.

    Raises ImproperlyConfigured, which names each wrong variable and has no value.
    """
    values, problems = {}, []
    for name, variable in VARIABLES.items():
        if text := environ.get(name) or (defaults or {}).get(name):
            try:
                values[name] = variable.kind.read(text)
            except RefusedError as refused:
                problems.append(f"environment variable {name}: {refused}.")
    if problems:
        raise ImproperlyConfigured("\n".join(problems))
    return Environment(**values)


def local_stack_environment() -> dict[str, str]:
    """Return the environment of the running local stack, or an empty one."""
    if not STACK_FILE.exists():
        return {}
    stack = json.loads(STACK_FILE.read_text())
    return stack["environment"] if is_alive(stack["pid"]) else {}


def is_alive(pid: int) -> bool:
    """Return whether a process with this ID exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def current(*, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the environment of this process; see :func:`read`."""
    return read(os.environ, defaults=defaults)
