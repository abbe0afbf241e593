"""The sandbox's HTTP server: in an event loop, or in a thread for tests."""

import asyncio
import itertools
import socket
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import Future
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from weakref import WeakSet

import msgspec
from aiohttp import web

from .assembly import Sandbox, assemble, create_secrets
from .behaviours import Behaviours
from .config import Config
from .control import Control
from .exchange import ProviderRoute
from .log import EVENTS_FILE, REQUESTS_FILE, CorruptLogError, Journal, Record, read_last_lines
from .outbox import Outbox
from .providers.base import Provider
from .recent_requests import MAX_REQUESTS, Event, RecentRequests
from .webhooks import WebhookSender

MAX_EVENTS_LOADED = 4 * MAX_REQUESTS
BACKLOG = 1024
SHUTDOWN_TIMEOUT = 0.2
START_TIMEOUT = 10.0


@asynccontextmanager
async def serve(config: Config) -> AsyncIterator[Sandbox]:
    """Run a sandbox until the ``async with`` block ends.

    Raises OSError, LogInUseError, CorruptLogError, UnreadableKeyError, or UnreadableTemplatesError.
    """
    async with AsyncExitStack() as stack:
        requests = Journal(config.data / REQUESTS_FILE, durable=True)
        stack.push_async_callback(requests.close)
        behaviours = Behaviours()
        providers, webhooks = assemble(config, behaviours=behaviours)
        recent_requests = RecentRequests()
        last_id = _load_history(config.data, recent_requests, providers)
        events = Journal(config.data / EVENTS_FILE, durable=False)
        stack.push_async_callback(events.close)
        webhook_senders = {
            name: WebhookSender(
                url=url,
                webhook_format=webhook_format,
                recent_requests=recent_requests,
                journal=events,
                timings=config.timings,
            )
            for name, (webhook_format, url) in webhooks.items()
        }
        for sender in webhook_senders.values():
            stack.push_async_callback(sender.close)
        shutdown = asyncio.Event()
        app = web.Application(
            client_max_size=max(provider.max_body for provider in providers.values())
        )
        ids, connections = itertools.count(last_id + 1), WeakSet[asyncio.Transport]()
        for name, provider in providers.items():
            route = ProviderRoute(
                provider=provider,
                webhook_sender=webhook_senders.get(name),
                recent_requests=recent_requests,
                journal=requests,
                ids=ids,
                timings=config.timings,
                shutdown=shutdown,
                connections=connections,
            )
            app.router.add_route("*", provider.route, route.handle)
        outbox = Outbox(
            recent_requests=recent_requests,
            behaviours=behaviours,
            providers=providers,
            webhook_senders=webhook_senders,
        )
        control = Control(
            recent_requests=recent_requests,
            behaviours=behaviours,
            providers=providers,
            webhook_senders=webhook_senders,
        )
        app.add_routes([*control.routes(), *outbox.routes()])
        runner = web.AppRunner(
            app, access_log=None, shutdown_timeout=SHUTDOWN_TIMEOUT, auto_decompress=False
        )
        stack.push_async_callback(runner.cleanup)
        await runner.setup()
        listener = socket.create_server((config.host, config.port), backlog=BACKLOG)
        await web.SockSite(runner, listener, backlog=BACKLOG).start()
        stack.push_async_callback(_stop_accepting, listener)
        stack.callback(shutdown.set)
        yield create_secrets(config.data, url=f"http://{config.host}:{runner.addresses[0][1]}")


async def _stop_accepting(listener: socket.socket) -> None:
    # A connection that asyncio has accepted when its server closes would stay open until it's
    # garbage. It has its handler two turns of the loop after it was accepted.
    asyncio.get_running_loop().remove_reader(listener)
    for _ in range(2):
        await asyncio.sleep(0)


@contextmanager
def run_in_thread(config: Config) -> Iterator[Sandbox]:
    """Run a sandbox in a thread until the ``with`` block ends. Raises as :func:`serve` does."""
    started: Future[tuple[Sandbox, asyncio.AbstractEventLoop, asyncio.Event]] = Future()

    async def run() -> None:
        stop = asyncio.Event()
        async with serve(config) as sandbox:
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


def _load_history(
    data: Path, recent_requests: RecentRequests, providers: Mapping[str, Provider]
) -> int:
    """Load the latest requests and events from the logs; return the last request's ID."""
    decoder, last_id = msgspec.json.Decoder(Record), 0
    lines = read_last_lines(data / REQUESTS_FILE, MAX_REQUESTS)
    try:
        for line in lines:
            record = decoder.decode(line)
            recent_requests.restore(record, providers[record.provider])
            last_id = record.id
        for line in read_last_lines(data / EVENTS_FILE, MAX_EVENTS_LOADED) if lines else ():
            recent_requests.add_event(msgspec.json.decode(line, type=Event))
    except (msgspec.DecodeError, RecursionError) as error:
        text = f"The log in {data} cannot be read ({error}): move the folder away."
        raise CorruptLogError(text) from error
    if not lines:
        # Without the log of requests, old events would belong to new requests with the same IDs.
        (data / EVENTS_FILE).unlink(missing_ok=True)
    return last_id
