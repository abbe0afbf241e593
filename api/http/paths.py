"""Path parameters, described and checked."""

from typing import Any, TypeVar

from bson import ObjectId
from drf_spectacular.utils import OpenApiParameter

from notifications.validation import has_control_characters

from .fields import EXAMPLE_ID, OBJECT_ID_PATTERN
from .problems import NOT_FOUND

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
    """Return a path parameter that is a MongoDB id."""
    return path_parameter(name, "24 hex digits", example=example, pattern=OBJECT_ID_PATTERN)


NOTIFICATION_ID = object_id_parameter("notification_id")
USER_ID = path_parameter("user_id", "Your own id of the recipient", example="ada", max_length=128)


def found_or_404(found: T | None) -> T:
    """Return what was found; raises ApiError 404 for None."""
    if found is None:
        raise NOT_FOUND.error()
    return found


def object_id_or_404(text: str) -> ObjectId:
    """Return a MongoDB id; raises ApiError 404 if the text isn't one."""
    if not ObjectId.is_valid(text):
        raise NOT_FOUND.error()
    return ObjectId(text)


def user_id_or_404(user_id: str) -> str:
    """Return a user id; raises ApiError 404 if it's blank or has control characters."""
    if not user_id.strip() or has_control_characters(user_id):
        raise NOT_FOUND.error()
    return user_id
