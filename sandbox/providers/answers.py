"""Answers that providers share: refusals, and bodies of JSON or text."""

from collections.abc import Mapping
from typing import Any

import msgspec

from ..responses import ProviderResponse
from .base import IncomingRequest

JSON = {"Content-Type": "application/json; charset=utf-8"}
TEXT = {"Content-Type": "text/html; charset=utf-8"}


class RefusedError(Exception):
    """A request that the provider refuses whoever the recipient is. ``outcome`` names the error."""

    def __init__(self, outcome: str, response: ProviderResponse, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.response = response
        self.reason = reason


def json_response(status: int, body: Any, headers: Mapping[str, str] = {}) -> ProviderResponse:
    """Return a response with a body of JSON."""
    encoded = msgspec.json.encode(body)
    return ProviderResponse(status=status, body=encoded, headers={**JSON, **headers})


def text_response(status: int, text: str, headers: Mapping[str, str] = {}) -> ProviderResponse:
    """Return a response with a text as its body."""
    return ProviderResponse(status=status, body=text.encode(), headers={**TEXT, **headers})


def json_object(request: IncomingRequest) -> Mapping[str, Any] | None:
    """Return the body of a request if it is a JSON object, sent as JSON."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        return None
    try:
        body = request.json()
    except ValueError:
        return None
    return body if isinstance(body, dict) else None
