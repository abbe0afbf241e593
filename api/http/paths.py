"""Paths and their parameters, described and checked."""

from collections.abc import Mapping
from typing import Any, TypeVar
from urllib.parse import unquote_to_bytes, urlsplit

from bson import ObjectId
from django.http import HttpRequest
from drf_spectacular.utils import OpenApiParameter

from domain.identifiers import find_identifier_fault, has_ambiguous_segment
from notifications.validation import FieldProblem

from .fields import EXAMPLE_ID, OBJECT_ID_PATTERN
from .problems import NOT_FOUND, ApiError, validation_failed

T = TypeVar("T")


def path_parameter(
    name: str, description: str, *, example: str, max_length: int = 64, pattern: str | None = None
) -> OpenApiParameter:
    """Return a path parameter of 1 to ``max_length`` characters."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": max_length}
    if pattern is not None:
        schema["pattern"] = f"^{pattern}$"
    schema["examples"] = [example]
    return OpenApiParameter(name, schema, OpenApiParameter.PATH, description=description)


def object_id_parameter(name: str, *, example: str = EXAMPLE_ID) -> OpenApiParameter:
    """Return a path parameter that is a MongoDB ID."""
    return path_parameter(name, "24 hex digits", example=example, pattern=OBJECT_ID_PATTERN)


NOTIFICATION_ID = object_id_parameter("notification_id")
USER_ID = path_parameter("user_id", "Your own id of the recipient", example="ada", max_length=128)


def found_or_404(found: T | None) -> T:
    """Return what was found. Raises ApiError 404 for None."""
    if found is None:
        raise NOT_FOUND.error()
    return found


def object_id_or_404(text: str) -> ObjectId:
    """Return a MongoDB ID. Raises ApiError 404 if the text isn't one."""
    if not ObjectId.is_valid(text):
        raise NOT_FOUND.error()
    return ObjectId(text)


def user_id_or_404(user_id: str) -> str:
    """Return a user ID. Raises ApiError 404 if the text can't be one."""
    if find_identifier_fault(user_id) is not None:
        raise NOT_FOUND.error()
    return user_id


def new_user_id(user_id: str) -> str:
    """Return a user ID that may be stored. Raises ApiError 422 if the text can't be one."""
    if (fault := find_identifier_fault(user_id)) is not None:
        raise validation_failed([FieldProblem("", fault.code, fault.detail)])
    return user_id


def check_spelling(request: HttpRequest, parameters: Mapping[str, str]) -> None:
    """Raise ApiError 404 for a path that another program may read as another resource's.

    A slash inside of a parameter arrives decoded, as one more segment. A byte that isn't UTF-8
    arrives as the text of its escape, which may be an identifier of its own.
    """
    with_slash = next((value for value in parameters.values() if "/" in value), "")
    if with_slash and has_ambiguous_segment(with_slash):
        raise unknown_path(request.path)
    # The path as the client sent it. Not every server passes it on.
    raw = request.META.get("RAW_URI", "")
    if "%" not in raw and raw.isascii():
        return
    path = raw.partition("?")[0] if raw.startswith("/") else urlsplit(raw).path
    try:
        unquote_to_bytes(path.encode("latin-1")).decode()
    except UnicodeError:
        raise NOT_FOUND.error("The path isn't valid UTF-8.") from None
    if _has_escaped_slash(path, request, with_slash):
        raise NOT_FOUND.error("No identifier contains a slash, escaped (`%2F`) or not.")


def _has_escaped_slash(path: str, request: HttpRequest, last: str) -> bool:
    """Return whether a path has an escaped slash before its last parameter ``last``."""
    count = request.path[: len(request.path) - len(last)].count("/")
    return any("%2f" in segment.lower() for segment in path.split("/", count)[: count + (not last)])


def unknown_path(path: str) -> ApiError:
    """Return the 404 for a path without a resource."""
    if path.endswith("/"):
        return NOT_FOUND.error("No path of the API ends with a slash.")
    if has_ambiguous_segment(path.removeprefix("/")):
        return NOT_FOUND.error("The path has an empty segment, or one that is `.` or `..`.")
    return NOT_FOUND.error("The API has no such path.")
