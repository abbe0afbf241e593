"""People as they are named in addresses of the API."""

from ..validation import has_control_characters
from .problems import not_found
from .schema import identifier

USER_ID = identifier("user_id", "The caller's own id of the person", at_most=128)


def known_id(user_id: str) -> str:
    """Return a user id; raises Problem 404 for what can be none: blank, or with NUL and such."""
    if not user_id.strip() or has_control_characters(user_id):
        raise not_found()
    return user_id
