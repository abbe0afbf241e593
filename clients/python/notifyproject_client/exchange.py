"""One call of the service without I/O: its request, and what follows a response."""

import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Generic, Protocol, TypeVar

import httpx

from .errors import NotificationRejectedError, ServiceUnavailableError
from .rest.models.problem_view import ProblemView
from .retry import RETRYABLE_STATUSES, RetryPolicy, parse_retry_after

IDEMPOTENCY_KEY = "Idempotency-Key"
FOREIGN = "The response is from another program, or from a later version of the service."
View = TypeVar("View")
Item = TypeVar("Item")
Item_co = TypeVar("Item_co", covariant=True)


class Page(Protocol[Item_co]):
    """A page of a list, as generated functions return it."""

    @property
    def results(self) -> Sequence[Item_co]:
        """The items."""

    @property
    def next_(self) -> str | None:
        """The cursor of the next page; None on the last."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call(Generic[View]):
    """A write that may be repeated: its response has the status ``accepted`` and is a ``View``."""

    method: str = "POST"
    path: str
    body: Mapping[str, Any]
    accepted: int
    view: Callable[[Any], View]
    idempotency_key: str | None = None

    @property
    def headers(self) -> dict[str, str]:
        """The headers of each attempt."""
        return {IDEMPOTENCY_KEY: self.idempotency_key} if self.idempotency_key else {}

    def read(self, response: httpx.Response) -> View | ServiceUnavailableError:
        """Return the view of an accepted response, or the error after which the call is repeated.

        Raises errors that are final.
        """
        if response.status_code == self.accepted:
            try:
                return self.view(response.json())
            except (ValueError, KeyError, TypeError) as error:
                raise ServiceUnavailableError(
                    FOREIGN,
                    idempotency_key=self.idempotency_key,
                    status=response.status_code,
                ) from error
        error = error_of(response, idempotency_key=self.idempotency_key)
        if isinstance(error, NotificationRejectedError):
            raise error
        return error


class Backoff:
    """Counts the attempts of one call."""

    def __init__(self, policy: RetryPolicy, clock: Callable[[], float]) -> None:
        self._policy, self._clock = policy, clock
        self._started, self._attempts = clock(), 0

    def delay_after(self, error: ServiceUnavailableError) -> float:
        """Return the seconds until the next attempt. Raises the error after the last."""
        self._attempts += 1
        delay = self._policy.delay(
            attempts=self._attempts,
            retry_after=error.retry_after,
            jitter=secrets.randbelow(1000) / 1000,
        )
        left = self._policy.max_seconds - (self._clock() - self._started)
        if self._attempts >= self._policy.max_attempts or delay > left:
            raise error
        return delay


def read_page(answer: Page[Item] | ProblemView | None) -> Page[Item]:
    """Return a page; a problem was raised before. Raises ServiceUnavailableError without one."""
    if answer is None or isinstance(answer, ProblemView):
        raise ServiceUnavailableError("The response isn't a list of the service.")
    return answer


def unreached(
    error: httpx.TransportError, *, idempotency_key: str | None = None
) -> ServiceUnavailableError:
    """Return the error of an attempt without a response. Raises those of a request of no server."""
    if isinstance(error, httpx.UnsupportedProtocol | httpx.LocalProtocolError):
        raise error
    unavailable = ServiceUnavailableError(
        f"Couldn't reach the service: {type(error).__name__}.", idempotency_key=idempotency_key
    )
    unavailable.__cause__ = error
    return unavailable


def error_of(
    response: httpx.Response, *, idempotency_key: str | None = None
) -> NotificationRejectedError | ServiceUnavailableError:
    """Return the error of a response that isn't a success."""
    problem = _problem(response)
    cause = f"{problem.code}: {problem.detail}" if problem else "no problem document"
    is_retryable = response.status_code in RETRYABLE_STATUSES
    return (ServiceUnavailableError if is_retryable else NotificationRejectedError)(
        f"{response.status_code} {cause}",
        idempotency_key=idempotency_key,
        status=response.status_code,
        problem=problem,
        retry_after=parse_retry_after(response.headers, now=datetime.now(UTC)),
    )


def raise_problem(response: httpx.Response) -> None:
    """Raise the error of a response that isn't a success; an event hook of ``httpx.Client``."""
    if not response.is_success:
        response.read()
        raise error_of(response, idempotency_key=response.request.headers.get(IDEMPOTENCY_KEY))


async def raise_problem_async(response: httpx.Response) -> None:
    """Do as :func:`raise_problem`; an event hook of ``httpx.AsyncClient``."""
    if not response.is_success:
        await response.aread()
        raise error_of(response, idempotency_key=response.request.headers.get(IDEMPOTENCY_KEY))


def _problem(response: httpx.Response) -> ProblemView | None:
    """Return a response's problem document; None if the body is something else."""
    try:
        return ProblemView.from_dict(response.json())
    except (ValueError, KeyError, TypeError):
        return None
