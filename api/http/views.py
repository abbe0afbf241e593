"""Base of the views that take an API key."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, NoReturn

from django.http import HttpRequest, HttpResponse
from rest_framework.exceptions import PermissionDenied, Throttled
from rest_framework.views import APIView

from access.models import Scope
from notifyproject.platform import cache

from .query import reject_unknown
from .rate_limits import find_counter


class ApiRequest:
    """A request with its client. Other attributes are those of Django's request."""

    __slots__ = ("_request", "user")

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        self.user: Any = None

    @property
    def query_params(self) -> Any:
        """The query parameters."""
        return self._request.GET

    def __getattr__(self, name: str) -> Any:
        return getattr(self._request, name)


class ClientView(APIView):
    """Base of the views that take an API key.

    ``relies_on_copies`` names the methods that use cached configuration without first asking
    MongoDB whether it is current: their own first read asks. If it isn't, the request starts again.

    The methods of ``scopes`` are handled without REST framework's request, negotiation, and
    rendering, which cost more than the rest of a short request.
    """

    checks_address = True
    """The address and the client's limit are checked in one round trip."""
    scopes: Mapping[str, Scope]
    relies_on_copies: Collection[str] = ()
    without_query: Collection[str] = ()
    """The methods without query parameters: a request with one is refused."""
    allow: str
    """The header ``Allow`` of every response."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        view = cls()
        view.setup(HttpRequest())
        cls.allow = ", ".join(view.allowed_methods)

    def dispatch(self, request: Any, *args: Any, **kwargs: Any) -> HttpResponse:
        """Handle a request."""
        run = self._handle if request.method in self.scopes else super().dispatch
        handle = partial(run, request, *args, **kwargs)
        if request.method not in self.relies_on_copies:
            return handle()
        try:
            return cache.relying_on_copies(handle)
        except Exception as error:
            # The versions couldn't be read, perhaps after a refusal that needed no other read.
            return self._refuse(error)

    def _handle(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        self.request, self.args, self.kwargs = ApiRequest(request), args, kwargs
        try:
            self._admit(self.request)
            if request.META.get("QUERY_STRING") and request.method in self.without_query:
                reject_unknown(request.GET, allowed=())
            response = getattr(self, str(request.method).lower())(self.request, *args, **kwargs)
        except Exception as error:
            return self._refuse(error)
        response.headers["Allow"] = self.allow
        return response

    def _refuse(self, error: Exception) -> HttpResponse:
        response = self.handle_exception(error)
        response.headers["Allow"] = self.allow
        return response

    def _admit(self, request: ApiRequest) -> None:
        """Authenticate the client and count the request.

        Raises what the classes of authentication and permission raise, Throttled, and ApiError.
        """
        failures = request._request.failures
        try:
            for authentication in self.get_authenticators():
                if (found := authentication.authenticate(request)) is not None:
                    request.user, _ = found
                    break
            self.check_permissions(request)
        except Exception:
            failures.raise_if_blocked()
            raise
        counted = find_counter(request)
        if counted is None:
            failures.raise_if_blocked()
            return
        # A request that starts again counts once.
        status = request._request.rate_status
        if status is None:
            counter, limit = counted
            status = failures.raise_if_blocked_or_consume(counter, limit=limit)
            request._request.rate_status = status
        if status is not None and not status.is_allowed:
            raise Throttled(status.reset)

    def permission_denied(
        self, request: Any, message: str | None = None, code: str | None = None
    ) -> NoReturn:
        """Fail. REST framework detects an unauthenticated request, which HasScope does here."""
        raise PermissionDenied(message, code)

    def initial(self, request: Any, *args: Any, **kwargs: Any) -> None:
        """Reject a blocked address, and authenticate the request."""
        request._request.failures.raise_if_blocked()
        super().initial(request, *args, **kwargs)

    def handle_exception(self, exc: Exception) -> HttpResponse:
        """Return the response to an exception."""
        if isinstance(exc, cache.ChangedError):
            raise exc
        return super().handle_exception(exc)
