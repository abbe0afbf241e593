"""Base of the views that take an API key."""

from collections.abc import Collection
from typing import Any

from rest_framework.response import Response
from rest_framework.views import APIView

from notifyproject.platform import cache


class ClientView(APIView):
    """Base of the views that take an API key.

    A method in ``relies_on_copies`` doesn't compare cache versions first: its own first read does.
    If a version has changed by then, the request starts again, so it never acts on an old copy.
    """

    relies_on_copies: Collection[str] = ()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """Handle a request."""
        if request.method not in self.relies_on_copies:
            return super().dispatch(request, *args, **kwargs)
        cache.rely_on_copies()
        try:
            response = super().dispatch(request, *args, **kwargs)
            # A refused request may not have read anything.
            cache.confirm_copies()
        except cache.ChangedError:
            return super().dispatch(request, *args, **kwargs)
        return response

    def handle_exception(self, exc: Exception) -> Response:
        """Return the response to an exception."""
        if isinstance(exc, cache.ChangedError):
            raise exc
        return super().handle_exception(exc)
