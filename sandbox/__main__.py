"""``python -m sandbox``: run the sandbox until it is told to stop."""

import argparse
import asyncio
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from .config import Config, Timings
from .keys import UnreadableKey
from .log import LogBroken, LogInUse
from .server import listening

HIGHEST_PORT = 65535


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; returns the exit status."""
    config = _config(arguments)
    try:
        asyncio.run(_run(config))
    except (OSError, UnreadableKey, LogBroken, LogInUse) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with listening(config) as sandbox:
        webhooks = f"webhooks to {config.webhook_url}" if config.webhook_url else "no webhooks"
        print(f"sandbox: {sandbox.url}/ (data in {config.data}, {webhooks})", flush=True)
        await stop.wait()


def _config(arguments: Sequence[str] | None) -> Config:
    defaults = Timings()
    parser = argparse.ArgumentParser(
        prog="python -m sandbox", description="A scriptable stand-in for the providers."
    )
    parser.add_argument("--port", type=_port, required=True, help="0: any free one")
    parser.add_argument("--data", type=Path, required=True, help="folder of the log and the key")
    parser.add_argument("--webhook-url", type=_url, default="", help="where the events go")
    parser.add_argument("--host", default="127.0.0.1")
    for name, default, what in (
        ("processed", defaults.processed, "to the event “processed”"),
        ("delivered", defaults.delivered, "to the event “delivered”"),
        ("late", defaults.late, "to the events of a message that was not answered"),
    ):
        parser.add_argument(
            f"--{name}-after",
            type=_seconds,
            default=default,
            metavar="SECONDS",
            help=f"{what}; {default:g} if not given",
        )
    given = parser.parse_args(arguments)
    return Config(
        data=given.data,
        webhook_url=given.webhook_url,
        host=given.host,
        port=given.port,
        timings=Timings(
            processed=given.processed_after, delivered=given.delivered_after, late=given.late_after
        ),
    )


def _port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= HIGHEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to {HIGHEST_PORT})")
    return number


def _url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise argparse.ArgumentTypeError(f"{text!r} is not an http or https URL")
    return text


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 24 * 3600:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (up to a day)")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
