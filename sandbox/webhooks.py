"""Events on their way to the receiver: gathered, signed, posted, and posted again."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import structlog

from .config import Timings
from .log import Journal
from .memory import Event, EventState, Memory
from .providers.base import PlannedEvent, Webhooks

log = structlog.get_logger(__name__)

AT_ONCE = 8
"""POSTs at the same time."""
MAX_WAITING = 100_000
"""Events kept for a receiver that is down; those beyond are given up."""
TIMEOUT = aiohttp.ClientTimeout(total=10, connect=3)
LONGEST_PAUSE = 30.0
TAKEN = range(200, 300)


class Outgoing:
    """One provider's events to one receiver. Nothing here is ever waited for by a request."""

    def __init__(
        self,
        *,
        url: str,
        dialect: Webhooks,
        memory: Memory,
        journal: Journal,
        timings: Timings,
    ) -> None:
        self._url = url
        self._dialect = dialect
        self._memory = memory
        self._journal = journal
        self._timings = timings
        self._closed = False
        self._due: list[Event] = []
        self._wake = asyncio.Event()
        self._places = asyncio.Semaphore(AT_ONCE)
        self._posts: set[asyncio.Task[None]] = set()
        self._session = aiohttp.ClientSession(
            timeout=TIMEOUT, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False
        )
        self._gatherer = asyncio.get_running_loop().create_task(self._gather())

    def plan(self, planned: PlannedEvent, *, request_id: int, now: datetime) -> None:
        """Send an event when its delay is over."""
        event = Event(
            request_id=request_id, kind=planned.kind, payload=planned.payload, planned_at=now
        )
        self._memory.add_event(event)
        asyncio.get_running_loop().call_later(planned.delay, self._is_due, event, self._memory.era)

    async def close(self) -> None:
        """Stop; what was not sent stays unsent."""
        self._closed = True
        tasks = [self._gatherer, *self._posts]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._session.close()

    def _is_due(self, event: Event, era: int) -> None:
        if self._closed or era != self._memory.era:
            return
        self._dialect.stamp(event.payload, now=datetime.now(UTC))
        if not self._url or self._memory.counts.webhooks.waiting >= MAX_WAITING:
            event.answer = "There is no webhook URL." if not self._url else "Too many events wait."
            self._settle([event], EventState.FAILED)
            return
        self._memory.counts.webhooks.waiting += 1
        event.state = EventState.SENDING
        self._memory.changed(event.request_id)
        self._due.append(event)
        self._wake.set()

    async def _gather(self) -> None:
        """Post what came together within a short time, in the order in which it was due."""
        while True:
            await self._wake.wait()
            await asyncio.sleep(self._timings.gather)
            self._wake.clear()
            due, self._due = self._due, []
            size = self._dialect.batch
            for start in range(0, len(due), size):
                post = asyncio.create_task(
                    self._post(due[start : start + size], era=self._memory.era)
                )
                self._posts.add(post)
                post.add_done_callback(self._posts.discard)

    async def _post(self, events: list[Event], *, era: int) -> None:
        """Post events until the receiver takes them or the time is up."""
        loop = asyncio.get_running_loop()
        give_up, pause = loop.time() + self._timings.retry_for, self._timings.retry
        body = self._dialect.encode([event.payload for event in events])
        while True:
            async with self._places:
                if era != self._memory.era:
                    return
                taken, answer = await self._post_once(body)
            if era != self._memory.era:
                return
            self._note(events, taken=taken, answer=answer)
            if taken or loop.time() + pause > give_up:
                self._memory.counts.webhooks.waiting -= len(events)
                self._settle(events, EventState.SENT if taken else EventState.FAILED)
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, LONGEST_PAUSE)

    async def _post_once(self, body: bytes) -> tuple[bool, str]:
        """Return whether the receiver took it, and what it said."""
        headers = self._dialect.headers(body, now=datetime.now(UTC))
        try:
            if obstacle := await self._dialect.prepare(self._session, self._url):
                return False, obstacle
            async with self._session.post(
                self._url, data=body, headers=headers, allow_redirects=False
            ) as response:
                return response.status in TAKEN, f"{response.status}"
        except TimeoutError:
            return False, "no answer in time"
        except aiohttp.ClientError as error:
            return False, _in_words(error)

    def _note(self, events: list[Event], *, taken: bool, answer: str) -> None:
        counts = self._memory.counts.webhooks
        counts.requests += 1
        counts.refused += not taken
        for event in events:
            event.tries += 1
            event.answer = answer
            self._memory.changed(event.request_id)
        if self._memory.note_trouble(self._url, None if taken else answer):
            if taken:
                log.info("webhook_taken_again", answer=answer)
            else:
                log.warning("webhook_refused", answer=answer)

    def _settle(self, events: list[Event], state: EventState) -> None:
        """Note the end of events, also in the log of events."""
        counts = self._memory.counts.webhooks
        now = datetime.now(UTC)
        for event in events:
            event.state, event.sent_at = state, now
            self._memory.changed(event.request_id)
            self._journal.append(msgspec.json.encode(event)).add_done_callback(_unwritten)
        if state is EventState.SENT:
            counts.sent += len(events)
        else:
            counts.failed += len(events)


def _unwritten(done: asyncio.Future[Any]) -> None:
    """Say that an event is not in the log: the page lacks it after a restart, no more."""
    if not done.cancelled() and (error := done.exception()):
        log.warning("event_not_logged", reason=str(error))


def _in_words(error: aiohttp.ClientError) -> str:
    reasons: dict[type[aiohttp.ClientError], str] = {
        aiohttp.ClientConnectorError: "connection refused",
        aiohttp.ServerDisconnectedError: "connection closed without an answer",
        aiohttp.InvalidURL: "the URL is not valid",
    }
    return reasons.get(type(error), type(error).__name__)
