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


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The environment, checked. A field's name is the variable's."""

    PORT: Port = 8000
    """Where the local stack's web listens; the sandbox takes the next one."""
    SECRET_KEY: str = ""
    ALLOWED_HOSTS: str = ""
    """Host names the web answers to, separated by commas."""

    MONGODB_URI: str = "mongodb://127.0.0.1:27017/notifyproject"
    """A replica set's URI; the path names the database."""
    REDIS_URL: str = "redis://127.0.0.1:6379/0"

    PUBLIC_URL: str = "http://127.0.0.1:8000"
    """Where people and providers reach the web: links in mail begin with it."""

    EMAIL_PROVIDER: Literal["sendgrid", "smtp", "sendgrid,smtp", "smtp,sendgrid"] = "sendgrid"
    """With two, the second is given what the first does not take."""
    EMAIL_FROM: str = "Notifications <notifications@example.com>"
    EMAIL_REPLY_TO: str = ""
    """Where answers to mail go, unless a request says otherwise. Empty: to EMAIL_FROM."""
    ATTACHMENT_HOSTS: str = ""
    """Hosts that attachments of mail may be fetched from, separated by commas. Empty: none."""
    SENDGRID_API_KEY: str = ""
    """Empty: mail goes to the sandbox."""
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

    RATE_SENDGRID: PerSecond = 0
    RATE_SMTP: PerSecond = 0
    RATE_FCM: PerSecond = 10_000
    """600,000 a minute is what Google grants a project."""
    RATE_WHATSAPP: PerSecond = 80
    """What Meta grants a phone number at first; what people send to it counts, too."""

    SANDBOX_URL: str = "http://127.0.0.1:8001"

    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    LOG_FORMAT: Literal["console", "json"] = "json"

    WORKER_THREADS: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    """Threads of a worker process: tasks, and requests to providers, at once."""


def read(environ: Mapping[str, str], *, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the checked environment; ``defaults`` fill what ``environ`` does not name.

    Raises ImproperlyConfigured naming the variable that has a wrong value.
    """
    given = {
        name: value
        for name in Environment.__struct_fields__
        if (value := environ.get(name) or (defaults or {}).get(name))
    }
    try:
        return msgspec.convert(given, Environment, strict=False)
    except msgspec.ValidationError as error:
        raise ImproperlyConfigured(f"environment variable: {error}") from error


def of_local_stack() -> dict[str, str]:
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
