"""The Google service account that pushes are sent as, and how it proves who it is."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated

import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from google.auth import crypt, jwt

SCOPE = "https://www.googleapis.com/auth/firebase.messaging"
AUDIENCE = "https://oauth2.googleapis.com/token"
"""Whom an assertion is for, wherever it is handed in."""
ASSERTION_LIFETIME = timedelta(hours=1)
"""The longest that Google takes."""
MAX_FILE = 64 * 1024

_Text = Annotated[str, msgspec.Meta(min_length=1)]
_NONE = "The Firebase service account, as configured, is none."


class UnusableAccount(ValueError):
    """What is configured is no service account. Its text is for operators and holds no secret."""


class _File(msgspec.Struct):
    """The fields of Google's JSON that matter here."""

    client_email: _Text
    private_key: _Text
    private_key_id: str | None = None
    token_uri: _Text = AUDIENCE
    project_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServiceAccount:
    """A service account, with what it signs with."""

    email: str
    project_id: str
    """The Firebase project it was made in."""
    token_uri: str
    """Where an assertion is exchanged for an access token."""
    private_key: str = field(repr=False)
    private_key_id: str | None

    def assertion(self, *, now: datetime) -> str:
        """Return a signed statement of who asks for an access token, good for an hour.

        Takes a tenth of a second, for the key is read and checked. Raises UnusableAccount.
        """
        claims = {
            "iss": self.email,
            "aud": AUDIENCE,
            "scope": SCOPE,
            "iat": int(now.timestamp()),
            "exp": int((now + ASSERTION_LIFETIME).timestamp()),
        }
        try:
            signer = crypt.RSASigner.from_string(self.private_key, self.private_key_id)
            return jwt.encode(signer, claims).decode("ascii")
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise UnusableAccount(_NONE) from error


def read(source: str) -> ServiceAccount:
    """Return the account in ``source``: the path of Google's JSON, or the JSON itself.

    Raises UnusableAccount.
    """
    if not source.strip():
        raise UnusableAccount("No Firebase service account is configured.")
    try:
        content = source.encode() if source.lstrip().startswith("{") else _file(source)
        found = msgspec.json.decode(content, type=_File)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UnusableAccount(_NONE) from error
    return ServiceAccount(
        email=found.client_email,
        project_id=found.project_id,
        token_uri=found.token_uri,
        private_key=found.private_key,
        private_key_id=found.private_key_id,
    )


def _file(path: str) -> bytes:
    try:
        with Path(path).open("rb") as file:
            return file.read(MAX_FILE)
    except (OSError, ValueError) as error:
        raise UnusableAccount("The Firebase service account's file cannot be read.") from error
