"""The HTTP server: in an event loop, or in a thread for tests."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import msgspec
from aiohttp import web

from . import keys
from .behaviours import Behaviours
from .config import Config
from .control import Control
from .exchange import ProviderRoute
from .log import EVENTS_FILE, REQUESTS_FILE, Journal, LogBroken, Record, read_last
from .memory import MAX_REQUESTS, Event, Memory
from .outbox import Outbox
from .providers.sendgrid.events import SignedWebhooks
from .providers.sendgrid.provider import SendGrid
from .webhooks import Outgoing

EVENTS_READ_BACK = 4 * MAX_REQUESTS
BACKLOG = 1024
PATIENCE = 0.2
"""Seconds that answers under way are given when the sandbox stops."""
START_TIMEOUT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """A sandbox that listens."""

    url: str
    """Its base URL, without a slash at the end."""
    data: Path
    public_key: str
    """What verifies its webhooks, as SendGrid shows it."""


@asynccontextmanager
async def listening(config: Config) -> AsyncIterator[Sandbox]:
    """Listen until the block is left; raises OSError, LogInUse, LogBroken or UnreadableKey."""
    async with AsyncExitStack() as stack:
        public_key = keys.ensure(config.data)
        requests = Journal(config.data / REQUESTS_FILE, durable=True)
        stack.push_async_callback(requests.close)
        memory = Memory()
        last_id = _read_back(config.data, memory)
        events = Journal(config.data / EVENTS_FILE, durable=False)
        stack.push_async_callback(events.close)

        behaviours = Behaviours()
        webhooks = SignedWebhooks(private_key=keys.load(config.data))
        sendgrid = SendGrid(behaviours=behaviours, timings=config.timings, webhooks=webhooks)
        outgoing = Outgoing(
            url=config.webhook_url,
            dialect=webhooks,
            memory=memory,
            journal=events,
            timings=config.timings,
        )
        stack.push_async_callback(outgoing.close)
        stopping = asyncio.Event()
        route = ProviderRoute(
            provider=sendgrid,
            outgoing=outgoing,
            memory=memory,
            journal=requests,
            ids=itertools.count(last_id + 1),
            timings=config.timings,
            stopping=stopping,
        )
        providers = {sendgrid.name: sendgrid}
        control = Control(
            memory=memory,
            behaviours=behaviours,
            providers=providers,
            outgoing={sendgrid.name: outgoing},
        )
        app = web.Application(client_max_size=sendgrid.max_body)
        app.router.add_route("*", sendgrid.prefix + "{rest:.*}", route.answer)
        app.add_routes([*control.routes(), *Outbox(memory=memory, providers=providers).routes()])
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=PATIENCE, auto_decompress=False
        )
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        site = web.TCPSite(runner, config.host, config.port, backlog=BACKLOG)
        await site.start()
        stack.callback(stopping.set)
        port = runner.addresses[0][1]
        yield Sandbox(url=f"http://{config.host}:{port}", data=config.data, public_key=public_key)


@contextmanager
def running(config: Config) -> Iterator[Sandbox]:
    """Run a sandbox in a thread until the block is left; raises what :func:`listening` raises."""
    started: Future[tuple[Sandbox, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with listening(config) as sandbox:
            started.set_result((sandbox, asyncio.get_running_loop(), stop))
            await stop.wait()

    def work() -> None:
        try:
            asyncio.run(run())
        except BaseException as error:
            if started.done():
                raise
            started.set_exception(error)

    thread = threading.Thread(target=work, name="sandbox", daemon=True)
    thread.start()
    sandbox, loop, stop = started.result(START_TIMEOUT)
    try:
        yield sandbox
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()


def _read_back(data: Path, memory: Memory) -> int:
    """Remember the end of the log, and return the last request's id."""
    decoder, last_id = msgspec.json.Decoder(Record), 0
    lines = read_last(data / REQUESTS_FILE, MAX_REQUESTS)
    try:
        for line in lines:
            record = decoder.decode(line)
            memory.restore(record)
            last_id = record.id
        for line in read_last(data / EVENTS_FILE, EVENTS_READ_BACK) if lines else ():
            memory.add_event(msgspec.json.decode(line, type=Event))
    except (msgspec.DecodeError, RecursionError) as error:
        raise LogBroken(
            f"The log in {data} cannot be read ({error}): move the folder away."
        ) from error
    if not lines:
        # Events of a log of requests that is gone would belong to other requests from now on.
        (data / EVENTS_FILE).unlink(missing_ok=True)
    return last_id
