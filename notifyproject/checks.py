"""System checks of a server: unsafe secrets, URLs, and host names. No message has a secret."""

import re
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from django.core import checks

from .settings.safety import secret_problem, url_problem
from .settings.variables import SECRETS, URLS

_LABEL = r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = re.compile(
    rf"{_LABEL}(\.{_LABEL})*\.?|(\.{_LABEL}){{2,}}\.?|\[[0-9a-f:.]+\]", re.ASCII | re.IGNORECASE
)
"""A host name, a domain with its subdomains (``.example.com``), or an IP address."""
_SHARED_DOMAIN = re.compile(
    r"""\.(
      (ac|asn|asso|co|com|conf|edu|ed|firm|gen|go|gob|gouv|gov|govt|gr|gub|id|idv|ind|info|int|k12
        |lg|ltd|me|med|mil|ne|net|nhs|nic|nom|nome|or|org|plc|police|priv|pro|publ|sch|school|tm|web
      )\.[a-z]{2}
      |(github|gitlab|bitbucket|web|firebaseapp|netlify|vercel|pages|workers|onrender|fly
        |herokuapp|azurewebsites|cloudfront|appspot|run|ngrok|ngrok-free|trycloudflare|amazonaws
        |blogspot|glitch|repl|replit|surge|up\.railway|ondigitalocean|elasticbeanstalk|cloudapp
      )\.(io|com|net|app|dev|page|co|me|sh)
    )\.?""",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""Domains under which strangers register theirs: registries of countries, and hosting."""


def check_secrets(**_: Any) -> list[checks.CheckMessage]:
    """Report secrets that are short, could be guessed, or serve two purposes."""
    problems: list[checks.CheckMessage] = []
    seen: dict[bytes, tuple[str, str]] = {}
    for name, rule in SECRETS.items():
        for label, secret in _secrets(name):
            other, other_label = seen.setdefault(secret, (name, label))
            is_used_twice = (other, other_label) != (name, label)
            if problem := secret_problem(rule, secret):
                number = 4 if "fewer" in problem else 5
                problems.append(_guessable(f"{label} {problem}.", number))
            # Accounts may share a secret, as two senders of one account at Twilio do.
            elif not rule.is_issued and is_used_twice and not _is_shared(name, other):
                problems.append(_guessable(f"{label} is {other_label}, too.", 7))
    return problems


def check_urls(**_: Any) -> list[checks.CheckMessage]:
    """Report URLs without TLS to hosts outside this machine or a private network."""
    problems: list[checks.CheckMessage] = []
    for name, rule in URLS.items():
        for label, url in _urls(name):
            if problem := url_problem(rule, url):
                hint = (
                    "Without TLS, everybody on the way reads and changes what is sent, keys and "
                    "codes included. Use https://, or for a test an address such as 127.0.0.1."
                )
                message = f"{label} {problem}."
                problems.append(checks.Error(message, hint=hint, id="notifyproject.E008"))
    return problems


def check_allowed_hosts(**_: Any) -> list[checks.CheckMessage]:
    """Report patterns that admit any host, and invalid host names."""
    wrong = [
        host
        for host in settings.ALLOWED_HOSTS
        if not _HOST.fullmatch(host) or _SHARED_DOMAIN.fullmatch(host)
    ]
    if not wrong:
        return []
    problem = checks.Error(
        f"ALLOWED_HOSTS contains invalid host names: {', '.join(wrong)}.",
        hint=(
            "Use names such as notify.example.com, separated by commas: no asterisk, no https://, "
            "no port, and no domain that others share, such as .co.uk. Otherwise a request chooses "
            "the host of the links in its response."
        ),
        id="notifyproject.E006",
    )
    return [problem]


def _secrets(name: str) -> Iterator[tuple[str, bytes]]:
    """Yield the values of a variable that is set, each with what to call it."""
    if name == "FIELD_ENCRYPTION_KEYS":
        for key_id, secret in settings.FIELD_ENCRYPTION_KEYS.items():
            yield f"The key {key_id} of {name}", secret
        return
    for label, value in _values(name):
        if not isinstance(value, str):
            for number, secret in enumerate(value, start=1):
                yield f"Value {number} of {label}", secret.encode()
        # Without the keys of production, no process gets here.
        elif value or name in ("SECRET_KEY", "INBOX_SIGNING_KEY"):
            yield label, value.encode()


def _urls(name: str) -> Iterator[tuple[str, str]]:
    """Yield the values of a variable that is set, each with what to call it."""
    for label, value in _values(name):
        for url in [value] if isinstance(value, str) else sorted(value):
            if url:
                yield label, url


def _values(name: str) -> Iterator[tuple[str, Any]]:
    """Yield the setting of a variable, and those of accounts of a provider that have it, too."""
    yield name, getattr(settings, name)
    for account in settings.PROVIDER_ACCOUNTS.values():
        if name in account.variables.values:
            yield account.variables.own_name(name), getattr(account.values, name)


def _is_shared(name: str, other: str) -> bool:
    """Return whether two variables with one secret are one variable of two accounts."""
    return name == other and any(
        name in account.variables.values for account in settings.PROVIDER_ACCOUNTS.values()
    )


def _guessable(message: str, number: int) -> checks.Error:
    hint = "Anyone who guesses it can forge what it signs. Run `openssl rand -base64 48`."
    return checks.Error(message, hint=hint, id=f"notifyproject.E{number:03}")
