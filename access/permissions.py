"""Permissions: each view names a scope for each of its methods, or is an inbox's.

Test mode is default-deny: a test key may read, and use the writes that a view declares safe.
"""

from enum import StrEnum
from typing import Any

from rest_framework.exceptions import NotAuthenticated, PermissionDenied
from rest_framework.permissions import SAFE_METHODS, BasePermission

from .inbox_tokens import InboxUser
from .keys import Client


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
        is_allowed = scope is not None and request.user.may(scope)
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
