"""Authentication and permissions of the API. Test keys may only write what is declared safe."""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from . import inbox_tokens
from .inbox_tokens import InboxUser
from .registry import Client, authenticate


class KeyAuthentication(BaseAuthentication):
    """API key authentication: ``Authorization: Bearer ntf_…`` or ``ntf_test_…``."""

    def authenticate(self, request: Request) -> tuple[Client, None] | None:
        """Return the client, or None without a header. Raises AuthenticationFailed."""
        scheme, _, key = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            return None
        is_bearer = scheme.lower() == "bearer"
        client = authenticate(key.strip(), now=datetime.now(UTC)) if is_bearer else None
        if client is None:
            raise AuthenticationFailed
        return client, None

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header of a 401 response."""
        return 'Bearer realm="notifications"'


class InboxAuthentication(BaseAuthentication):
    """Authentication by an inbox token. Only in a header, because URLs are logged."""

    def authenticate(self, request: Request) -> tuple[InboxUser, None] | None:
        """Return the inbox user, or None without a header. Raises AuthenticationFailed."""
        header = request.headers.get("Authorization", "")
        if not header:
            return None
        user = inbox_user_of(header, now=datetime.now(UTC))
        if user is None:
            raise AuthenticationFailed
        return user, None

    def authenticate_header(self, request: Request) -> str:
        """Return the WWW-Authenticate header of a 401 response."""
        return INBOX_CHALLENGE


INBOX_CHALLENGE = 'Bearer realm="inbox"'


def inbox_user_of(header: str, *, now: datetime) -> InboxUser | None:
    """Return the inbox user of an Authorization header, or None without a valid token."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    return inbox_tokens.authenticate(token.strip(), now=now)


class SafeWrite(StrEnum):
    """Reasons, declared by an operation, why a write with a test key changes no live data."""

    MARKED = "the stored document has is_test, and goes to the sandbox"
    OWN = "it changes data of the calling client only, and a client never changes its mode"
    NOTHING = "it stores nothing"


class TestKeyError(PermissionDenied):
    """A test key, or an inbox token issued with one, requested a write on live data."""

    default_detail = "A test key can't change live data. Use a live key."
    default_code = "test_key"


class HasScope(BasePermission):
    """Requires the scope that ``view.scopes`` names for the method. Without one, all are denied."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return whether the client has the scope. Raises NotAuthenticated or TestKeyError."""
        if not isinstance(request.user, Client):
            raise NotAuthenticated
        if request.method == "OPTIONS" or not hasattr(view, request.method.lower()):
            return True  # The view then responds with its methods, or 405.
        scope = getattr(view, "scopes", {}).get(request.method)
        is_allowed = scope is not None and request.user.has_scope(scope)
        if is_allowed and request.user.is_test and refuses_test_keys(view, request.method):
            raise TestKeyError
        return is_allowed


class OwnsInbox(BasePermission):
    """Requires an inbox token, which allows everything in its own inbox."""

    def has_permission(self, request: Request, view: Any) -> bool:
        """Return True. Raises NotAuthenticated or TestKeyError."""
        if not isinstance(request.user, InboxUser):
            raise NotAuthenticated
        if not hasattr(view, request.method.lower()):
            return True  # The view then responds 405.
        if request.user.is_test and refuses_test_keys(view, request.method):
            raise TestKeyError
        return True


def refuses_test_keys(view: Any, method: str) -> bool:
    """Return whether a method is a write that isn't declared safe for test keys."""
    return method not in SAFE_METHODS and method not in getattr(view, "test_mode", {})
