"""Base of the API's views. A request takes REST framework's way through them.

``dispatch`` makes the request, authenticates it, checks its permission, counts it (``initial``),
and calls the handler. What any of them raises becomes a problem in ``handle_exception``.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from functools import partial
from http import HTTPStatus
from time import perf_counter
from typing import Any, NoReturn

from django.http import HttpRequest, HttpResponse
from rest_framework.permissions import SAFE_METHODS
from rest_framework.views import APIView

from access.clients.authentication import InboxAuthentication, OwnsInbox
from access.clients.registry import Client
from access.models import Scope
from domain.time import utc_now
from notifications import request_log
from notifications.queueing import wakeups
from notifications.request_log import Answered
from notifyproject.platform import cache

from .problems import ApiError
from .query import reject_unknown
from .rate_limits import AuthenticationFailures, CallerThrottle, RateLimitStatus
from .rendering import Response
from .requests import ApiRequest, ClientRequest, InboxRequest


class ApiView(APIView):
    """Base of the views that take an API key.

    ``relies_on_copies`` names the methods that use cached configuration without first asking
    MongoDB whether it is current: their own first read asks. If it isn't, the request starts again.
    """

    request_class: type[ApiRequest] = ClientRequest
    throttle_classes: Collection[type[CallerThrottle]] = (CallerThrottle,)
    scopes: Mapping[str, Scope]
    relies_on_copies: Collection[str] = ()
    query_parameters: Mapping[str, Mapping[str, bool]] = {}
    """By method, whether each known parameter may be repeated."""
    failures: AuthenticationFailures
    """Those of the address that sent the request."""
    rate_status: RateLimitStatus | None = None
    """The result of the throttle. A request that starts again counts once."""

    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        """Respond to a request, count a failed authentication, and note the request."""
        began = perf_counter()
        self.failures = AuthenticationFailures.of(request.META)
        respond = partial(super().dispatch, request, *args, **kwargs)
        relies_on_copies = request.method in self.relies_on_copies
        response = self._respond_by_copies(respond) if relies_on_copies else respond()
        if response.status_code == HTTPStatus.UNAUTHORIZED:
            self.failures.count()
        self._wake_for_test_clock()
        self._note(request, response, seconds=perf_counter() - began)
        return response

    def _wake_for_test_clock(self) -> None:
        """Let a worker do what a write by a clock that is ahead has made due."""
        request = self.request
        if isinstance(request, ApiRequest) and request.is_ahead:
            client_id = request.test_client
            if client_id is not None and request.method not in SAFE_METHODS:
                wakeups.publish_test_clock(client_id, now=utc_now())

    def _note(self, request: HttpRequest, response: HttpResponse, *, seconds: float) -> None:
        # Not ``user``, which would authenticate once more after a failure.
        client = getattr(self.request, "_user", None)
        match = request.resolver_match
        if not isinstance(client, Client) or match is None:
            return
        request_log.note(
            Answered(
                client_id=client.id,
                request_id=request.request_id,
                method=request.method,
                route=match.route,
                status=response.status_code,
                took=timedelta(seconds=seconds),
                at=utc_now(),
                notification_id=match.kwargs.get("notification_id"),
                body=getattr(request, "raw_body", b""),
                answer=response.content if isinstance(response, Response) else b"",
            )
        )

    def _respond_by_copies(self, respond: partial[HttpResponse]) -> HttpResponse:
        try:
            return cache.relying_on_copies(respond)
        except Exception as error:
            # The versions couldn't be read, perhaps after a refusal that needed no other read.
            return self.finalize_response(self.request, self.handle_exception(error))

    def initialize_request(self, request: HttpRequest, *args: Any, **kwargs: Any) -> ApiRequest:
        """Return the request that the handler gets. It reads the body itself, without a parser."""
        return self.request_class(
            request,
            authenticators=self.get_authenticators(),
            negotiator=self.get_content_negotiator(),
        )

    def initial(self, request: ApiRequest, *args: Any, **kwargs: Any) -> None:
        """Authenticate the request, check its permission, count it, and check its parameters."""
        super().initial(request, *args, **kwargs)
        if request.META.get("QUERY_STRING") and request.method in self.query_parameters:
            reject_unknown(request.query_params, self.query_parameters[request.method])

    def handle_exception(self, exc: Exception) -> HttpResponse:
        """Return the problem. A blocked address gets 429, whatever else is wrong."""
        if isinstance(exc, cache.ChangedError):
            raise exc
        if not self.failures.is_checked:
            try:
                self.failures.raise_if_blocked()
            except ApiError as blocked:
                return super().handle_exception(blocked)
        return super().handle_exception(exc)


class InboxView(ApiView):
    """Base of the views that take an inbox token."""

    request_class = InboxRequest
    authentication_classes = (InboxAuthentication,)
    permission_classes = (OwnsInbox,)


class RefusedPath(ApiView):
    """Refuses a path that names no resource, or that another program may read as another's."""

    authentication_classes = ()
    permission_classes = ()

    @property
    def default_response_headers(self) -> dict[str, str]:
        """Nothing: there is no resource whose methods could be named."""
        return {}

    def initial(self, request: ApiRequest, *args: Any, **kwargs: Any) -> NoReturn:
        """Raise the problem that the middleware found."""
        raise kwargs["problem"]
