"""The header by which a repeated request is recognised."""

import re
from typing import Any

from drf_spectacular.utils import OpenApiParameter

from .problems import bad_request

HEADER = "Idempotency-Key"
REPLAYED_HEADER = "Idempotent-Replayed"
KEY_PATTERN = re.compile(r"[\x21-\x7e]{1,255}", re.ASCII)


def parameter(*, required: bool) -> OpenApiParameter:
    """Return the header's place in the schema."""
    return OpenApiParameter(
        HEADER,
        str,
        OpenApiParameter.HEADER,
        required=required,
        description="1 to 255 visible ASCII characters; the same key and body are one request.",
    )


def optional_key(request: Any) -> str | None:
    """Return the key a request comes with, None without one; raises ApiError 400 if it is none."""
    key: str | None = request.headers.get(HEADER)
    if key is not None and not KEY_PATTERN.fullmatch(key):
        raise bad_request(
            "invalid_idempotency_key", "Idempotency-Key is 1 to 255 visible ASCII characters."
        )
    return key


def required_key(request: Any) -> str:
    """Return the key a request comes with; raises ApiError 400 if it has none."""
    key = optional_key(request)
    if key is None:
        raise bad_request("missing_idempotency_key", "This needs the header Idempotency-Key.")
    return key
