"""Requests by the pooled HTTP client, to servers that a test has made."""

import pytest

from notifications.channels import http, transfers
from notifications.errors import TransientError
from tests.waiting import LIMIT

from . import wire


def post(url: str, *, timeout: float = LIMIT, body: bytes = b"{}") -> http.Response:
    """Post some JSON with a key."""
    return transfers.post(
        f"{url}/send",
        body=body,
        headers={"Authorization": "Bearer secret", "Content-Type": "application/json"},
        timeout=timeout,
    )


def failure(handler: wire.Handler, *, timeout: float = LIMIT) -> TransientError:
    """Return how a request to such a server fails."""
    with wire.serving(handler) as server, pytest.raises(TransientError) as error:
        post(server.url, timeout=timeout)
    return error.value
