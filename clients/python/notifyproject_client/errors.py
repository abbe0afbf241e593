"""Errors of the client. No error contains the API key or the content of a notification."""

from .rest.models.problem_view import ProblemView


class NotificationError(Exception):
    """The service rejected a request, or its effect is unknown.

    The text names the invalid fields. Calls with the same ``idempotency_key`` have one effect at
    most; it is None for an operation without one. ``status``, ``problem`` (a problem document), and
    ``retry_after`` (seconds) are those of the last response; None if there is none.
    """

    def __init__(
        self,
        message: str,
        *,
        idempotency_key: str | None = None,
        status: int | None = None,
        problem: ProblemView | None = None,
        retry_after: float | None = None,
    ) -> None:
        errors = problem.errors if problem else ()
        fields = [f"{error.pointer or 'body'}: {error.detail}" for error in errors]
        super().__init__(" ".join([message, *fields]))
        self.idempotency_key = idempotency_key
        self.status = status
        self.problem = problem
        self.retry_after = retry_after

    @property
    def code(self) -> str | None:
        """The problem document's code, such as ``validation_failed``; None if there is none."""
        return self.problem.code if self.problem else None


class NotificationRejectedError(NotificationError):
    """The service rejected the request, and would reject a retry."""


class ServiceUnavailableError(NotificationError):
    """No attempt got a clear response, so one may have had its effect. Retry with the same key."""


class InvalidCallbackError(ValueError):
    """A callback isn't from the service: its signature or its time is wrong."""
