"""Why a notification was not accepted. No error holds the key of the API or what was to be said."""

from .rest.models.problem_view import ProblemView


class NotificationError(Exception):
    """It is not known to be accepted.

    ``idempotency_key`` is the key it was sent with: whoever sends it again with the same key never
    sends it twice. ``status`` is the last answer's, None without one; ``problem`` is what it said,
    None for a page of some proxy's.
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
        """What is wrong, for programs: ``validation_failed``, ``rate_limited``."""
        return self.problem.code if self.problem else None


class NotificationRefused(NotificationError):
    """The service does not take it, and will not if it is sent again as it is."""


class ServiceUnavailable(NotificationError):
    """No try was answered for good; one may have been accepted. Send it again with the same key."""
