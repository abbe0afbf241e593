"""The ``Idempotency-Key`` header."""

import re
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from .problems import INVALID_IDEMPOTENCY_KEY, MISSING_IDEMPOTENCY_KEY
from .rendering import Response

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
KEY_PATTERN = re.compile(r"[!-~]{1,255}", re.ASCII)


def parameter(*, required: bool) -> OpenApiParameter:
    """Return the header's description in the OpenAPI document."""
    return OpenApiParameter(
        HEADER,
        {"type": "string", "pattern": f"^{KEY_PATTERN.pattern}$"},
        OpenApiParameter.HEADER,
        required=required,
        description="1 to 255 visible ASCII characters. A request with the same key and body is "
        "processed once.",
    )


def created(request: Request, view: Any, *, new_id: object, is_replayed: bool) -> Response:
    """Return 202 for a new object of the requested collection, with its URL."""
    headers = {"Location": f"{request.path.rstrip('/')}/{new_id}"}
    if is_replayed:
        headers[REPLAYED_HEADER] = "true"
    return Response(view, status=202, headers=headers)


def optional_key(request: Request) -> str | None:
    """Return the request's idempotency key, if any. Raises ApiError 400 if it's invalid."""
    key = request.headers.get(HEADER)
    if key is not None and not KEY_PATTERN.fullmatch(key):
        raise INVALID_IDEMPOTENCY_KEY.error()
    return key


def required_key(request: Request) -> str:
    """Return the request's idempotency key. Raises ApiError 400 if it's missing or invalid."""
    key = optional_key(request)
    if key is None:
        raise MISSING_IDEMPOTENCY_KEY.error()
    return key
