"""System checks of a server: guessable secrets and host names that admit any request."""

import re
from typing import Any

from django.conf import settings
from django.core import checks

MIN_SECRET_KEY = 50
MIN_DISTINCT = 10
_REPEATED = re.compile(rb"(.)\1{7}", re.DOTALL)
_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(
    rf"{_LABEL}(\.{_LABEL})*\.?|(\.{_LABEL}){{2,}}\.?|\[[0-9a-f:.]+\]", re.ASCII | re.IGNORECASE
)
"""A host name, a domain with its subdomains (``.example.com``), or an IP address."""


def check_secrets(**_: Any) -> list[checks.CheckMessage]:
    """Report secrets that could be guessed. No message contains one."""
    problems: list[checks.CheckMessage] = []
    if len(settings.SECRET_KEY) < MIN_SECRET_KEY:
        problems.append(_guessable(f"SECRET_KEY has fewer than {MIN_SECRET_KEY} characters.", 4))
    named_secrets = {
        "SECRET_KEY": settings.SECRET_KEY.encode(),
        "INBOX_SIGNING_KEY": settings.INBOX_SIGNING_KEY.encode(),
        **{
            f"The key {key_id} of FIELD_ENCRYPTION_KEYS": secret
            for key_id, secret in settings.FIELD_ENCRYPTION_KEYS.items()
        },
    }
    for name, secret in named_secrets.items():
        if len(set(secret)) < MIN_DISTINCT or _REPEATED.search(secret):
            problems.append(_guessable(f"{name} is not random.", 5))
    return problems


def check_allowed_hosts(**_: Any) -> list[checks.CheckMessage]:
    """Report patterns that admit any host, and invalid host names."""
    wrong = [host for host in settings.ALLOWED_HOSTS if not _HOST.fullmatch(host)]
    if not wrong:
        return []
    problem = checks.Error(
        f"ALLOWED_HOSTS contains invalid host names: {', '.join(wrong)}.",
        hint=(
            "Use names such as notify.example.com, separated by commas: no asterisk, no https://, "
            "no port. Otherwise a request chooses the host of the links in its response."
        ),
        id="notifyproject.E006",
    )
    return [problem]


def _guessable(message: str, number: int) -> checks.Error:
    hint = "Anyone who guesses it can forge what it signs. Run `openssl rand -base64 48`."
    return checks.Error(message, hint=hint, id=f"notifyproject.E{number:03}")
