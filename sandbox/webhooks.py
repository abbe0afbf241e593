"""Delivery of events: collect, sign, post, and retry."""

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import structlog
from yarl import URL

from .config import Timings
from .log import Journal
from .providers.base import PlannedEvent, WebhookFormat
from .recent_requests import Event, EventState, RecentRequests

log = structlog.get_logger(__name__)

MAX_CONCURRENT_POSTS = 8
MAX_PENDING_EVENTS = 100_000
"""Events that are kept for a receiver that is down; more are abandoned."""
TIMEOUT = aiohttp.ClientTimeout(total=10, connect=3)
MAX_RETRY_DELAY = 30.0
SUCCESS_STATUSES = range(200, 300)
_ERRORS: Mapping[type[aiohttp.ClientError], str] = {
    aiohttp.ClientConnectorError: "connection refused",
    aiohttp.ServerDisconnectedError: "connection closed without an answer",
    aiohttp.InvalidURL: "the URL is not valid",
}


@dataclass(kw_only=True, eq=False)
class WebhookSender:
    """Posts one provider's events to their receivers, in background tasks."""

    url: str
    """The receiver of events without one of their own."""
    webhook_format: WebhookFormat
    recent_requests: RecentRequests
    journal: Journal
    timings: Timings

    def __post_init__(self) -> None:
        self._is_closed = False
        self._due_events: list[Event] = []
        self._has_due_events = asyncio.Event()
        self._post_limit = asyncio.Semaphore(MAX_CONCURRENT_POSTS)
        self._posts: set[asyncio.Task[None]] = set()
        self._session = aiohttp.ClientSession(
            timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        self._batch_task = asyncio.get_running_loop().create_task(self._post_batches())

    def schedule(self, planned: PlannedEvent, *, request_id: int, now: datetime) -> None:
        """Send an event after its delay, at the earliest with the next batch."""
        event = Event(
            request_id=request_id,
            kind=planned.kind,
            payload=planned.payload,
            planned_at=now,
            url=planned.url,
        )
        self.recent_requests.add_event(event)
        asyncio.get_running_loop().call_later(
            planned.delay, self._mark_due, event, self.recent_requests.generation
        )

    async def close(self) -> None:
        """Stop the tasks and abandon pending events."""
        self._is_closed = True
        tasks = [self._batch_task, *self._posts]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    def _mark_due(self, event: Event, generation: int) -> None:
        if self._is_closed or generation != self.recent_requests.generation:
            return
        self.webhook_format.stamp(event.payload, now=datetime.now(UTC))
        url = self._receiver(event)
        if not url or self.recent_requests.counts.webhooks.waiting >= MAX_PENDING_EVENTS:
            event.answer = "There is no webhook URL." if not url else "Too many events wait."
            self._finish([event], EventState.FAILED)
            return
        self.recent_requests.counts.webhooks.waiting += 1
        event.state = EventState.SENDING
        self.recent_requests.mark_changed(event.request_id)
        self._due_events.append(event)
        self._has_due_events.set()

    async def _post_batches(self) -> None:
        """Post the events that become due within ``batch_window`` together, in due order."""
        while True:
            await self._has_due_events.wait()
            await asyncio.sleep(self.timings.batch_window)
            self._has_due_events.clear()
            due, self._due_events = self._due_events, []
            for url, events in self._batches(due):
                generation = self.recent_requests.generation
                post = asyncio.create_task(self._post(events, url=url, generation=generation))
                self._posts.add(post)
                post.add_done_callback(self._posts.discard)

    def _receiver(self, event: Event) -> str:
        return self.url if event.url is None else event.url

    def _batches(self, due: list[Event]) -> Iterator[tuple[str, list[Event]]]:
        by_url: dict[str, list[Event]] = {}
        for event in due:
            by_url.setdefault(self._receiver(event), []).append(event)
        size = self.webhook_format.batch
        for url, events in by_url.items():
            for start in range(0, len(events), size):
                yield url, events[start : start + size]

    async def _post(self, events: list[Event], *, url: str, generation: int) -> None:
        loop, repeats = asyncio.get_running_loop(), 0
        give_up, pause = loop.time() + self.timings.retry_timeout, self.timings.retry_delay
        body = self.webhook_format.encode([event.payload for event in events])
        while True:
            async with self._post_limit:
                if generation != self.recent_requests.generation:
                    return
                status, answer = await self._post_once(body, url=url)
            if generation != self.recent_requests.generation:
                return
            is_accepted = status in SUCCESS_STATUSES
            self._record_answer(events, url=url, is_accepted=is_accepted, answer=answer)
            is_over = loop.time() + pause > give_up or not self.webhook_format.may_repeat(
                url, status=status, repeats=repeats
            )
            if is_accepted or is_over:
                self.recent_requests.counts.webhooks.waiting -= len(events)
                self._finish(events, EventState.SENT if is_accepted else EventState.FAILED)
                return
            await asyncio.sleep(pause)
            repeats += 1
            pause = min(pause * 2, MAX_RETRY_DELAY)

    async def _post_once(self, body: bytes, *, url: str) -> tuple[int | None, str]:
        """Return the status of the response, if any, and what to show of it."""
        headers = self.webhook_format.headers(body, url=url, now=datetime.now(UTC))
        try:
            if problem := await self.webhook_format.prepare(self._session, url):
                return None, problem
            # The signature may cover the URL, so its bytes are sent as they are.
            async with self._session.post(
                URL(url, encoded=True), data=body, headers=headers, allow_redirects=False
            ) as response:
                return response.status, f"{response.status}"
        except TimeoutError:
            return None, "no answer in time"
        except aiohttp.ClientError as error:
            return None, _ERRORS.get(type(error), type(error).__name__)

    def _record_answer(
        self, events: list[Event], *, url: str, is_accepted: bool, answer: str
    ) -> None:
        counts = self.recent_requests.counts.webhooks
        counts.requests += 1
        counts.refused += not is_accepted
        for event in events:
            event.tries += 1
            event.answer = answer
            self.recent_requests.mark_changed(event.request_id)
        is_news = self.recent_requests.record_webhook_error(
            url.partition("?")[0], None if is_accepted else answer
        )
        if is_news and is_accepted:
            log.info("webhook_taken_again", answer=answer)
        elif is_news:
            log.warning("webhook_refused", answer=answer)

    def _finish(self, events: list[Event], state: EventState) -> None:
        counts = self.recent_requests.counts.webhooks
        now = datetime.now(UTC)
        for event in events:
            event.state, event.sent_at = state, now
            self.recent_requests.mark_changed(event.request_id)
            self.journal.append(msgspec.json.encode(event)).add_done_callback(_log_write_error)
        if state is EventState.SENT:
            counts.sent += len(events)
        else:
            counts.failed += len(events)


def _log_write_error(done: asyncio.Future[Any]) -> None:
    """Log a failed write of an event, which the outbox won't show after a restart."""
    if not done.cancelled() and (error := done.exception()):
        log.warning("event_not_logged", reason=str(error))
