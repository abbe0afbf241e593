"""The notifiers, which send with retries that have no second effect."""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from functools import cache
from types import TracebackType
from typing import Any, Self, TypeVar, Unpack

import httpx

from . import requests
from .errors import ServiceUnavailableError
from .exchange import (
    FOREIGN,
    Backoff,
    Call,
    Page,
    raise_problem,
    raise_problem_async,
    read_page,
    unreached,
)
from .requests import Body, NotificationFields
from .rest.client import AuthenticatedClient
from .rest.models.accepted_notification_view import AcceptedNotificationView
from .rest.models.broadcast_view import BroadcastView
from .rest.models.bulk_view import BulkView
from .rest.models.inbox_token_view import InboxTokenView
from .rest.models.problem_view import ProblemView
from .retry import RetryPolicy

View = TypeVar("View")
Item = TypeVar("Item")
TIMEOUT = httpx.Timeout(15.0, connect=3.0)
"""The timeout of one attempt. The service responds or fails within 12 seconds."""


class Notifier:
    """Sends notifications with a client's API key. Thread-safe; close it at the end.

    For other operations, pass the attribute ``rest`` as ``client`` to a function in
    ``notifyproject_client.rest.api``, whose errors are those of this class. ``transport``,
    ``sleep``, and ``clock`` are for tests.
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
        self._http = httpx.Client(**_options(url, key, timeout), transport=transport)
        self.rest = rest_client(url, key, timeout, transport=transport)

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
        self._http.close()
        self.rest.get_httpx_client().close()

    def notify(
        self,
        type_slug: str,
        *,
        data: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NotificationFields],
    ) -> AcceptedNotificationView:
        """Send a notification of a registered type; return the accepted notification.

        ``warnings`` of the result name channels that are about to fail, or that reach nobody.

        For a registered recipient, ``user_id`` is enough. ``email`` and ``phone`` are short for
        ``recipient``. ``fields`` are those of NotificationRequest. An object can be a dict, such
        as ``content={"subject": "Paid"}``. Raises as ``send`` does.
        """
        request = requests.notification(type_slug, data=data, **fields)
        return self.send(request, idempotency_key=idempotency_key)

    def send(
        self, request: Body, *, idempotency_key: str | None = None
    ) -> AcceptedNotificationView:
        """Send a notification, also given as the JSON object; return the accepted notification.

        All attempts have the same idempotency key, so that they create at most one notification.
        Store a key of your own and pass it if this must hold even when your program restarts.

        Raises NotificationRejectedError if the request is invalid or not allowed, and
        ServiceUnavailableError if no attempt got a clear response in time.
        """
        return self._call(requests.send(request, idempotency_key))

    def replace(self, key: str, request: Body) -> AcceptedNotificationView:
        """Replace the notification with this idempotency key, or create it.

        It keeps its ID. Repeating a call has no second effect. Raises as ``send`` does: a
        NotificationRejectedError with the code ``already_sending``, ``already_sent``, or
        ``already_cancelled`` if it is too late.
        """
        return self._call(requests.replace(key, request))

    def send_many(
        self, notifications: Sequence[Body], *, idempotency_key: str | None = None
    ) -> BulkView:
        """Send any number of notifications, a thousand in each request. Return all results.

        A result has the ``index`` of its request and the notification's ``id``, or an ``error``: an
        invalid request doesn't stop the others. If an error is raised, earlier requests may have
        been accepted: repeat the call with the same key and the same notifications. Raises as
        ``send`` does.
        """
        calls = requests.send_many(notifications, idempotency_key)
        return requests.merged([(start, self._call(call)) for start, call in calls])

    def broadcast(
        self,
        type_slug: str,
        audience: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> BroadcastView:
        """Send one message to many recipients, such as ``{"topic": "news"}``; return its progress.

        ``fields`` are the other fields of a BroadcastRequest. Raises as ``send`` does.
        """
        return self._call(requests.broadcast(type_slug, audience, fields, idempotency_key))

    def inbox_token(self, user_id: str) -> InboxTokenView:
        """Issue a token for the inbox of one recipient, for their browser. Raises as ``send``."""
        return self._call(requests.inbox_token(user_id))

    def iterate(
        self, list_page: Callable[..., Page[Item] | ProblemView | None], **filters: Any
    ) -> Iterator[Item]:
        """Yield the items of a list, page after page; each page is retried.

        ``list_page`` is the function ``sync`` of a generated module that lists something, such as
        ``list_notifications.sync``, and ``filters`` are its arguments. Raises as ``send`` does.
        """
        while True:
            page = self._page(list_page, filters)
            yield from page.results
            if page.next_ is None:
                return
            filters = {**filters, "cursor": page.next_}

    def _page(
        self,
        list_page: Callable[..., Page[Item] | ProblemView | None],
        arguments: Mapping[str, Any],
    ) -> Page[Item]:
        backoff = Backoff(self._retry, self._clock)
        while True:
            try:
                answer = list_page(client=self.rest, **arguments)
            except ServiceUnavailableError as error:
                unavailable = error
            except httpx.TransportError as error:
                unavailable = unreached(error)
            except (ValueError, KeyError) as error:
                raise ServiceUnavailableError(FOREIGN) from error
            else:
                return read_page(answer)
            self._sleep(backoff.delay_after(unavailable))

    def _call(self, call: Call[View]) -> View:
        backoff = Backoff(self._retry, self._clock)
        while True:
            try:
                response = self._http.request(
                    call.method, call.path, json=call.body, headers=call.headers
                )
            except httpx.TransportError as error:
                result: View | ServiceUnavailableError = unreached(
                    error, idempotency_key=call.idempotency_key
                )
            else:
                result = call.read(response)
            if not isinstance(result, ServiceUnavailableError):
                return result
            self._sleep(backoff.delay_after(result))


class AsyncNotifier:
    """A notifier for asyncio: as Notifier, with the same arguments, results, and errors.

    Used in one event loop. For other operations, pass ``rest`` as ``client`` to the functions
    ``asyncio`` in ``notifyproject_client.rest.api``.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str,
        timeout: httpx.Timeout = TIMEOUT,
        retry: RetryPolicy | None = None,
        transport: httpx.AsyncBaseTransport | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._retry = retry or RetryPolicy()
        self._sleep = sleep
        self._clock = clock
        self._http = httpx.AsyncClient(**_options(url, key, timeout), transport=transport)
        self.rest = rest_client(url, key, timeout, async_transport=transport)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()
        await self.rest.get_async_httpx_client().aclose()

    async def notify(
        self,
        type_slug: str,
        *,
        data: Mapping[str, Any] | None = None,
        idempotency_key: str | None = None,
        **fields: Unpack[NotificationFields],
    ) -> AcceptedNotificationView:
        """Send a notification, as :meth:`Notifier.notify` does."""
        request = requests.notification(type_slug, data=data, **fields)
        return await self.send(request, idempotency_key=idempotency_key)

    async def send(
        self, request: Body, *, idempotency_key: str | None = None
    ) -> AcceptedNotificationView:
        """Send a notification, as :meth:`Notifier.send` does."""
        return await self._call(requests.send(request, idempotency_key))

    async def replace(self, key: str, request: Body) -> AcceptedNotificationView:
        """Replace a notification, as :meth:`Notifier.replace` does."""
        return await self._call(requests.replace(key, request))

    async def send_many(
        self, notifications: Sequence[Body], *, idempotency_key: str | None = None
    ) -> BulkView:
        """Send any number of notifications, as :meth:`Notifier.send_many` does."""
        calls = requests.send_many(notifications, idempotency_key)
        return requests.merged([(start, await self._call(call)) for start, call in calls])

    async def broadcast(
        self,
        type_slug: str,
        audience: Mapping[str, Any],
        *,
        idempotency_key: str | None = None,
        **fields: Any,
    ) -> BroadcastView:
        """Send one message to many recipients, as :meth:`Notifier.broadcast` does."""
        return await self._call(requests.broadcast(type_slug, audience, fields, idempotency_key))

    async def inbox_token(self, user_id: str) -> InboxTokenView:
        """Issue a token for an inbox, as :meth:`Notifier.inbox_token` does."""
        return await self._call(requests.inbox_token(user_id))

    async def iterate(
        self, list_page: Callable[..., Awaitable[Page[Item] | ProblemView | None]], **filters: Any
    ) -> AsyncIterator[Item]:
        """Yield the items of a list, as :meth:`Notifier.iterate`, but by functions ``asyncio``."""
        while True:
            page = await self._page(list_page, filters)
            for item in page.results:
                yield item
            if page.next_ is None:
                return
            filters = {**filters, "cursor": page.next_}

    async def _page(
        self,
        list_page: Callable[..., Awaitable[Page[Item] | ProblemView | None]],
        arguments: Mapping[str, Any],
    ) -> Page[Item]:
        backoff = Backoff(self._retry, self._clock)
        while True:
            try:
                answer = await list_page(client=self.rest, **arguments)
            except ServiceUnavailableError as error:
                unavailable = error
            except httpx.TransportError as error:
                unavailable = unreached(error)
            except (ValueError, KeyError) as error:
                raise ServiceUnavailableError(FOREIGN) from error
            else:
                return read_page(answer)
            await self._sleep(backoff.delay_after(unavailable))

    async def _call(self, call: Call[View]) -> View:
        backoff = Backoff(self._retry, self._clock)
        while True:
            try:
                response = await self._http.request(
                    call.method, call.path, json=call.body, headers=call.headers
                )
            except httpx.TransportError as error:
                result: View | ServiceUnavailableError = unreached(
                    error, idempotency_key=call.idempotency_key
                )
            else:
                result = call.read(response)
            if not isinstance(result, ServiceUnavailableError):
                return result
            await self._sleep(backoff.delay_after(result))


def rest_client(
    url: str,
    key: str,
    timeout: httpx.Timeout,
    *,
    transport: httpx.BaseTransport | None = None,
    async_transport: httpx.AsyncBaseTransport | None = None,
) -> AuthenticatedClient:
    """Return the client of generated functions, which raise an error for every problem."""
    options = _options(url, key, timeout)
    client = AuthenticatedClient(base_url=url, token=key)
    client.set_httpx_client(
        httpx.Client(**options, transport=transport, event_hooks={"response": [raise_problem]})
    )
    client.set_async_httpx_client(
        httpx.AsyncClient(
            **options,
            transport=async_transport,
            event_hooks={"response": [raise_problem_async]},
        )
    )
    return client


def _options(url: str, key: str, timeout: httpx.Timeout) -> dict[str, Any]:
    # Later, the error of a header that no server takes would have the key in its text.
    if not re.fullmatch("[!-~]+", key or ""):
        raise ValueError("The key isn't one of the service.")
    return {
        "base_url": url.rstrip("/"),
        "headers": {"Authorization": f"Bearer {key}"},
        "timeout": timeout,
        "follow_redirects": False,
        "verify": _tls(),
    }


@cache
def _tls() -> ssl.SSLContext:
    """Return the context of all clients, which takes 30 ms: reading the certificates."""
    return httpx.create_ssl_context()
