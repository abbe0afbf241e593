"""Every environment variable the service reads, with its type and default."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from django.core.exceptions import ImproperlyConfigured

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = BASE_DIR / ".data"
STACK_FILE = DATA_DIR / "stack.json"
"""Where a running local stack writes down how to reach it."""

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
PerSecond = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
"""Messages a second, over all processes; 0.5 is one every two seconds, and 0 is no limit."""
PerMinute = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""Requests a minute, over all web processes; 0 is no limit."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment, checked. A field's name is the variable's."""

    PORT: Port = 8000
    """Where the local stack's web listens; the sandbox and the streams take the next two."""
    SECRET_KEY: str = ""
    ALLOWED_HOSTS: str = ""
    """Host names the web answers to, separated by commas."""

    MONGODB_URI: str = "mongodb://127.0.0.1:27017/notifyproject"
    """A replica set's URI; the path names the database."""
    REDIS_URL: str = "redis://127.0.0.1:6379/0"

    PUBLIC_URL: str = "http://127.0.0.1:8000"
    """Where people and providers reach the web: links in mail begin with it."""

    INBOX_SIGNING_KEY: Annotated[str, msgspec.Meta(min_length=32)] = ""
    """Signs the tokens people read their inbox with: 32 bytes or more, and not SECRET_KEY."""
    FIELD_ENCRYPTION_KEYS: str = ""
    """Seal what types call secret, such as codes: ``2026:{base64},2025:{base64}``. The first seals,
    all open; of 32 bytes or more each."""
    ADMIN_REQUIRE_OTP: bool = True
    """Staff need a second factor, an app on their phone, to use the console."""
    INBOX_ORIGINS: str = ""
    """Origins whose pages may read inboxes, separated by commas: ``https://app.example.com``."""
    INBOX_STREAM_URL: str = ""
    """Where browsers reach the stream process. Empty: PUBLIC_URL, whose proxy leads there."""
    INBOX_STREAMS: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 500
    """Streams one process holds open; each is a connection, so mind the limit of open files."""

    EMAIL_PROVIDER: Literal["sendgrid", "smtp", "sendgrid,smtp", "smtp,sendgrid"] = "sendgrid"
    """With two, the second is given what the first does not take."""
    EMAIL_FROM: str = "Notifications <notifications@example.com>"
    EMAIL_REPLY_TO: str = ""
    """Where answers to mail go, unless a request says otherwise. Empty: to EMAIL_FROM."""
    ATTACHMENT_HOSTS: str = ""
    """Hosts that attachments of mail may be fetched from, separated by commas. Empty: none."""
    SENDGRID_API_KEY: str = ""
    """Empty: mail goes to the sandbox, if there is one."""
    SENDGRID_URL: str = ""
    """Empty: https://api.sendgrid.com with a key, the sandbox without one."""
    SENDGRID_WEBHOOK_PUBLIC_KEY: str = ""
    """Base64, as SendGrid shows it. Empty: every webhook is refused."""
    SMTP_HOST: str = "127.0.0.1"
    SMTP_PORT: Port = 25
    SMTP_USER: str = ""
    SMTP_PASSWORD: str = ""
    SMTP_SECURITY: Literal["none", "starttls", "tls"] = "none"

    FCM_CREDENTIALS: str = ""
    """A Google service account: the path of its JSON, or the JSON. Empty: nothing is pushed."""
    FCM_PROJECT_ID: str = ""
    """Empty: the service account's own project."""
    FCM_URL: str = "https://fcm.googleapis.com"
    WHATSAPP_TOKEN: str = ""
    """A system user's access token. Empty: nothing goes by WhatsApp."""
    WHATSAPP_PHONE_NUMBER_ID: str = ""
    WHATSAPP_APP_SECRET: str = ""
    """Signs Meta's webhooks. Empty: every one is refused."""
    WHATSAPP_VERIFY_TOKEN: str = ""
    """What Meta shows when the webhook is set up."""
    WHATSAPP_URL: str = "https://graph.facebook.com"
    WHATSAPP_API_VERSION: Annotated[str, msgspec.Meta(pattern=r"^v[1-9]\d?\.\d\Z")] = "v26.0"
    """Of the Cloud API. Meta serves a version for two years."""

    SENDGRID_MAX_PER_SECOND: PerSecond = 0
    SMTP_MAX_PER_SECOND: PerSecond = 0
    FCM_MAX_PER_SECOND: PerSecond = 10_000
    """600,000 a minute is what Google grants a project."""
    WHATSAPP_MAX_PER_SECOND: PerSecond = 80
    """What Meta grants a phone number at first; what people send to it counts, too."""

    RATE_LIMIT_READ: PerMinute = 30_000
    """Of one app, of each endpoint."""
    RATE_LIMIT_WRITE: PerMinute = 60_000
    """The same. A call that brings many is one."""
    RATE_LIMIT_INBOX: PerMinute = 600
    """Of one person with an inbox token, of each endpoint."""
    RATE_LIMIT_FAILED: PerMinute = 300
    """From one address, without a valid key or token: for the rest of a minute it is refused."""
    TRUSTED_PROXIES: Annotated[int, msgspec.Meta(ge=0, le=10)] = 1
    """Proxies before the web that add to X-Forwarded-For; 0: callers reach it themselves."""

    WEB_CONNECTIONS: Annotated[int, msgspec.Meta(ge=100, le=100_000)] = 4_000
    """Connections one web process holds open, as far as the limit of open files lets it. At the
    limit, the one that has waited longest for its client is closed."""
    WEB_CLIENT_SECONDS: Annotated[float, msgspec.Meta(ge=1, le=600)] = 10
    """In which a client must have sent a request's head; and its body, and have read the answer,
    besides what WEB_CLIENT_RATE gives."""
    WEB_CLIENT_RATE: Annotated[float, msgspec.Meta(ge=1, le=1_000_000)] = 1_000
    """Bytes a second. A client that sends a body, or reads an answer, more slowly is too slow."""

    CALLBACK_LOOPBACK: bool = False
    """Whether apps on this very machine are called back, by http. Never on a server."""

    SANDBOX_URL: str = ""
    """Where what test-mode API clients send goes, and nowhere else. Empty: it fails."""
    SANDBOX_FCM_CREDENTIALS: str = ""
    """The sandbox's service account, as FCM_CREDENTIALS. Empty: test pushes fail."""

    ALERT_RECIPIENTS: str = ""
    """Who is told of alerts: mail addresses and user ids, separated by commas. Empty: the staff
    whose role is operator or admin, and superusers."""
    METRICS_TOKEN: str = ""
    """What Prometheus shows as a bearer token. Empty: /metrics answers this machine alone."""
    ANALYTICS_EVENTS_DAYS: Annotated[int, msgspec.Meta(ge=0, le=3_650)] = 30
    """How long events are kept for analysis; 0: none are written."""
    OTEL_EXPORTER_OTLP_ENDPOINT: str = ""
    """OTLP collector of traces: ``http://127.0.0.1:4318``. Empty: none. docs/guides/observe.md"""

    RETENTION_CONTENT_DAYS: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30
    """How long what a notification says is kept after the last thing that happened to it, of a
    category that has no days of its own in the console."""
    RETENTION_METADATA_DAYS: Annotated[int, msgspec.Meta(ge=7, le=3_650)] = 90
    """The same: after its send time it is deleted with its attempts."""

    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    LOG_FORMAT: Literal["console", "json"] = "json"

    BULK_PENDING_LIMIT: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 100_000
    """With more notifications due than this, calls that bring many are asked to come again."""
    BULK_OLDEST_DUE: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 600
    """Seconds. The same, with one that has been due for longer."""

    WORKER_THREADS: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    """Threads of a worker process: tasks, and requests to providers, at once."""
    WORKER_MAX_MEMORY_MB: Annotated[int, msgspec.Meta(ge=0)] = 600
    """A worker that has more in memory ends, and whoever runs it starts another. 0: it may grow."""
    WORKER_MAX_TASKS: Annotated[int, msgspec.Meta(ge=0)] = 0
    """A worker that has taken so many messages ends, likewise. 0: it goes on."""

    CRASH_AT: str = ""
    """Fault injection, never on a server: where a process kills itself.
    docs/reference/fault_injection.md"""
    FREEZE_AT: str = ""
    """The same: where a process stops until it is told to go on."""


def read(environ: Mapping[str, str], *, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the checked environment; ``defaults`` fill what ``environ`` does not name.

    Raises ImproperlyConfigured naming the variable that has a wrong value.
    """
    values = {
        name: value
        for name in Environment.__struct_fields__
        if (value := environ.get(name) or (defaults or {}).get(name))
    }
    try:
        return msgspec.convert(values, Environment, strict=False)
    except msgspec.ValidationError as error:
        raise ImproperlyConfigured(f"environment variable: {error}") from error


def split_list(text: str) -> list[str]:
    """Return what a variable lists, separated by commas."""
    return [item for part in text.split(",") if (item := part.strip())]


def local_stack_environment() -> dict[str, str]:
    """Return what a local stack has written down for other processes; empty if none runs."""
    if not STACK_FILE.exists():
        return {}
    stack = json.loads(STACK_FILE.read_text())
    return stack["environment"] if is_alive(stack["pid"]) else {}


def is_alive(pid: int) -> bool:
    """Return whether there is a process with this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def current(*, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return this process's environment; see :func:`read`."""
    return read(os.environ, defaults=defaults)
