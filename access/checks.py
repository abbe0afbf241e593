"""System checks of the inbox signing key and sign-in by OpenID."""

from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core import checks

from domain.hosts import is_loopback

from .clients.inbox_tokens import MIN_KEY_BYTES
from .staff.permissions import ROLE_NAMES

OIDC_SETTINGS = ("OIDC_CLIENT_ID", "OIDC_CLIENT_SECRET", "OIDC_GROUP_ROLES")


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


def check_oidc(**_: Any) -> list[checks.CheckMessage]:
    """Check that sign-in by an OpenID provider is set up completely, or not at all."""
    problems: list[checks.CheckMessage] = []
    missing = [name for name in OIDC_SETTINGS if not getattr(settings, name)]
    if settings.OIDC_ISSUER and missing:
        text = f"OIDC_ISSUER is set, but not {', '.join(missing)}."
        hint = "Set them as registered at the provider: docs/guides/sign_in.md."
        problems.append(checks.Error(text, hint=hint, id="access.E004"))
    if not settings.OIDC_ISSUER and len(missing) < len(OIDC_SETTINGS):
        given = [name for name in OIDC_SETTINGS if name not in missing]
        text = f"{', '.join(given)} without OIDC_ISSUER: staff can't sign in by the provider."
        problems.append(checks.Error(text, id="access.E005"))
    unknown = sorted(set(settings.OIDC_GROUP_ROLES.values()) - ROLE_NAMES)
    if unknown:
        text = f"OIDC_GROUP_ROLES has unknown roles: {', '.join(unknown)}."
        hint = f"The roles are {', '.join(sorted(ROLE_NAMES))}."
        problems.append(checks.Error(text, hint=hint, id="access.E006"))
    if settings.OIDC_ISSUER and not _is_issuer(settings.OIDC_ISSUER):
        text = "OIDC_ISSUER is not a URL that begins with https://, without query and fragment."
        hint = "Copy the value of issuer in the provider's discovery document."
        problems.append(checks.Error(text, hint=hint, id="access.E007"))
    if settings.OIDC_ISSUER and "openid" not in settings.OIDC_SCOPES:
        text = "OIDC_SCOPES lacks openid: the provider returns no ID token."
        problems.append(checks.Error(text, id="access.E008"))
    return problems


def _is_issuer(url: str) -> bool:
    """Return whether a URL is an issuer's. Plain HTTP is for this machine only."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if not parts.hostname or parts.query or parts.fragment or "@" in parts.netloc:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback(parts.hostname))
