"""The check that an operation is called with a test key."""

from ..http.problems import LIVE_KEY
from ..http.requests import ClientRequest


def require_test_key(request: ClientRequest) -> None:
    """Raise ApiError 403 ``live_key`` for a live key."""
    if not request.client.is_test:
        raise LIVE_KEY.error()
