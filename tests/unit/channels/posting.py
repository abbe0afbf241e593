"""Requests by the pooled HTTP client, to servers that a test has made."""

import pytest

from notifications.channels import http, transfers
from notifications.errors import TransientError

from . import wire

SHORT = 0.4
"""Deadline of requests that are to miss it."""


def post(url: str, *, timeout: float = 5.0, body: bytes = b"{}") -> http.Response:
    """Post some JSON with a key."""
    return transfers.post(
        f"{url}/send",
        body=body,
        headers={"Authorization": "Bearer secret", "Content-Type": "application/json"},
        timeout=timeout,
    )


def failure(handler: wire.Handler, *, timeout: float = 5.0) -> TransientError:
    """Return how a request to such a server fails."""
    with wire.serving(handler) as server, pytest.raises(TransientError) as error:
        post(server.url, timeout=timeout)
    return error.value
