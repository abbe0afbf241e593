"""Who calls the API."""

from datetime import UTC, datetime
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from .keys import Client, authenticate


class KeyAuthentication(BaseAuthentication):
    """``Authorization: Bearer ntf_…``."""

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
