"""System checks of the inbox signing key and of two-factor authentication."""

from typing import Any

from django.conf import settings
from django.core import checks

from .clients.inbox_tokens import MIN_KEY_BYTES


def check_inbox_signing_key(**_: Any) -> list[checks.CheckMessage]:
    """Check that the inbox signing key is long enough and not shared."""
    key = settings.INBOX_SIGNING_KEY
    if len(key.encode()) < MIN_KEY_BYTES:
        text = f"INBOX_SIGNING_KEY has fewer than {MIN_KEY_BYTES} bytes."
        hint = "Anyone who guesses it can read every inbox. Run `openssl rand -base64 48`."
        return [checks.Error(text, hint=hint, id="access.E001")]
    if key == settings.SECRET_KEY:
        hint = "Use separate keys: they're rotated independently."
        return [checks.Error("INBOX_SIGNING_KEY is the SECRET_KEY.", hint=hint, id="access.E002")]
    return []


def check_second_factor(**_: Any) -> list[checks.CheckMessage]:
    """Report an error if the second factor is off, so that a password suffices for the console."""
    if settings.ADMIN_REQUIRE_OTP:
        return []
    text = "ADMIN_REQUIRE_OTP is off: staff sign in with a password alone."
    hint = "Turn it on. Staff then set up an authenticator app at their next sign-in."
    return [checks.Error(text, hint=hint, id="access.E003")]
