"""Who calls the API."""

from datetime import UTC, datetime
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from . import inbox_tokens
from .inbox_tokens import InboxUser
from .keys import Client, authenticate


class KeyAuthentication(BaseAuthentication):
    """``Authorization: Bearer ntf_…``, or ``ntf_test_…``."""

    def authenticate(self, request: Any) -> tuple[Client, None] | None:
        """Return the client; None without a header; raises AuthenticationFailed for a bad key."""
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        client = None
        if scheme.lower() == "bearer":
            client = authenticate(key.strip(), now=datetime.now(UTC))
        if client is None:
            raise AuthenticationFailed
        return client, None

    def authenticate_header(self, request: Any) -> str:
        """Return what a 401 answer asks for."""
        return 'Bearer realm="notifications"'


class InboxAuthentication(BaseAuthentication):
    """``Authorization: Bearer <inbox token>``, and nowhere else: addresses are logged."""

    def authenticate(self, request: Any) -> tuple[InboxUser, None] | None:
        """Return the person; None without a header; raises AuthenticationFailed for a bad token."""
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        user = person(header, now=datetime.now(UTC))
        if user is None:
            raise AuthenticationFailed
        return user, None

    def authenticate_header(self, request: Any) -> str:
        """Return what a 401 answer asks for."""
        return INBOX_CHALLENGE


INBOX_CHALLENGE = 'Bearer realm="inbox"'


def person(header: str, *, now: datetime) -> InboxUser | None:
    """Return whose inbox token an Authorization header holds; None if it holds none that counts."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    return inbox_tokens.authenticate(token.strip(), now=now)
