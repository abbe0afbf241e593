"""All environment variables of the service, with type and default: docs/reference/settings.md."""

import json
import os
import re
from collections.abc import Mapping
from enum import StrEnum, auto
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, get_type_hints

import msgspec
import msgspec.inspect
from django.core.exceptions import ImproperlyConfigured

from domain.hosts import public_name

from . import safety, spelling

BASE_DIR = Path(__file__).resolve().parent.parent.parent
DATA_DIR = BASE_DIR / ".data"
STACK_FILE = DATA_DIR / "stack.json"
"""Process id and environment of a running local stack."""

Port = Annotated[int, msgspec.Meta(ge=0, le=65535)]
PerSecond = Annotated[float, msgspec.Meta(ge=0, le=1_000_000)]
"""Messages per second, over all processes; 0.5 is one every two seconds, and 0 is no limit."""
InFlight = Annotated[int, msgspec.Meta(ge=1, le=4_096)]
"""Maximum requests that a worker process has in flight to a provider."""
PerMinute = Annotated[int, msgspec.Meta(ge=0, le=10_000_000)]
"""Requests per minute, over all web processes; 0 is no limit."""

_JSON = re.compile(r"[\ufeff\s]*['\"]?\s*\{(?!\{)")
"""The beginning of JSON, also behind what the reader of a document removes."""
_TOKEN = re.compile(r"[\x21-\x7e]+")


class Kind(StrEnum):
    """What the text of a variable is. Secrets and URLs have rules in ``safety.py``."""

    SECRET = auto()
    URL = auto()
    TEXT = auto()


Secret = Annotated[str, msgspec.Meta(extra={"kind": Kind.SECRET})]
Url = Annotated[str, msgspec.Meta(extra={"kind": Kind.URL})]
"""One URL, or several that are separated by commas."""
Text = Annotated[str, msgspec.Meta(extra={"kind": Kind.TEXT})]


def _form(pattern: str, description: str) -> msgspec.Meta:
    """Return the rule that the whole text has a form."""
    return msgspec.Meta(pattern=rf"^(?:{pattern})\Z", description=description)


Host = Annotated[
    Text,
    _form(
        r"[A-Za-z0-9_]([A-Za-z0-9_.-]*[A-Za-z0-9_.])?|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*",
        "a host name or an IP address, without a scheme, a port, or brackets",
    ),
]
People = Annotated[
    Text,
    _form(
        r"[^\s,;<>]+(\s*,\s*([^\s,;<>]+)?)*",
        "email addresses without names, or user IDs, separated by commas",
    ),
]
MetaId = Annotated[Text, _form(r"[0-9]+", "an ID of digits, as Meta shows it")]
PublicKey = Annotated[
    Text,
    _form(
        r"[A-Za-z0-9+/]{80,}={0,2}", "the verification key as SendGrid shows it: base64 in one line"
    ),
]
EhloName = Annotated[
    Text,
    _form(
        r"[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*|\[(?:IPv6:[0-9A-Fa-f:.]+|[0-9.]+)\]",
        "a domain, or an IP address in brackets",
    ),
]
"""See RFC 5321, 4.1.3."""
ApiVersion = Annotated[Text, _form(r"v[1-9][0-9]?\.[0-9]", "a version such as v26.0")]


class Environment(msgspec.Struct, frozen=True, kw_only=True):
    """The validated environment. Fields have the names of the variables."""

    PORT: Port = 8000
    SECRET_KEY: Secret = ""
    SECRET_KEY_FALLBACKS: Secret = ""
    ALLOWED_HOSTS: Text = ""
    MONGODB_URI: Url = "mongodb://127.0.0.1:27017/notifyproject"
    REDIS_URL: Url = "redis://127.0.0.1:6379/0"
    BROKER_URL: Url = ""
    PUBLIC_URL: Url = "http://127.0.0.1:8000"
    HSTS: Literal["host", "subdomains", "preload"] = "host"

    INBOX_SIGNING_KEY: Annotated[Secret, msgspec.Meta(min_length=32)] = ""
    FIELD_ENCRYPTION_KEYS: Secret = ""
    ADMIN_REQUIRE_OTP: bool = True
    OIDC_ISSUER: Url = ""
    OIDC_CLIENT_ID: Text = ""
    OIDC_CLIENT_SECRET: Secret = ""
    OIDC_NAME: Annotated[Text, msgspec.Meta(max_length=40)] = "single sign-on"
    OIDC_SCOPES: Text = "openid profile email"
    OIDC_GROUPS_CLAIM: Text = "groups"
    OIDC_GROUP_ROLES: Text = ""
    OIDC_ACR_VALUES: Text = ""
    INBOX_ORIGINS: Url = ""
    INBOX_STREAM_URL: Url = ""
    INBOX_STREAMS: Annotated[int, msgspec.Meta(ge=1, le=100_000)] = 500

    EMAIL_PROVIDER: Literal["sendgrid", "smtp", "sendgrid,smtp", "smtp,sendgrid"] = "sendgrid"
    EMAIL_FROM: Text = "Notifications <notifications@example.com>"
    EMAIL_REPLY_TO: Text = ""
    ATTACHMENT_HOSTS: Text = ""
    SENDGRID_API_KEY: Secret = ""
    SENDGRID_URL: Url = ""
    SENDGRID_WEBHOOK_PUBLIC_KEY: PublicKey = ""
    SMTP_HOST: Host = "127.0.0.1"
    SMTP_PORT: Port = 25
    SMTP_USER: Text = ""
    SMTP_PASSWORD: Secret = ""
    SMTP_SECURITY: Literal["none", "starttls", "tls"] = "none"
    SMTP_EHLO_NAME: EhloName = ""
    FCM_CREDENTIALS: Secret = ""
    FCM_PROJECT_ID: Text = ""
    FCM_URL: Url = "https://fcm.googleapis.com"
    WHATSAPP_TOKEN: Secret = ""
    WHATSAPP_PHONE_NUMBER_ID: MetaId = ""
    WHATSAPP_BUSINESS_ACCOUNT_ID: MetaId = ""
    WHATSAPP_APP_SECRET: Secret = ""
    WHATSAPP_VERIFY_TOKEN: Secret = ""
    WHATSAPP_URL: Url = "https://graph.facebook.com"
    WHATSAPP_API_VERSION: ApiVersion = "v26.0"

    SENDGRID_MAX_PER_SECOND: PerSecond = 0
    SMTP_MAX_PER_SECOND: PerSecond = 0
    FCM_MAX_PER_SECOND: PerSecond = 10_000
    WHATSAPP_MAX_PER_SECOND: PerSecond = 80

    SENDGRID_MAX_IN_FLIGHT: InFlight = 512
    FCM_MAX_IN_FLIGHT: InFlight = 512
    WHATSAPP_MAX_IN_FLIGHT: InFlight = 512

    RATE_LIMIT_READ: PerMinute = 30_000
    RATE_LIMIT_WRITE: PerMinute = 60_000
    RATE_LIMIT_INBOX: PerMinute = 600
    RATE_LIMIT_FAILED: PerMinute = 300
    TRUSTED_PROXIES: Annotated[int, msgspec.Meta(ge=0, le=10)] = 0

    WEB_CONNECTIONS: Annotated[int, msgspec.Meta(ge=100, le=100_000)] = 4_000
    WEB_CLIENT_SECONDS: Annotated[float, msgspec.Meta(ge=1, le=600)] = 10
    WEB_CLIENT_RATE: Annotated[float, msgspec.Meta(ge=1, le=1_000_000)] = 1_000
    CALLBACK_LOOPBACK: bool = False
    SANDBOX_URL: Url = ""
    SANDBOX_FCM_CREDENTIALS: Secret = ""

    ALERT_RECIPIENTS: People = ""
    METRICS_TOKEN: Secret = ""
    ANALYTICS_EVENTS_DAYS: Annotated[int, msgspec.Meta(ge=0, le=3_650)] = 30
    OTEL_EXPORTER_OTLP_ENDPOINT: Url = ""

    RETENTION_CONTENT_DAYS: Annotated[int, msgspec.Meta(ge=1, le=3_650)] = 30
    RETENTION_METADATA_DAYS: Annotated[int, msgspec.Meta(ge=7, le=3_650)] = 90

    LOG_LEVEL: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"
    LOG_FORMAT: Literal["console", "json"] = "json"
    BULK_PENDING_LIMIT: Annotated[int, msgspec.Meta(ge=0, le=10_000_000)] = 100_000
    BULK_OLDEST_DUE: Annotated[int, msgspec.Meta(ge=1, le=86_400)] = 600
    WORKER_THREADS: Annotated[int, msgspec.Meta(ge=1, le=512)] = 32
    WORKER_MAX_MEMORY_MB: Annotated[int, msgspec.Meta(ge=0)] = 600
    WORKER_MAX_TASKS: Annotated[int, msgspec.Meta(ge=0)] = 0
    HEARTBEAT_DIR: Text = ""

    CRASH_AT: Text = ""
    FREEZE_AT: Text = ""

    @property
    def ehlo_name(self) -> str:
        """The name with which this service greets a mail server, or an empty text."""
        return self.SMTP_EHLO_NAME or public_name(self.PUBLIC_URL)


def read(environ: Mapping[str, str], *, defaults: Mapping[str, str] | None = None) -> Environment:
    """Return the validated environment, with defaults.

    Raises ImproperlyConfigured, which names each wrong variable and has no value.
    """
    values, problems = {}, []
    for name in Environment.__struct_fields__:
        if text := environ.get(name) or (defaults or {}).get(name):
            values[name] = text
            if problem := _problem(name, text):
                problems.append(f"environment variable {name}: {problem}.")
    if problems:
        raise ImproperlyConfigured("\n".join(problems))
    return msgspec.convert(values, Environment, strict=False)


def _problem(name: str, text: str) -> str | None:
    """Return what is wrong with the text of a variable, without the text, or None."""
    rule, url_rule = safety.SECRETS.get(name), safety.URLS.get(name)
    form = rule.form if rule else None
    if form is safety.SecretForm.DOCUMENT and _JSON.match(text):
        return None
    if form is safety.SecretForm.PASSWORD:
        return spelling.ends_problem(text)
    if problem := spelling.leftover_problem(text):
        return problem
    if not spelling.converts(text, _hints()[name]):
        return f"expected {spelling.expectation(_types()[name])}"
    if form is safety.SecretForm.TOKEN and not _TOKEN.fullmatch(text):
        return "has a space, or a character that isn't ASCII"
    # Origins are a list, which has a rule of its own.
    is_one_url = url_rule is not None and name != "INBOX_ORIGINS"
    return safety.url_form_problem(url_rule, text) if url_rule and is_one_url else None


@cache
def _hints() -> dict[str, Any]:
    return get_type_hints(Environment, include_extras=True)


@cache
def _types() -> dict[str, msgspec.inspect.Type]:
    return {name: msgspec.inspect.type_info(hint) for name, hint in _hints().items()}


def kinds() -> dict[str, Kind | None]:
    """Return the kind of each variable; None for a number or one of a few words."""
    found: dict[str, Kind | None] = {}
    for name, hint in _hints().items():
        metas = getattr(hint, "__metadata__", ())
        extras = [one.extra for one in metas if isinstance(one, msgspec.Meta) and one.extra]
        found[name] = next((extra["kind"] for extra in extras if "kind" in extra), None)
    return found


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
