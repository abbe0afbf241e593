"""System checks: a key that could be guessed, or that opens two doors, stops the start."""

from typing import Any

from django.conf import settings
from django.core import checks

from .clients.inbox_tokens import MIN_KEY_BYTES


def check_inbox_signing_key(**_: Any) -> list[checks.CheckMessage]:
    """Return what is wrong with the key that inbox tokens are signed with."""
    key = settings.INBOX_SIGNING_KEY
    if len(key.encode()) < MIN_KEY_BYTES:
        return [
            checks.Error(
                f"INBOX_SIGNING_KEY has fewer than {MIN_KEY_BYTES} bytes.",
                hint="Whoever guesses it reads every inbox: `openssl rand -base64 48` makes one.",
                id="access.E001",
            )
        ]
    if key == settings.SECRET_KEY:
        return [
            checks.Error(
                "INBOX_SIGNING_KEY is the SECRET_KEY.",
                hint="Each needs a key of its own: they are changed at different times.",
                id="access.E002",
            )
        ]
    return []


def check_second_factor(**_: Any) -> list[checks.CheckMessage]:
    """Return that a stolen password would open the console."""
    if settings.ADMIN_REQUIRE_OTP:
        return []
    return [
        checks.Warning(
            "Staff sign in with a password alone: ADMIN_REQUIRE_OTP is off.",
            hint="Switch it on: who signs in next sets up an app on their phone.",
            id="access.W001",
        )
    ]
