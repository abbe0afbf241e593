"""An id and a deadline for every request, and the right time."""

import re
import uuid
from collections.abc import Callable

import pymongo
import structlog
from django.http import HttpRequest, HttpResponse

from . import clock

HEADER = "X-Request-Id"
DATABASE_SECONDS = 12
"""A primary is elected within this time, or the caller is told to come again."""
_ACCEPTABLE = re.compile(r"[A-Za-z0-9._-]{8,64}", re.ASCII)


def request_id(given: str) -> str:
    """Return the caller's request id if it is a sane one, or else a new one."""
    return given if _ACCEPTABLE.fullmatch(given) else uuid.uuid4().hex


class RequestIdMiddleware:
    """Take the caller's request id if it is a sane one, make one if not.

    It is in the answer, in its problem, and in every log line the request causes.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        request.request_id = request_id(request.headers.get(HEADER, ""))
        with structlog.contextvars.bound_contextvars(request_id=request.request_id):
            response = self.get_response(request)
        response.headers[HEADER] = request.request_id
        return response


class DeadlineMiddleware:
    """Give up on the database after some seconds: a caller is told, not left hanging."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        with pymongo.timeout(DATABASE_SECONDS):
            return self.get_response(request)


class ClockMiddleware:
    """Right the clock before something is accepted: when it is due is told by ours."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer the request."""
        if request.method == "POST":
            clock.keep_right()
        return self.get_response(request)
