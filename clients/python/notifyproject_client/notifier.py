"""The notifier, which sends notifications with retries that create no duplicate."""

import secrets
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import httpx

from .errors import NotificationRejectedError, ServiceUnavailableError
from .rest.client import AuthenticatedClient
from .rest.models.content_request import ContentRequest
from .rest.models.local_time import LocalTime
from .rest.models.notification_recipient_request import NotificationRecipientRequest
from .rest.models.notification_request import NotificationRequest
from .rest.models.notification_view import NotificationView
from .rest.models.plan_request import PlanRequest
from .rest.models.problem_view import ProblemView
from .retry import RETRYABLE_STATUSES, RetryPolicy, parse_retry_after

ACCEPTED = 202
TIMEOUT = httpx.Timeout(15.0, connect=3.0)
"""The timeout of one attempt. The service responds or fails within 12 seconds."""


class Notifier:
    """Sends notifications with a client's API key. Thread-safe; close it at the end.

    For other operations, pass the attribute ``rest`` as ``client`` to a function in
    ``notifyproject_client.rest.api``. ``transport``, ``sleep``, and ``clock`` are for tests.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout: httpx.Timeout = TIMEOUT,
        retry: RetryPolicy | None = None,
        transport: httpx.BaseTransport | None = None,
        sleep: Callable[[float], None] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._retry = retry or RetryPolicy()
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
        recipient: NotificationRecipientRequest | Mapping[str, Any] | None = None,
        channels: Sequence[str] | None = None,
        plan: PlanRequest | Mapping[str, Any] | None = None,
        data: Mapping[str, Any] | None = None,
        content: ContentRequest | Mapping[str, Any] | None = None,
        priority: str | None = None,
        entity_id: str | None = None,
        external_id: str | None = None,
        source: str | None = None,
        scheduled_at: datetime | None = None,
        scheduled_local: LocalTime | Mapping[str, Any] | None = None,
        event_at: datetime | None = None,
        ttl: int | None = None,
        expires_at: datetime | None = None,
        max_retries: int | None = None,
        ignore_limits: bool | None = None,
        idempotency_key: str | None = None,
    ) -> NotificationView:
        """Send a notification of a registered type; return the accepted notification.

        For a registered recipient, ``user_id`` is enough. ``email`` and ``phone`` are short for
        ``recipient``. The others are fields of NotificationRequest. An object can be a dict, such
        as ``content={"subject": "Paid"}``. Raises as ``send`` does.
        """
        given = {
            "user_id": user_id,
            "recipient": recipient or _addresses(email, phone),
            "channels": [channels] if isinstance(channels, str) else channels,
            "plan": plan,
            "data": data,
            "content": content,
            "priority": priority,
            "entity_id": entity_id,
            "external_id": external_id,
            "source": source,
            "scheduled_at": scheduled_at,
            "scheduled_local": scheduled_local,
            "event_at": event_at,
            "ttl": ttl,
            "expires_at": expires_at,
            "max_retries": max_retries,
            "ignore_limits": ignore_limits,
        }
        fields = {name: _to_json(value) for name, value in given.items() if value is not None}
        return self.send({"type": type_slug, **fields}, idempotency_key=idempotency_key)

    def send(
        self,
        request: NotificationRequest | Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
    ) -> NotificationView:
        """Send a notification, also given as the JSON object; return the accepted notification.

        All attempts have the same idempotency key, so that they create at most one notification.
        Store a key of your own and pass it if this must hold even when your program restarts.

        Raises NotificationRejectedError if the request is invalid or not allowed, and
        ServiceUnavailableError if no attempt got a clear response in time.
        """
        body: Any = _to_json(request)
        key = idempotency_key or uuid.uuid4().hex
        started = self._clock()
        attempts = 0
        while True:
            attempts += 1
            result = self._send_once(body, key)
            if isinstance(result, NotificationView):
                return result
            failure, retry_after = result
            jitter = secrets.randbelow(1000) / 1000
            delay = self._retry.delay(attempts=attempts, retry_after=retry_after, jitter=jitter)
            left = self._retry.max_seconds - (self._clock() - started)
            if attempts >= self._retry.max_attempts or delay > left:
                raise failure
            self._sleep(delay)

    def _send_once(
        self, body: Mapping[str, Any], key: str
    ) -> NotificationView | tuple[ServiceUnavailableError, float | None]:
        """Return the accepted notification, or a retryable error and ``Retry-After`` (seconds)."""
        try:
            response = self.rest.get_httpx_client().post(
                "/api/v1/notifications",
                json=body,
                headers={"Idempotency-Key": key},
                follow_redirects=False,
            )
        except (httpx.UnsupportedProtocol, httpx.InvalidURL):
            raise
        except httpx.TransportError as error:
            reason = f"Couldn't reach the service: {type(error).__name__}."
            failure = ServiceUnavailableError(reason, idempotency_key=key)
            failure.__cause__ = error
            return failure, None
        return self._read(response, key)

    def _read(
        self, response: httpx.Response, key: str
    ) -> NotificationView | tuple[ServiceUnavailableError, float | None]:
        """Read a response as ``_send_once`` returns it; raises the errors that aren't retried."""
        if response.status_code == ACCEPTED:
            try:
                return NotificationView.from_dict(response.json())
            except (ValueError, KeyError, TypeError) as error:
                reason = (
                    "The response is from another program, or from a later version of the service."
                )
                raise ServiceUnavailableError(reason, idempotency_key=key, status=202) from error
        problem = _problem(response)
        cause = f"{problem.code}: {problem.detail}" if problem else "no problem document"
        reason = f"{response.status_code} {cause}"
        if response.status_code not in RETRYABLE_STATUSES:
            raise NotificationRejectedError(
                reason, idempotency_key=key, status=response.status_code, problem=problem
            )
        failure = ServiceUnavailableError(
            reason, idempotency_key=key, status=response.status_code, problem=problem
        )
        return failure, parse_retry_after(response.headers, now=datetime.now(UTC))


def _addresses(email: str | None, phone: str | None) -> dict[str, str] | None:
    """Return a recipient with these addresses; None if there are none."""
    given = {"email": email, "phone": phone}
    return {name: address for name, address in given.items() if address is not None} or None


def _to_json(value: Any) -> Any:
    """Return a value as JSON. The service, not the client, refuses an unknown field of a dict."""
    if isinstance(value, Mapping):
        return {name: _to_json(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_to_json(one) for one in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value.to_dict() if hasattr(value, "to_dict") else value


def _problem(response: httpx.Response) -> ProblemView | None:
    """Return a response's problem document; None if the body is something else."""
    try:
        return ProblemView.from_dict(response.json())
    except (ValueError, KeyError, TypeError):
        return None
