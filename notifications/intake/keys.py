"""Idempotency keys: what a caller's key stands for, and for how long."""

import hashlib
from datetime import timedelta

from .preparing import Caller

KEY_LIFETIME = timedelta(hours=24)
"""How long a repeated request is recognised."""


def key_id(caller: Caller) -> str:
    """Return the id under which a caller's key is kept: nobody else's key has it."""
    return hashlib.sha256(f"{caller.client_id}|{caller.idempotency_key}".encode()).hexdigest()
