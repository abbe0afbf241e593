"""Servers by name, from a file that nobody but its owner can read.

.. code-block:: toml

    [staging]
    url = "https://notify.staging.example.com"
    key_command = ["keyring", "get", "notify", "staging"]  # Or key = "…"
"""

import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "NOTIFY_PROFILES"
DEFAULT_FILE = "~/.config/notify/profiles.toml"
OF_OTHERS = 0o077
"""The permissions of a file that anybody but its owner has."""
COMMAND_SECONDS = 60.0
"""The longest that a key's command may take. It may ask for a password."""


class ProfileError(Exception):
    """A profile that can't be used."""


@dataclass(frozen=True, slots=True)
class Profile:
    """A server and a key."""

    url: str
    key: str = field(repr=False)


def find_profile(name: str, *, environment: Mapping[str, str]) -> Profile:
    """Return a profile. Raises ProfileError."""
    path = Path(environment.get(FILE) or DEFAULT_FILE).expanduser()
    found = _read(path).get(name)
    if not isinstance(found, dict):
        raise ProfileError(f"There is no profile {name} in {path}.")
    match found:
        case {"url": str(url), "key": str(key), **others} if not others:
            return Profile(url, key)
        case {"url": str(url), "key_command": [*words], **others} if not others and words:
            return Profile(url, _key_of([str(word) for word in words], name))
        case _:
            raise ProfileError(f"{path}: {name} needs url, and key or key_command. No more.")


def _read(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            if os.name == "posix" and os.fstat(file.fileno()).st_mode & OF_OTHERS:
                raise ProfileError(f"{path} can be read by others: chmod 600 {path}")
            return tomllib.load(file)
    except (OSError, ValueError) as error:
        raise ProfileError(f"{path}: {error}") from error


def _key_of(words: list[str], name: str) -> str:
    try:
        done = subprocess.run(
            words, check=True, stdout=subprocess.PIPE, text=True, timeout=COMMAND_SECONDS
        )
    except (OSError, ValueError, subprocess.SubprocessError) as error:
        # The error's own text may have the key.
        reason = f"the command of its key failed: {type(error).__name__}"
        raise ProfileError(f"{name}: {reason}") from None
    if not (key := done.stdout.strip()):
        raise ProfileError(f"{name}: the command of its key printed nothing")
    return key
