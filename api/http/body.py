"""Strict JSON: what a body may be, before anybody asks what it means."""

import json
import math
import re
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, NoReturn, TypeVar

import msgspec
from django.http import HttpRequest
from rest_framework.exceptions import UnsupportedMediaType
from rest_framework.parsers import BaseParser

from notifications import validation
from notifications.validation import FieldProblem, ProblemCollector, pointer_token

from .problems import ApiError, bad_request, validation_failed

BODY_ERRORS = (400, 413, 415, 422)
"""Statuses of a body that is malformed, too large, of another media type, or invalid."""
MAX_BYTES = 256 * 1024
MAX_BYTES_BULK = 4 * 1024 * 1024
MAX_DEPTH = 20
MAX_PROPERTIES = 500
"""Of one notification, at all levels together."""
MAX_DIGITS = 400
"""A longer number is an attack on the parser; a double has at most 309 before the point."""
BOM = b"\xef\xbb\xbf"


# Possessive, so that nothing is remembered for stepping back; one without an end reaches to the end
# of the body, so that no part of it is read twice.
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?', re.DOTALL)
_LONG_NUMBER = re.compile(rb"\d{%d}" % MAX_DIGITS)
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`", re.DOTALL)
_REQUIRED = re.compile(r"Object missing required field `(\w+)`")
_PATH = re.compile(r"(.*?)(?: - at `\$(.*)`)?", re.DOTALL)
_BRACKETS = re.compile(rb"[\[\]{}]")
T = TypeVar("T")


class StrictJSONParser(BaseParser):
    """For DRF's negotiation only: views call :func:`read_body` and :func:`decode`."""

    media_type = "application/json"

    def parse(self, stream: Any, media_type: Any = None, parser_context: Any = None) -> NoReturn:
        """Refuse: nothing reads ``request.data``."""
        raise AssertionError("views read bodies by read_body()")


def read_body(request: HttpRequest, *, limit: int = MAX_BYTES) -> bytes:
    """Return a JSON request's body; raises ApiError 400, 413 or UnsupportedMediaType."""
    if (request.META.get("CONTENT_LENGTH") or "0") == "0" and not _is_chunked(request):
        raise _empty_body()
    _check_media_type(request)
    body = read_raw(request, limit=limit)
    if not body.strip():
        raise _empty_body()
    return body


def read_raw(request: HttpRequest, *, limit: int) -> bytes:
    """Return a body of any kind; raises ApiError 400 or 413.

    One without a length (chunked) is read up to the limit and no further. The connection may break
    off meanwhile, or the chunks may be none: servers raise an OSError for both.
    """
    length = request.META.get("CONTENT_LENGTH") or ""
    if length and (not length.isascii() or not length.isdigit()):
        raise bad_request("malformed", "Content-Length is not a number.")
    if length and int(length[:20]) > limit:
        raise _too_large(limit)
    stream = request.META["wsgi.input"] if _is_chunked(request) else request
    try:
        body = stream.read(limit + 1)
    except OSError:
        raise bad_request("incomplete_body", "The body ended before its end.") from None
    if len(body) > limit:
        raise _too_large(limit)
    return body


def decode(raw: bytes, *, max_depth: int = MAX_DEPTH) -> dict[str, Any]:
    """Return the JSON object a body is; raises ApiError.

    400 for what is not exactly one JSON text in UTF-8 with unique keys and sane depth and numbers;
    422 for one that is no object, or holds texts and numbers the store cannot keep.
    """
    text = _decode_utf8(raw)
    without_strings = _STRING.sub(b"", raw)
    if _measure_depth(without_strings) > max_depth:
        raise bad_request("too_deep", f"JSON nested deeper than {max_depth} levels.")
    if _LONG_NUMBER.search(without_strings):
        raise bad_request("number_too_long", f"A number has {MAX_DIGITS} digits or more.")
    try:
        value = json.loads(
            text,
            object_pairs_hook=_reject_duplicate_keys,
            parse_float=_parse_float,
            parse_constant=_reject_constant,
        )
    except json.JSONDecodeError as error:
        raise bad_request(
            "malformed_json", f"Not valid JSON at line {error.lineno}, column {error.colno}."
        ) from None
    if not isinstance(value, dict):
        raise validation_failed([FieldProblem("", "wrong_type", "Expected a JSON object.")])
    return value


def measure_depth(raw: bytes) -> int:
    """Return how deep a JSON text is nested."""
    return _measure_depth(_STRING.sub(b"", raw))


def check_values(value: Mapping[str, Any], *, pointer: str = "") -> None:
    """Raise ApiError 422 for texts, numbers and keys in ``value`` that cannot be kept."""
    problems = ProblemCollector()
    count = validation.check_storable(value, pointer, problems, in_data=False)
    if count > MAX_PROPERTIES:
        problems.add(pointer, "too_many_properties", f"Over {MAX_PROPERTIES} properties in all.")
    if problems.problems:
        raise validation_failed(problems.problems)


def convert(value: Mapping[str, Any], structure: type[T], *, pointer: str = "") -> T:
    """Return ``value`` as a strict structure; raises ApiError 422 with a pointer."""
    try:
        return msgspec.convert(value, structure, strict=True)
    except msgspec.ValidationError as error:
        raise validation_failed([_field_problem(str(error), pointer)]) from None


def _is_chunked(request: HttpRequest) -> bool:
    return request.META.get("HTTP_TRANSFER_ENCODING", "").lower() == "chunked"


def _check_media_type(request: HttpRequest) -> None:
    charset = (request.content_params or {}).get("charset", "utf-8").lower()
    encoding = request.headers.get("Content-Encoding", "identity").lower()
    is_json = request.content_type == "application/json"
    if not is_json or charset not in ("utf-8", "utf8") or encoding != "identity":
        raise UnsupportedMediaType(request.content_type or "")


def _decode_utf8(raw: bytes) -> str:
    if raw.startswith(BOM):
        raise bad_request("byte_order_mark", "The body begins with a byte order mark.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError:
        raise bad_request("not_utf8", "The body is not valid UTF-8.") from None


def _measure_depth(without_strings: bytes) -> int:
    depth = deepest = 0
    for bracket in _BRACKETS.findall(without_strings):
        depth += 1 if bracket in b"[{" else -1
        deepest = max(deepest, depth)
    return deepest


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise bad_request("duplicate_key", "An object has the same key twice.")
    return result


def _parse_float(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise bad_request("number_too_large", "A number is larger than a double can be.")
    return number


def _reject_constant(_name: str) -> NoReturn:
    raise bad_request("malformed_json", "NaN and Infinity are not JSON.")


def _empty_body() -> ApiError:
    return bad_request("empty_body", "The body is empty: send a JSON object.")


def _too_large(limit: int) -> ApiError:
    return ApiError(
        status=HTTPStatus.REQUEST_ENTITY_TOO_LARGE,
        code="too_large",
        detail=f"The body is larger than {limit // 1024} KB.",
    )


def _field_problem(message: str, prefix: str) -> FieldProblem:
    """Return msgspec's complaint about one field as a problem."""
    match = _PATH.fullmatch(message)
    text, path = (match[1], match[2] or "") if match else (message, "")
    pointer = prefix + re.sub(r"\[(\d+)\]", r"/\1", path.replace(".", "/"))
    if unknown := _UNKNOWN_FIELD.fullmatch(text):
        name = f"{pointer}/{pointer_token(unknown[1])}"
        return FieldProblem(name, "unknown_field", "There is no such field.")
    if required := _REQUIRED.fullmatch(text):
        return FieldProblem(f"{pointer}/{required[1]}", "required", "The field is required.")
    code = "out_of_range" if "length" in text or "int` " in text else "wrong_type"
    return FieldProblem(pointer, code, f"{text}.")
