"""What a caller may do: each view names a scope for each of its methods, or is an inbox's."""

from typing import Any

from rest_framework.exceptions import NotAuthenticated
from rest_framework.permissions import BasePermission

from .inbox_tokens import InboxUser
from .keys import Client


class HasScope(BasePermission):
    """The client has the scope that ``view.scopes`` names for the method; unnamed is forbidden."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return whether it has; raises NotAuthenticated for nobody."""
        if not isinstance(request.user, Client):
            raise NotAuthenticated
        if not hasattr(view, request.method.lower()):
            return True  # It will be told 405.
        scope = getattr(view, "scopes", {}).get(request.method)
        return scope is not None and request.user.may(scope)


class OwnsInbox(BasePermission):
    """It is a person with an inbox token, who may do anything in their own inbox."""

    def has_permission(self, request: Any, view: Any) -> bool:
        """Return True; raises NotAuthenticated for nobody."""
        if not isinstance(request.user, InboxUser):
            raise NotAuthenticated
        return True
