"""Checks of a provider's values by a real call that sends no message, for the set-up wizard."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from domain.errors import FailureCode, ProviderError, TransientError
from notifyproject.platform import event_loop

from . import http_client
from .http import Request, Response

TIMEOUT = 10.0
"""Seconds for each step of a call."""


class CheckError(Exception):
    """A provider didn't accept the values. The message has the reason and no secret."""


class RejectedError(CheckError):
    """The provider responded, and rejected the values."""


class UnreachableError(CheckError):
    """There is no connection to the provider."""


class TimedOutError(CheckError):
    """The provider didn't respond in time."""


def call(
    name: str, url: str, body: Mapping[str, Any] | None, *, authorization: str, timeout: float
) -> int:
    """Return the status of a response. Raises CheckError."""
    request = Request(
        url=url,
        body=None if body is None else msgspec.json.encode(body),
        headers={"Authorization": authorization, "Content-Type": "application/json"},
        timeout=timeout,
    )
    return fetch(name, request).status


def fetch(name: str, request: Request) -> Response:
    """Return the response of a provider to a request. Raises CheckError."""
    with explained(name):
        return event_loop.run(http_client.send(request))


@contextmanager
def explained(name: str) -> Iterator[None]:
    """Raise an error of a provider's client as a CheckError."""
    try:
        yield
    except ProviderError as error:
        # The fetch of a token has its own error, and the transport's as the cause.
        cause = error.__cause__ if isinstance(error.__cause__, TransientError) else error
        if isinstance(cause, TransientError):
            if cause.code is FailureCode.TIMEOUT:
                raise TimedOutError(f"{name} didn't respond in time.") from error
            raise UnreachableError(f"No connection to {name}. {cause.reason}") from error
        raise RejectedError(error.reason) from error
