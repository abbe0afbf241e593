"""All environment variables of the service, with type and default."""

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
"""Process id and environment of a running local stack."""

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
PerSecond = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
"""Messages per second, over all processes; 0.5 is one every two seconds, and 0 is no limit."""
PerMinute = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""Requests per minute, over all web processes; 0 is no limit."""


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The validated environment. Fields have the names of the variables."""

    PORT: Port = 8000
    """Port of the local stack's web. The sandbox and the stream process use the next two."""
    SECRET_KEY: str = ""
    ALLOWED_HOSTS: str = ""
    """Host names of the web, separated by commas."""

    MONGODB_URI: str = "mongodb://127.0.0.1:27017/notifyproject"
    """URI of a replica set; the path is the database."""
    REDIS_URL: str = "redis://127.0.0.1:6379/0"

    PUBLIC_URL: str = "http://127.0.0.1:8000"
    """Base URL of the web, for links in emails and for providers."""

    INBOX_SIGNING_KEY: Annotated[str, msgspec.Meta(min_length=32)] = ""
    """Signs inbox tokens: 32 bytes or more, and not SECRET_KEY."""
    FIELD_ENCRYPTION_KEYS: str = ""
    """Encrypt sensitive values, such as codes: ``2026:{base64},2025:{base64}``, 32 bytes or more
    each. The first key encrypts, and all decrypt."""
    ADMIN_REQUIRE_OTP: bool = True
    """Require a second factor (TOTP) for the console. Production refuses False."""
    INBOX_ORIGINS: str = ""
    """CORS origins of inboxes, separated by commas: ``https://app.example.com``."""
    INBOX_STREAM_URL: str = ""
    """URL of the stream process for browsers. Empty: PUBLIC_URL, whose proxy routes to it."""
    INBOX_STREAMS: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 500
    """Open streams of a process. Each is a connection and needs an open file."""

    EMAIL_PROVIDER: Literal["sendgrid", "smtp", "sendgrid,smtp", "smtp,sendgrid"] = "sendgrid"
    """With two, the second is for failover."""
    EMAIL_FROM: str = "Notifications <notifications@example.com>"
    EMAIL_REPLY_TO: str = ""
    """Default Reply-To of emails. Empty: replies go to EMAIL_FROM."""
    ATTACHMENT_HOSTS: str = ""
    """Allowed hosts of attachments, separated by commas. Empty: none."""
    SENDGRID_API_KEY: str = ""
    """Empty: emails go to the sandbox, if there is one."""
    SENDGRID_URL: str = ""
    """Empty: https://api.sendgrid.com with a key, the sandbox without one."""
    SENDGRID_WEBHOOK_PUBLIC_KEY: str = ""
    """Base64, as SendGrid shows it. Empty: webhooks are rejected."""
    SMTP_HOST: str = "127.0.0.1"
    SMTP_PORT: Port = 25
    SMTP_USER: str = ""
    SMTP_PASSWORD: str = ""
    SMTP_SECURITY: Literal["none", "starttls", "tls"] = "none"

    FCM_CREDENTIALS: str = ""
    """A Google service account: the path of its JSON, or the JSON. Empty: push is disabled."""
    FCM_PROJECT_ID: str = ""
    """Empty: the project of the service account."""
    FCM_URL: str = "https://fcm.googleapis.com"
    WHATSAPP_TOKEN: str = ""
    """Access token of a system user. Empty: WhatsApp is disabled."""
    WHATSAPP_PHONE_NUMBER_ID: str = ""
    WHATSAPP_APP_SECRET: str = ""
    """Signs Meta's webhooks. Empty: webhooks are rejected."""
    WHATSAPP_VERIFY_TOKEN: str = ""
    """Verify token that Meta sends when the webhook is set up."""
    WHATSAPP_URL: str = "https://graph.facebook.com"
    WHATSAPP_API_VERSION: Annotated[str, msgspec.Meta(pattern=r"^v[1-9]\d?\.\d\Z")] = "v26.0"
    """Version of the Cloud API. Meta supports a version for two years."""

    SENDGRID_MAX_PER_SECOND: PerSecond = 0
    SMTP_MAX_PER_SECOND: PerSecond = 0
    FCM_MAX_PER_SECOND: PerSecond = 10_000
    """Google's quota for a project is 600,000 a minute."""
    WHATSAPP_MAX_PER_SECOND: PerSecond = 80
    """Meta's initial quota for a phone number. Inbound messages count, too."""

    RATE_LIMIT_READ: PerMinute = 30_000
    """For each client and endpoint."""
    RATE_LIMIT_WRITE: PerMinute = 60_000
    """For each client and endpoint. A bulk request is one request."""
    RATE_LIMIT_INBOX: PerMinute = 600
    """For each inbox token's recipient and endpoint."""
    RATE_LIMIT_FAILED: PerMinute = 300
    """Without a valid key or token, for each IP address. Beyond it, 429 until the minute ends."""
    TRUSTED_PROXIES: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0
    """Proxies in front of the web that add to X-Forwarded-For. 0: the header is ignored. If there
    are fewer, a client can forge its address."""

    WEB_CONNECTIONS: Annotated[int, msgspec.Meta(ge=100, le=100_000)] = 4_000
    """Open connections of a web process, within the limit of open files. At the limit, the one that
    has waited longest is closed."""
    WEB_CLIENT_SECONDS: Annotated[float, msgspec.Meta(ge=1, le=600)] = 10
    """Time for a client to send the head of a request. For a body and a response, it adds to
    the time from WEB_CLIENT_RATE."""
    WEB_CLIENT_RATE: Annotated[float, msgspec.Meta(ge=1, le=1_000_000)] = 1_000
    """Minimum bytes per second at which a client sends a body and reads a response."""

    CALLBACK_LOOPBACK: bool = False
    """Allow callbacks to this machine, by http. Production refuses True."""

    SANDBOX_URL: str = ""
    """Destination of all test-mode messages. Empty: they fail."""
    SANDBOX_FCM_CREDENTIALS: str = ""
    """Service account of the sandbox, as FCM_CREDENTIALS. Empty: test pushes fail."""

    ALERT_RECIPIENTS: str = ""
    """Recipients of alerts: email addresses and user ids, separated by commas. Empty: superusers,
    and staff with the role operator or admin."""
    METRICS_TOKEN: str = ""
    """Bearer token of /metrics. Empty: only this machine may read it."""
    ANALYTICS_EVENTS_DAYS: Annotated[int, msgspec.Meta(ge=0, le=3_650)] = 30
    """Retention of analytics events. 0: none are written."""
    OTEL_EXPORTER_OTLP_ENDPOINT: str = ""
    """Trace collector, such as ``http://127.0.0.1:4318``. Empty: none. docs/guides/observe.md"""

    RETENTION_CONTENT_DAYS: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30
    """Retention of content after the last change of a notification. The console overrides it for a
    category."""
    RETENTION_METADATA_DAYS: Annotated[int, msgspec.Meta(ge=7, le=3_650)] = 90
    """Retention of notifications and attempts after the send time. Overridden likewise."""

    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    LOG_FORMAT: Literal["console", "json"] = "json"

    BULK_PENDING_LIMIT: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 100_000
    """Due notifications beyond which bulk requests get 503 with Retry-After."""
    BULK_OLDEST_DUE: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 600
    """Seconds that a notification may be due before bulk requests get 503 with Retry-After."""

    WORKER_THREADS: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    """Threads of a worker process: concurrent tasks and requests to providers."""
    WORKER_MAX_MEMORY_MB: Annotated[int, msgspec.Meta(ge=0)] = 600
    """Resident memory at which a worker is recycled. 0: no limit."""
    WORKER_MAX_TASKS: Annotated[int, msgspec.Meta(ge=0)] = 0
    """Messages after which a worker is recycled. 0: no limit."""

    CRASH_AT: str = ""
    """Fault injection, never on a server: the boundary at which a process dies.
    docs/reference/fault_injection.md"""
    FREEZE_AT: str = ""
    """Fault injection: the boundary at which a process is suspended until SIGCONT."""


def read(environ: Mapping[str, str], *, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the validated environment. ``defaults`` apply to variables that are missing or empty.

    Raises ImproperlyConfigured with the name of an invalid variable.
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
    """Split a list that is separated by commas."""
    return [item for part in text.split(",") if (item := part.strip())]


def local_stack_environment() -> dict[str, str]:
    """Return the environment of the running local stack, or an empty one."""
    if not STACK_FILE.exists():
        return {}
    stack = json.loads(STACK_FILE.read_text())
    return stack["environment"] if is_alive(stack["pid"]) else {}


def is_alive(pid: int) -> bool:
    """Return whether a process with this id exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def current(*, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the environment of this process; see :func:`read`."""
    return read(os.environ, defaults=defaults)
