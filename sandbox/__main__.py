"""``python -m sandbox``: run the sandbox until it is stopped."""

import argparse
import asyncio
import re
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import urlsplit

from .config import WHATSAPP_API_VERSION, Config, Timings
from .credentials import UnreadableKeyError
from .log import CorruptLogError, LogInUseError
from .providers.whatsapp.templates import UnreadableTemplatesError
from .server import serve

MAX_PORT, MAX_SECONDS = 65535, 24 * 3600


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until SIGTERM or SIGINT; return the exit status."""
    config = _parse_config(arguments)
    try:
        asyncio.run(_run(config))
    except (
        OSError,
        UnreadableKeyError,
        UnreadableTemplatesError,
        CorruptLogError,
        LogInUseError,
    ) as error:
        print(f"sandbox: {error}", file=sys.stderr)
        return 1
    return 0


async def _run(config: Config) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with serve(config) as sandbox:
        urls = (
            config.webhook_url,
            config.whatsapp_webhook_url,
            config.twilio_webhook_url,
            config.mail_webhooks_url,
        )
        receivers = [url for url in urls if url]
        webhooks = f"webhooks to {' and '.join(receivers)}" if receivers else "no webhooks"
        print(f"sandbox: {sandbox.url}/ (data in {config.data}, {webhooks})", flush=True)
        await stop.wait()


def _parse_config(arguments: Sequence[str] | None) -> Config:
    defaults = Timings()
    parser = argparse.ArgumentParser(
        prog="python -m sandbox", description="A scriptable stand-in for the providers."
    )
    add = parser.add_argument
    add("--port", type=_port, required=True, help="0: any free port")
    add("--data", type=Path, required=True, help="folder for the log and the keys")
    add("--webhook-url", type=_url, default="", help="the receiver of SendGrid's events")
    add("--whatsapp-webhook-url", type=_url, default="", help="the receiver of WhatsApp's statuses")
    add("--twilio-webhook-url", type=_url, default="", help="the receiver of inbound SMS")
    add(
        "--mail-webhooks-url",
        type=_url,
        default="",
        help="where other providers of email and AWS SMS have webhooks: {url}/postmark",
    )
    add("--whatsapp-templates", type=Path, help="a file of approved templates")
    add(
        "--whatsapp-api-version",
        type=_version,
        default=WHATSAPP_API_VERSION,
        metavar="VERSION",
        help=f"the newest of the Cloud API; {WHATSAPP_API_VERSION} if not given",
    )
    add("--host", default="127.0.0.1")
    delays = {
        "response": (defaults.response, "to each response"),
        "processed": (defaults.processed, "to the event “processed”"),
        "delivered": (defaults.delivered, "to the event “delivered”"),
        "late": (defaults.late, "to the events of a message that was not answered"),
    }
    for name, (default, what) in delays.items():
        text = f"{what}; {default:g} if not given"
        add(f"--{name}-after", type=_seconds, default=default, metavar="SECONDS", help=text)
    options = vars(parser.parse_args(arguments))
    timings = {name: options.pop(f"{name}_after") for name in delays}
    return Config(**options, timings=Timings(**timings))


def _port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= number <= MAX_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port (0 to {MAX_PORT})")
    return number


def _url(text: str) -> str:
    parts = urlsplit(text)
    if text and (parts.scheme not in ("http", "https") or not parts.hostname):
        raise argparse.ArgumentTypeError(f"{text!r} is not an http or https URL")
    return text


def _version(text: str) -> str:
    if not re.fullmatch(r"v[1-9][0-9]?\.[0-9]", text, re.ASCII):
        raise argparse.ArgumentTypeError(f"{text!r} is not a version such as v26.0")
    return text


def _seconds(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 <= number <= MAX_SECONDS:
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds (up to a day)")
    return number


if __name__ == "__main__":
    sys.exit(main())
