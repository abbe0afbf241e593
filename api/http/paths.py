"""Path parameters, described and checked."""

from typing import Any

from drf_spectacular.utils import OpenApiParameter

from notifications.validation import has_control_characters

from .problems import not_found


def path_parameter(
    name: str, description: str, *, max_length: int = 64, pattern: str | None = None
) -> OpenApiParameter:
    """Return a parameter in the path, of at most so many characters."""
    schema: dict[str, Any] = {"type": "string", "minLength": 1, "maxLength": max_length}
    if pattern is not None:
        schema["pattern"] = f"^{pattern}$"
    return OpenApiParameter(name, schema, OpenApiParameter.PATH, description=description)


USER_ID = path_parameter("user_id", "The caller's own id of the person", max_length=128)


def user_id_or_404(user_id: str) -> str:
    """Return a user id; raises ApiError 404 for what can be none: blank, or with NUL and such."""
    if not user_id.strip() or has_control_characters(user_id):
        raise not_found()
    return user_id
