"""Errors of the notifier. No error contains the API key or the content of a notification."""

from .rest.models.problem_view import ProblemView


class NotificationError(Exception):
    """The notification isn't known to be accepted.

    Another call with ``idempotency_key`` creates no second notification. ``status`` is that of the
    last response, None without one; ``problem`` is its problem document, None without one.
    """

    def __init__(
        self,
        message: str,
        *,
        idempotency_key: str,
        status: int | None = None,
        problem: ProblemView | None = None,
    ) -> None:
        super().__init__(message)
        self.idempotency_key = idempotency_key
        self.status = status
        self.problem = problem

    @property
    def code(self) -> str | None:
        """The problem code, such as ``validation_failed``."""
        return self.problem.code if self.problem else None


class NotificationRejectedError(NotificationError):
    """The service rejects the request, and will reject it again."""


class ServiceUnavailableError(NotificationError):
    """No attempt got a final response, and one may have been accepted. Retry with the same key."""
