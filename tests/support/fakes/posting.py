"""Requests of the pooled HTTP client to test servers."""

import pytest

from domain.errors import TransientError
from providers import http, http_client
from tests.support.fakes import socket_server
from tests.support.waiting import LIMIT


def post(url: str, *, timeout: float = LIMIT, body: bytes = b"{}") -> http.Response:
    return http_client.post(
        f"{url}/send",
        body=body,
        headers={"Authorization": "Bearer secret", "Content-Type": "application/json"},
        timeout=timeout,
    )


def failure(handler: socket_server.Handler, *, timeout: float = LIMIT) -> TransientError:
    """Return the error of a request to this server."""
    with socket_server.serving(handler) as server, pytest.raises(TransientError) as error:
        post(server.url, timeout=timeout)
    return error.value
