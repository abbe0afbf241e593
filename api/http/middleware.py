"""Handles requests to the API without the middleware of pages, and limits their rates."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from django.conf import settings
from django.core.handlers.exception import convert_exception_to_response
from django.http import HttpRequest, HttpResponse
from django.urls import ResolverMatch, resolve
from django.urls.exceptions import Resolver404

from .paths import check_spelling, unknown_path
from .problems import ApiError, problem_response
from .rate_limits import API_PREFIX, AuthenticationFailures, limit_headers


class ApiMiddleware:
    """Responds to the API's paths itself; sessions, pages, and static files are for the others.

    It blocks IP addresses after failed authentications, and sets the ``RateLimit-*`` headers.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._call_view = convert_exception_to_response(_call_view)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Handle the request."""
        if not request.path.startswith(API_PREFIX):
            return self.get_response(request)
        # Raises DisallowedHost, as CommonMiddleware does.
        request.get_host()
        request.rate_status = None
        request.failures = AuthenticationFailures.of(request.META)
        try:
            response = self._respond(request)
        except ApiError as problem:
            return problem_response(problem, request)
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            request.failures.count()
        if request.rate_status is not None:
            for name, value in limit_headers(request.rate_status).items():
                response.headers[name] = value
        if not response.streaming and "Content-Length" not in response.headers:
            response.headers["Content-Length"] = str(len(response.content))
        return response

    def _respond(self, request: HttpRequest) -> HttpResponse:
        """Call the view. Raises ApiError for a blocked address."""
        try:
            request.resolver_match = _find_view(request.path_info)
            check_spelling(request, request.resolver_match.kwargs)
        except (Resolver404, ApiError) as error:
            request.failures.raise_if_blocked()
            raise error if isinstance(error, ApiError) else unknown_path(request.path) from None
        if not getattr(request.resolver_match.func, "checks_address", False):
            request.failures.raise_if_blocked()
        return self._call_view(request)


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


def _call_view(request: HttpRequest) -> Any:
    match = request.resolver_match
    response = match.func(request, *match.args, **match.kwargs)
    return response.render() if hasattr(response, "render") else response
