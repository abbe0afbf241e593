"""JSON responses."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import msgspec
from bson import Int64, ObjectId
from django.http import HttpResponse
from rest_framework.metadata import BaseMetadata
from rest_framework.negotiation import DefaultContentNegotiation
from rest_framework.request import Request


class Response(HttpResponse):
    """A response with a body of JSON, encoded by msgspec: IDs as hex digits, times as RFC 3339."""

    def __init__(
        self,
        data: Any = None,
        *,
        status: int = HTTPStatus.OK,
        headers: Mapping[str, str] | None = None,
        content_type: str = "application/json",
    ) -> None:
        """Encode ``data``. The body is empty for None."""
        super().__init__(encode(data), status=status, content_type=content_type, headers=headers)
        if data is None:
            del self.headers["Content-Type"]


def encode(data: Any) -> bytes:
    """Return ``data`` as JSON; nothing for None."""
    return b"" if data is None else msgspec.json.encode(data, enc_hook=_encode_value)


class JSONOnlyNegotiation(DefaultContentNegotiation):
    """Selects JSON whatever ``Accept`` names, so that any client can read a problem."""

    def select_renderer(
        self, request: Request, renderers: Any, format_suffix: str | None = None
    ) -> tuple[Any, str]:
        """Return the only renderer."""
        return renderers[0], renderers[0].media_type


class AllowOnly(BaseMetadata):
    """Answers OPTIONS with an empty body: the header Allow lists the methods."""

    def determine_metadata(self, request: Request, view: Any) -> None:
        """Return nothing: the OpenAPI document describes the resource."""


def _encode_value(value: Any) -> str | int:
    if isinstance(value, ObjectId):
        return str(value)
    if isinstance(value, Int64):
        return int(value)  # MongoDB returns numbers over 32 bits as Int64.
    raise TypeError(f"cannot be put into JSON: {type(value).__name__}")
