"""Sending a notification once, whatever the network does."""

import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx

from .failures import NotificationRefused, ServiceUnavailable
from .pace import AGAIN, Pace, asked_wait
from .rest.client import AuthenticatedClient
from .rest.models.content_request import ContentRequest
from .rest.models.local_time import LocalTime
from .rest.models.notification_request import NotificationRequest
from .rest.models.notification_request_data import NotificationRequestData
from .rest.models.notification_view import NotificationView
from .rest.models.problem_view import ProblemView
from .rest.models.recipient_request import RecipientRequest

ACCEPTED = 202
TIMEOUT = httpx.Timeout(15.0, connect=3.0)
"""Of one try. The service answers within 12 seconds, or says that it cannot."""


class Notifier:
    """Sends notifications for an app. May be shared by threads; close it at the end.

    ``rest`` is for everything else: the functions in ``notifyproject_client.rest.api`` take it as
    their ``client``. ``transport``, ``sleep`` and ``clock`` are for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout: httpx.Timeout = TIMEOUT,
        pace: Pace | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._pace = pace or Pace()
        self._sleep = sleep
        self._clock = clock
        self.rest = AuthenticatedClient(
            base_url=url.rstrip("/"),
            token=key,
            timeout=timeout,
            httpx_args={"transport": transport} if transport else {},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self.rest.get_httpx_client().close()

    def notify(
        self,
        type_slug: str,
        *,
        email: str | None = None,
        phone: str | None = None,
        user_id: str | None = None,
        recipient: RecipientRequest | None = None,
        channels: Sequence[str] | None = None,
        data: Mapping[str, Any] | None = None,
        content: ContentRequest | None = None,
        priority: str | None = None,
        entity_id: str | None = None,
        external_id: str | None = None,
        scheduled_at: datetime | None = None,
        scheduled_local: LocalTime | None = None,
        event_at: datetime | None = None,
        ttl: int | None = None,
        expires_at: datetime | None = None,
        max_retries: int | None = None,
        idempotency_key: str | None = None,
    ) -> NotificationView:
        """Send a notification of a registered type to a person, and return it as accepted.

        ``user_id`` alone is enough for a registered person; ``email`` and ``phone`` are short for a
        ``recipient``. The others are the fields of a request. Errors: see ``send``.
        """
        given = {
            "user_id": user_id,
            "recipient": recipient or _recipient(email, phone),
            "channels": list(channels) if channels is not None else None,
            "data": NotificationRequestData.from_dict(data) if data is not None else None,
            "content": content,
            "priority": priority,
            "entity_id": entity_id,
            "external_id": external_id,
            "scheduled_at": scheduled_at,
            "scheduled_local": scheduled_local,
            "event_at": event_at,
            "ttl": ttl,
            "expires_at": expires_at,
            "max_retries": max_retries,
        }
        fields: dict[str, Any] = {name: v for name, v in given.items() if v is not None}
        request = NotificationRequest(type_=type_slug, **fields)
        return self.send(request, idempotency_key=idempotency_key)

    def send(
        self, request: NotificationRequest, *, idempotency_key: str | None = None
    ) -> NotificationView:
        """Send a notification and return it as accepted.

        Every try has the same Idempotency-Key, so that however many of them arrive, one
        notification is made. With a key of your own, which you have stored, that holds even if
        your program ends in between and sends it again.

        Raises NotificationRefused if it is not valid or not allowed, ServiceUnavailable if no
        try was answered for good in the time there is.
        """
        key = idempotency_key or uuid.uuid4().hex
        began = self._clock()
        tried = 0
        while True:
            tried += 1
            answer = self._try(request, key)
            if isinstance(answer, NotificationView):
                return answer
            failure, asked = answer
            chance = secrets.randbelow(1000) / 1000
            wait = self._pace.wait(tried=tried, asked=asked, chance=chance)
            left = self._pace.within - (self._clock() - began)
            if tried >= self._pace.tries or wait > left:
                raise failure
            self._sleep(wait)

    def _try(
        self, request: NotificationRequest, key: str
    ) -> NotificationView | tuple[ServiceUnavailable, float | None]:
        """Send once. Return the accepted notification, or the error and the seconds to wait."""
        try:
            response = self.rest.get_httpx_client().post(
                "/api/v1/notifications",
                json=request.to_dict(),
                headers={"Idempotency-Key": key},
                follow_redirects=False,
            )
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise
        except httpx.TransportError as error:
            reason = f"The service was not reached: {type(error).__name__}."
            failure = ServiceUnavailable(reason, idempotency_key=key)
            failure.__cause__ = error
            return failure, None
        return self._read(response, key)

    def _read(
        self, response: httpx.Response, key: str
    ) -> NotificationView | tuple[ServiceUnavailable, float | None]:
        """Return what an answer means; raises NotificationRefused."""
        if response.status_code == ACCEPTED:
            try:
                return NotificationView.from_dict(response.json())
            except (ValueError, KeyError, TypeError) as error:
                reason = "The answer is none of the service's, or of a later version of it."
                raise ServiceUnavailable(reason, idempotency_key=key, status=202) from error
        problem = _problem(response)
        cause = f"{problem.code}: {problem.detail}" if problem else "no problem document"
        reason = f"{response.status_code} {cause}"
        if response.status_code not in AGAIN:
            raise NotificationRefused(
                reason, idempotency_key=key, status=response.status_code, problem=problem
            )
        failure = ServiceUnavailable(
            reason, idempotency_key=key, status=response.status_code, problem=problem
        )
        return failure, asked_wait(response.headers, now=datetime.now(UTC))


def _recipient(email: str | None, phone: str | None) -> RecipientRequest | None:
    """Return whom to reach at these addresses; None without any."""
    given: dict[str, Any] = {"email": email, "phone": phone}
    addresses = {name: address for name, address in given.items() if address is not None}
    return RecipientRequest(**addresses) if addresses else None


def _problem(response: httpx.Response) -> ProblemView | None:
    """Return the problem an answer is; None for a proxy's page."""
    try:
        return ProblemView.from_dict(response.json())
    except (ValueError, KeyError, TypeError):
        return None
