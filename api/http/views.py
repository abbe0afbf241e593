"""Base of the views that take an API key."""

from collections.abc import Collection
from functools import partial
from typing import Any

from rest_framework.response import Response
from rest_framework.views import APIView

from notifyproject.platform import cache


class ClientView(APIView):
    """Base of the views that take an API key.

    ``relies_on_copies`` names the methods that use cached configuration without first asking
    MongoDB whether it is current: their own first read asks. If it isn't, the request starts again.
    """

    relies_on_copies: Collection[str] = ()

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> Response:
        """Handle a request."""
        handle = partial(super().dispatch, request, *args, **kwargs)
        return (
            cache.relying_on_copies(handle) if request.method in self.relies_on_copies else handle()
        )

    def handle_exception(self, exc: Exception) -> Response:
        """Return the response to an exception."""
        if isinstance(exc, cache.ChangedError):
            raise exc
        return super().handle_exception(exc)
