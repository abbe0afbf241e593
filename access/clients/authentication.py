"""Authentication and permissions of the API.

Each view names a scope for each of its methods, or belongs to an inbox. Test mode is default-deny:
a test key may read, and use the writes that a view declares safe.
"""

from datetime import UTC, datetime
from enum import StrEnum
from typing import Any

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed, NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission

from . import inbox_tokens
from .inbox_tokens import InboxUser
from .registry import Client, authenticate


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
        user = inbox_user_of(header, now=datetime.now(UTC))
        if user is None:
            raise AuthenticationFailed
        return user, None

    def authenticate_header(self, request: Any) -> str:
        """Return what a 401 answer asks for."""
        return INBOX_CHALLENGE


INBOX_CHALLENGE = 'Bearer realm="inbox"'


def inbox_user_of(header: str, *, now: datetime) -> InboxUser | None:
    """Return whose inbox token an Authorization header holds; None if it holds none that counts."""
    scheme, _, token = header.partition(" ")
    if scheme.lower() != "bearer":
        return None
    return inbox_tokens.authenticate(token.strip(), now=now)


class SafeWrite(StrEnum):
    """Why a write with a test key changes no live data.

    A view declares it for each method: ``test_mode: ClassVar = {"POST": SafeWrite.OWN}``.
    """

    MARKED = "what it stores has is_test, and goes to the sandbox"
    OWN = "it changes only what belongs to the calling client, and a client is in one mode for good"
    NOTHING = "it stores nothing"


class TestKeyError(PermissionDenied):
    """A test key, or an inbox token issued with one, asks for a write that may change live data."""

    default_detail = "A test key can't change live data. Use a live key."
    default_code = "test_key"


class HasScope(BasePermission):
    """The client has the scope that ``view.scopes`` names for the method; unnamed is forbidden."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return whether it has; raises NotAuthenticated for nobody, and TestKeyError."""
        if not isinstance(request.user, Client):
            raise NotAuthenticated
        if not hasattr(view, request.method.lower()):
            return True  # It will be told 405.
        scope = getattr(view, "scopes", {}).get(request.method)
        is_allowed = scope is not None and request.user.has_scope(scope)
        if is_allowed and request.user.is_test and refuses_test_keys(view, request.method):
            raise TestKeyError
        return is_allowed


class OwnsInbox(BasePermission):
    """It is a person with an inbox token, who may do anything in their own inbox."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return True; raises NotAuthenticated for nobody, and TestKeyError."""
        if not isinstance(request.user, InboxUser):
            raise NotAuthenticated
        if not hasattr(view, request.method.lower()):
            return True  # It will be told 405.
        if request.user.is_test and refuses_test_keys(view, request.method):
            raise TestKeyError
        return True


def refuses_test_keys(view: Any, method: str) -> bool:
    """Return whether a view's method is a write that is not declared safe in test mode."""
    return method not in SAFE_METHODS and method not in getattr(view, "test_mode", {})
