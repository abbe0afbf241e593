"""Reads request bodies: size, media type, strict JSON, and structure."""

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NoReturn, TypeVar

import msgspec
from django.http import HttpRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.request import Request

from notifications import validation
from notifications.validation import MAX_PROBLEMS, FieldProblem, ProblemCollector

from .field_errors import find_errors
from .field_hints import HintBudget
from .partial import further_problems
from .problems import (
    BAD_REQUEST,
    BYTE_ORDER_MARK,
    DUPLICATE_KEY,
    EMPTY_BODY,
    INCOMPLETE_BODY,
    MALFORMED_JSON,
    NOT_UTF8,
    NUMBER_TOO_LARGE,
    NUMBER_TOO_LONG,
    TOO_DEEP,
    TOO_LARGE,
    validation_failed,
)

MAX_BYTES = 256 * 1024
MAX_BYTES_BULK = 4 * 1024 * 1024
MAX_DEPTH = 20
MAX_PROPERTIES = 500  # Of one notification, over all levels
MAX_DIGITS = 400
"""Such a long number is an attack: a double has at most 309 digits before the point."""
BOM = b"\xef\xbb\xbf"
# Possessive quantifiers never backtrack. An unterminated string matches to the end of the body, so
# no part of the body is scanned twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_LONG_NUMBER = re.compile(rb"\d{%d}" % MAX_DIGITS)
_BRACKETS = re.compile(rb"[\[\]{}]")
T = TypeVar("T")
Check = Callable[[T], object]
"""Raises InvalidRequestError or ApiError with the problems of a body's values."""


def read_request(
    request: Request, structure: type[T], *, limit: int = MAX_BYTES, check: Check[T] | None = None
) -> T:
    """Return the JSON body of a view's request as a structure.

    Raises UnsupportedMediaType, or ApiError: 400 for malformed JSON, 413 over ``limit`` bytes, 422
    for invalid fields, with those that ``check`` finds in a body of the wrong structure.
    """
    return convert(read_json(request, limit=limit), structure, check=check)


def read_json(request: Request, *, limit: int = MAX_BYTES) -> dict[str, Any]:
    """Return the JSON object of a view's request. Raises what :func:`read_request` raises."""
    value = decode(read_body(request._request, limit=limit))
    check_values(value)
    return value


def read_body(request: HttpRequest, *, limit: int = MAX_BYTES) -> bytes:
    """Return a JSON request's body. Raises ApiError 400 or 413, or UnsupportedMediaType."""
    if not has_body(request):
        raise EMPTY_BODY.error()
    _check_media_type(request)
    body = read_raw(request, limit=limit)
    if not body.strip():
        raise EMPTY_BODY.error()
    return body


def has_body(request: HttpRequest) -> bool:
    """Return whether the headers announce a body."""
    return (request.META.get("CONTENT_LENGTH") or "0") != "0" or _is_chunked(request)


def read_raw(request: HttpRequest, *, limit: int) -> bytes:
    """Return a body of any media type. Raises ApiError 400 or 413."""
    # A request that starts again reads its body again, but the stream only once.
    if (known := getattr(request, "raw_body", None)) is not None:
        return bytes(known)
    # A chunked body has no length: it's read up to the limit. Servers raise an OSError if the
    # connection breaks or the chunks are malformed.
    length = request.META.get("CONTENT_LENGTH") or ""
    if length and (not length.isascii() or not length.isdigit()):
        raise BAD_REQUEST.error("Content-Length isn't a number.")
    if length and int(length[:20]) > limit:
        raise TOO_LARGE.error(kilobytes=limit // 1024)
    stream = request.META["wsgi.input"] if _is_chunked(request) else request
    try:
        body: bytes = stream.read(limit + 1)
    except OSError:
        raise INCOMPLETE_BODY.error() from None
    if len(body) > limit:
        raise TOO_LARGE.error(kilobytes=limit // 1024)
    request.raw_body = body
    return body


def decode(raw: bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Return the JSON object in a body. Raises ApiError."""
    # 400 unless it's one JSON text in UTF-8 with unique keys and bounded depth and numbers; 422 if
    # it isn't an object.
    text = _decode_utf8(raw)
    without_strings = _STRING.sub(b"", raw)
    if _measure_depth(without_strings) > max_depth:
        raise TOO_DEEP.error(levels=max_depth)
    if _LONG_NUMBER.search(without_strings):
        raise NUMBER_TOO_LONG.error(digits=MAX_DIGITS)
    try:
        value = json.loads(
            text,
            object_pairs_hook=_reject_duplicate_keys,
            parse_float=_parse_float,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise MALFORMED_JSON.error(line=error.lineno, column=error.colno) from None
    if not isinstance(value, dict):
        raise validation_failed([FieldProblem("", "wrong_type", "Expected a JSON object.")])
    return value


def measure_depth(raw: bytes) -> int:
    """Return the nesting depth of a JSON text."""
    return _measure_depth(_STRING.sub(b"", raw))


def check_values(value: Mapping[str, Any], *, pointer: str = "") -> None:
    """Raise ApiError 422 for texts, numbers and keys that can't be stored."""
    problems = ProblemCollector()
    if validation.check_storable(value, pointer, problems, in_data=False) > MAX_PROPERTIES:
        problems.add(pointer, "too_many_properties", f"Over {MAX_PROPERTIES} properties in total.")
    if problems.problems:
        raise validation_failed(problems.problems)


def convert(
    value: Mapping[str, Any],
    structure: type[T],
    *,
    pointer: str = "",
    check: Check[T] | None = None,
    budget: HintBudget | None = None,
) -> T:
    """Convert without coercion of types. Raises ApiError 422 with every invalid field.

    The pointers of the fields are below ``pointer``. If the value has the wrong structure,
    ``check`` is called with what is right of it, so that its problems are reported, too.
    """
    try:
        return msgspec.convert(value, structure, strict=True)
    except msgspec.ValidationError:
        errors = find_errors(value, structure, pointer=pointer, budget=budget)
        others = [] if check is None else further_problems(value, errors, structure, check)
        raise validation_failed([*errors, *others][:MAX_PROBLEMS]) from None


def _is_chunked(request: HttpRequest) -> bool:
    encoding: str = request.META.get("HTTP_TRANSFER_ENCODING", "")
    return encoding.lower() == "chunked"


def _check_media_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    is_json = request.content_type == "application/json"
    if not is_json or charset not in ("utf-8", "utf8") or encoding != "identity":
        raise UnsupportedMediaType(request.content_type or "")


def _decode_utf8(raw: bytes) -> str:
    if raw.startswith(BOM):
        raise BYTE_ORDER_MARK.error()
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise NOT_UTF8.error() from None


def _measure_depth(without_strings: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKETS.findall(without_strings):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise DUPLICATE_KEY.error()
    return result


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise NUMBER_TOO_LARGE.error()
    return number


def _reject_constant(_name: str) -> NoReturn:
    raise MALFORMED_JSON.error("Invalid JSON: NaN or Infinity.")
