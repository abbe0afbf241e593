"""Reads the environment variables that ``variables.py`` declares."""

import json
import os
from collections.abc import Mapping
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from . import accounts
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
    given = {**(defaults or {}), **{name: text for name, text in environ.items() if text}}
    declared, problems = accounts.find_accounts(given)
    values = {}
    for name, variable in accounts.declarations(declared).items():
        try:
            if text := given.get(name):
                values[name] = variable.kind.read(text)
            elif variable is not VARIABLES.get(name):
                values[name] = variable.value
        except RefusedError as refused:
            problems.append(f"environment variable {name}: {refused}.")
    problems += accounts.missing(declared, given)
    if problems:
        raise ImproperlyConfigured("\n".join(problems))
    return Environment(
        **{name: value for name, value in values.items() if name in VARIABLES},
        PROVIDER_ACCOUNTS={n: account.with_values(values) for n, account in declared.items()},
    )


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


def unused() -> list[str]:
    """Return the variables of this process that look like an account's, and are none's."""
    return accounts.unused(os.environ)


def current(*, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the environment of this process; see :func:`read`."""
    return read(os.environ, defaults=defaults)
