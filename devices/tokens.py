"""Push tokens and the device IDs derived from them. Pure."""

import hashlib
import re

MIN_LENGTH, MAX_LENGTH = 6, 4096
"""Firebase's tokens have 100 characters and more; the sandbox's are words."""
TOKEN_PATTERN = rf"^[A-Za-z0-9_:-]{{{MIN_LENGTH},{MAX_LENGTH}}}$"
_TOKEN = re.compile(TOKEN_PATTERN, re.ASCII)
_DEVICE_ID = re.compile(r"[0-9a-f]{64}", re.ASCII)
_SHOWN_HEAD, _SHOWN_TAIL = 6, 4
_MIN_MASKABLE_LENGTH = 24


def is_token(text: str) -> bool:
    """Return whether a text can be a registration token of Firebase."""
    return _TOKEN.fullmatch(text) is not None


def device_id(token: str) -> str:
    """Return the device ID of a token: its SHA-256 in hex."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_device_id(text: str) -> bool:
    """Return whether a text has the form of a device ID."""
    return _DEVICE_ID.fullmatch(text) is not None


def mask_token(token: str) -> str:
    """Return the part of a token to display, such as ``dGhpcy…x9Qw``, or nothing of a short one."""
    if len(token) < _MIN_MASKABLE_LENGTH:
        return "…"
    return f"{token[:_SHOWN_HEAD]}…{token[-_SHOWN_TAIL:]}"
