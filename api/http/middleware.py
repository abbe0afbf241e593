"""Handles requests of programs, to the API and to webhooks, without the middleware of pages."""

from collections.abc import Callable
from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve
from django.urls.exceptions import Resolver404

from .paths import check_spelling, unknown_path
from .problems import ApiError
from .views import RefusedPath

PREFIXES = ("/api/v1/", "/webhooks/")
_refuse = RefusedPath.as_view()


class ApiMiddleware:
    """Responds to these paths itself; sessions, pages, and static files are for the others."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._call_view = convert_exception_to_response(_call_view)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        if not request.path.startswith(PREFIXES):
            return self.get_response(request)
        # Raises DisallowedHost, as CommonMiddleware does.
        request.get_host()
        response = self._call_view(request)
        if not response.streaming and "Content-Length" not in response.headers:
            response.headers["Content-Length"] = str(len(response.content))
        return response


def _call_view(request: HttpRequest) -> Any:
    try:
        match = request.resolver_match = _find_view(request.path_info)
        check_spelling(request, match.kwargs)
    except Resolver404:
        return _refuse(request, problem=unknown_path(request.path))
    except ApiError as problem:
        return _refuse(request, problem=problem)
    response = match.func(request, *match.args, **match.kwargs)
    return response.render() if hasattr(response, "render") else response


_matches: dict[tuple[str, str], ResolverMatch] = {}
"""The views of paths without parameters, by URL configuration and path."""


def _find_view(path: str) -> ResolverMatch:
    """Return the view of a path. Raises Resolver404."""
    key = settings.ROOT_URLCONF, path
    match = _matches.get(key)
    if match is None:
        match = resolve(path)
        if not match.args and not match.kwargs:
            _matches[key] = match
    return match
