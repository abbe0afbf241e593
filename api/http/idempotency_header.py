"""The ``Idempotency-Key`` header."""

import re
from typing import Any

from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from domain.identifiers import find_identifier_fault
from notifications.validation import FieldProblem

from .paths import path_parameter
from .problems import INVALID_IDEMPOTENCY_KEY, MISSING_IDEMPOTENCY_KEY, validation_failed
from .rendering import Response

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
KEY_PATTERN = re.compile(r"[!-~]{1,255}", re.ASCII)
IN_PATH = path_parameter(
    "key",
    "An idempotency key without a slash",
    example="appointment-7",
    max_length=255,
    pattern="[!-.0-~]+",
)


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
    collection = request.path.partition("/by-key/")[0].rstrip("/")
    headers = {"Location": f"{collection}/{new_id}"}
    if is_replayed:
        headers[REPLAYED_HEADER] = "true"
    return Response(view, status=202, headers=headers)


def optional_key(request: Request) -> str | None:
    """Return the request's idempotency key, if any. Raises ApiError 400 if it's invalid."""
    key = request.headers.get(HEADER)
    if key is not None and not KEY_PATTERN.fullmatch(key):
        raise INVALID_IDEMPOTENCY_KEY.error()
    return key


def key_in_path(key: str) -> str:
    """Return an idempotency key of a path. Raises ApiError 422 if it's invalid."""
    if (fault := find_identifier_fault(key)) is not None:
        raise validation_failed([FieldProblem("", fault.code, fault.detail)])
    if not KEY_PATTERN.fullmatch(key):
        reason = "A key is 1 to 255 visible ASCII characters."
        raise validation_failed([FieldProblem("", "invalid_key", reason)])
    return key


def required_key(request: Request) -> str:
    """Return the request's idempotency key. Raises ApiError 400 if it's missing or invalid."""
    key = optional_key(request)
    if key is None:
        raise MISSING_IDEMPOTENCY_KEY.error()
    return key
