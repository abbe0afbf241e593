"""All environment variables of the service but those of providers, each declared once.

From a declaration come parsing (``environment.py``), ``.env.example``, the settings page, the
Kubernetes lists (``documents.py``), and the questions of the set-up wizard.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from domain.channels import Channel

from . import kinds
from .declarations import Group, declare, variables
from .kinds import Kind
from .provider_groups import find_groups, names_of, order_variable
from .safety import Plain

PROVIDER_GROUPS = find_groups()
"""The variables of each provider, which its package declares."""
PROVIDER_RATES = "PROVIDER_MAX_PER_SECOND"
_LIMITS = "read:30000,write:60000,inbox:600,failed:300"


def order_kind(
    channel: str, *accounts: str, refused: Mapping[str, str] | None = None
) -> Kind[tuple[str, ...]]:
    """Return the kind of a list of providers of a channel: kinds, and declared accounts."""
    return kinds.names(
        *names_of(channel), *accounts, more="accounts, in order", refused=refused or {}
    )


def rates_kind(accounts: Mapping[str, int]) -> tuple[Kind[Mapping[str, float]], str]:
    """Return the kind of the providers' rates, and its default with those of the accounts."""
    rates = {**{group.provider: group.rate for group in PROVIDER_GROUPS}, **accounts}
    default = ",".join(f"{name}:{rate}" for name, rate in rates.items())
    return kinds.numbers(kinds.number(0, 1_000_000), defaults=default), default


_RATES_KIND, _RATES = rates_kind({})


class General(Group):
    """Keys, addresses, and stores of every process."""

    heading = "General"

    SECRET_KEY: str = declare(
        kinds.token(min_length=50),
        "",
        "signs sessions, cursors, and unsubscribe links; `openssl rand -base64 48`",
        is_required=True,
        example="",
        local="only-for-one-machine-" + "0" * 40,
        test="only-for-tests-" + "0" * 40,
    )
    SECRET_KEY_FALLBACKS: str = declare(
        kinds.token(min_length=50),
        "",
        "earlier values of `SECRET_KEY`, separated by commas, which still verify",
        see="guides/keys.md",
    )
    FIELD_ENCRYPTION_KEYS: Mapping[str, bytes] = declare(
        kinds.keys(min_length=32),
        "",
        "encrypt sensitive variables: `id:base64,…` of at least 32 bytes each, such as "
        "`2026:{output of openssl rand -base64 48}`; the first encrypts, all decrypt",
        see="guides/keys.md",
        is_required=True,
        example="",
        local="local:" + "0" * 64,
        test="tests:" + "0" * 64,
    )
    ALLOWED_HOSTS: tuple[str, ...] = declare(
        kinds.items(),
        "",
        "host names of the web, separated by commas; `.example.com` includes subdomains",
        is_required=True,
        example="notify.example.com",
        local="127.0.0.1,localhost,[::1]",
        test="testserver,127.0.0.1,localhost",
    )
    PUBLIC_URL: str = declare(
        kinds.url(Plain.LOOPBACK),
        "http://127.0.0.1:8000",
        "the web's address, and the start of links in mail",
        is_required=True,
        example="https://notify.example.com",
        question="Address of the web, such as https://notify.example.com",
    )
    DOCS_URL: str = declare(
        kinds.url(Plain.LOOPBACK),
        "",
        "address of the documentation's site (`make docs`), which problems and the console link",
        empty="no links",
    )
    HSTS: str = declare(
        kinds.choice("host", "subdomains", "preload"),
        "host",
        "`Strict-Transport-Security` of a server for a year; `preload` includes subdomains and "
        "can't be undone quickly",
    )
    MONGODB_URI: str = declare(
        kinds.url(Plain.ANY, "mongodb", "mongodb+srv"),
        "mongodb://127.0.0.1:27017/notifyproject",
        "URI of a replica set; the path is the database; `docker-compose.yml` sets it",
        is_required=True,
    )
    REDIS_URL: str = declare(
        kinds.url(Plain.ANY, "redis", "rediss", "sentinel", "unix"),
        "redis://127.0.0.1:6379/0",
        "Valkey or Redis: broker, circuit breakers, rate limits, stream signals; with Sentinels "
        "`sentinel://:password@host:26379,host:26379/0?master=notify`; `docker-compose.yml` sets "
        "it",
        see="guides/cluster.md#sentinel",
        is_required=True,
    )
    BROKER_URL: str = declare(
        kinds.url(Plain.ANY, "amqp", "amqps"),
        "",
        "RabbitMQ 3.10 or later as Celery's broker: `amqp://user:password@host:5672/vhost`",
        empty="`REDIS_URL`",
        see="decisions/0040-rabbitmq.md",
    )
    TRUSTED_PROXIES: int = declare(
        kinds.whole(0, 10),
        "0",
        "proxies in front of the web that add to `X-Forwarded-For`; 0: the header is ignored",
        example="1",
    )
    LOG_LEVEL: str = declare(
        kinds.choice("DEBUG", "INFO", "WARNING", "ERROR"),
        "INFO",
        "level of the log",
        test="WARNING",
    )
    LOG_FORMAT: str = declare(
        kinds.choice("json", "console"), "json", "form of the log", local="console", test="console"
    )


class SignIn(Group):
    """Without `OIDC_ISSUER`, staff sign in with a password."""

    heading = "Sign-in by OpenID Connect"
    see = "guides/sign_in.md"

    OIDC_ISSUER: str = declare(
        kinds.url(Plain.LOOPBACK),
        "",
        "the provider's `issuer`, exactly as its discovery document states it",
    )
    OIDC_CLIENT_ID: str = declare(
        kinds.text(), "", "required with an issuer; the console's ID at the provider"
    )
    OIDC_CLIENT_SECRET: str = declare(
        kinds.token(min_length=8, is_issued=True),
        "",
        "required with an issuer; the console's secret",
    )
    OIDC_NAME: str = declare(
        kinds.text(r".{1,40}", "a text of at most 40 characters"),
        "single sign-on",
        "name of the provider on the sign-in page",
    )
    OIDC_SCOPES: tuple[str, ...] = declare(
        kinds.items(split=str.split),
        "openid profile email",
        "scopes, separated by spaces; many providers need `offline_access` for a refresh token, "
        "and some `groups`",
    )
    OIDC_GROUPS_CLAIM: str = declare(
        kinds.text(), "groups", "claim of the ID token or of userinfo with the person's groups"
    )
    OIDC_GROUP_ROLES: Mapping[str, str] = declare(
        kinds.group_roles(),
        "",
        "required with an issuer; `group:role,…`; the roles are `viewer`, `support`, `operator`, "
        "`approver`, and `admin`",
    )
    OIDC_ACR_VALUES: tuple[str, ...] = declare(
        kinds.items(split=str.split),
        "",
        "values of `acr` that stand for a second factor, separated by spaces; requested at "
        "sign-in; `mfa` in `amr` always counts",
    )


class Inbox(Group):
    """Pages of your own show inboxes."""

    heading = "Inbox"
    see = "guides/inbox.md"

    INBOX_SIGNING_KEY: str = declare(
        kinds.token(min_length=32, start_length=32),
        "",
        "signs inbox tokens; another one than `SECRET_KEY`",
        is_required=True,
        example="",
        local="only-for-inboxes-of-one-machine-" + "0" * 40,
        test="only-for-inboxes-of-tests-" + "0" * 40,
    )
    INBOX_ORIGINS: frozenset[str] = declare(
        kinds.origins(),
        "",
        "origins of pages that may read inboxes, separated by commas",
        empty="no page can show the inbox",
        example="https://app.example.com",
        question="Origins of pages with the inbox, or nothing",
    )
    INBOX_STREAM_URL: str = declare(
        kinds.url(Plain.LOOPBACK),
        "",
        "address of the stream process for browsers",
        empty="`PUBLIC_URL`",
    )
    INBOX_STREAMS: int = declare(kinds.whole(1, 100_000), "500", "streams per process")


class Email(Group):
    """The providers of email in the order of failover, and what all of them share."""

    heading = "Email"
    see = "guides/channels.md"

    EMAIL_PROVIDER: tuple[str, ...] = declare(
        order_kind("email"),
        names_of("email")[0],
        "a provider, or several in the order of failover, or accounts of them",
        see="guides/accounts.md",
        question=f"Mail provider: {' or '.join(names_of('email'))}",
    )
    EMAIL_FROM: str = declare(
        kinds.text(),
        "Notifications <notifications@example.com>",
        "sender; the provider must allow it",
        example="Notifications <notifications@example.com>",
        question="Sender, such as Shop <shop@example.com>",
    )
    EMAIL_REPLY_TO: str = declare(
        kinds.text(), "", "reply address, unless a request has one", empty="`EMAIL_FROM`"
    )
    EMAIL_SENDERS: tuple[str, ...] = declare(
        kinds.items(),
        "",
        "senders that brands may have beside `EMAIL_FROM`: addresses, and whole domains such as "
        "`@acme.example`",
        empty="none",
        see="guides/templates.md#a-sender-and-an-account",
    )
    ATTACHMENT_HOSTS: tuple[str, ...] = declare(
        kinds.items(), "", "hosts of attachments, separated by commas", empty="no attachments"
    )


class Sms(Group):
    """Text messages, by whichever provider."""

    heading = "SMS"
    see = "guides/channels.md#sms"

    SMS_PROVIDER: tuple[str, ...] = declare(
        order_kind("sms"),
        "",
        "a provider, or several in the order of failover, or accounts of them",
        empty="all that are configured",
        see="guides/accounts.md",
    )
    SMS_COUNTRIES: tuple[str, ...] = declare(
        kinds.items(r"[A-Z]{2}( *, *[A-Z]{2})*", "codes of countries such as PT,ES"),
        "",
        "codes of the countries that get SMS, your own first: `PT,ES`",
        empty="no country gets any, and a check fails with a provider",
        local="GB,PT",
        test="GB,PT",
    )
    SMS_DAILY_UNITS: int = declare(
        kinds.whole(0, 1_000_000_000),
        "10000",
        "most parts of SMS that a client sends in a day; more are held until midnight UTC; 0: no "
        "limit",
    )
    SMS_DAILY_UNITS_ABROAD: int = declare(
        kinds.whole(0, 1_000_000_000),
        "100",
        "most of them to other countries than the first of `SMS_COUNTRIES`; 0: no limit of its own",
    )
    SMS_CODES_PER_NUMBER: int = declare(
        kinds.whole(0, 100),
        "5",
        "most messages with sensitive variables, such as login codes, to a number in ten minutes; "
        "further ones are suppressed; 0: no limit",
    )
    SMS_PRICES: Mapping[str, Decimal] = declare(
        kinds.prices(),
        "",
        "price of a part by country, by which the console shows what texts cost: "
        "`PT:0.036,GB:0.04`",
        empty="no prices",
        local="GB:0.04,PT:0.036",
    )
    SMS_CURRENCY: str = declare(
        kinds.text(r"[A-Z]{3}", "a code such as EUR"), "USD", "currency of `SMS_PRICES`"
    )
    SMS_SMART_ENCODING: bool = declare(
        kinds.switch(),
        "on",
        "whether typographic quotes, dashes, dots, and blanks become plain ones if a text then has "
        "fewer parts to pay for: `on`, `off`",
    )


class Approval(Group):
    """What another person approves before it is sent."""

    heading = "Approval"
    see = "guides/approval.md"

    MARKETING_APPROVAL_ABOVE: int | None = declare(
        kinds.optional_whole(0, 100_000_000),
        "",
        "marketing broadcasts to more recipients than this need an approval, whatever their types "
        "say; 0: all of them",
        empty="only those whose type needs one",
    )


class Rooms(Group):
    """Rooms are set up in the console, each with its own URL."""

    heading = "Rooms"
    see = "guides/rooms.md"

    ROOMS_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "address of the sandbox, in place of the hosts of all rooms",
        empty="each room's own URL",
    )


class ProviderLimits(Group):
    """How much a provider gets."""

    heading = "Provider rates"
    see = "guides/channels.md#rate-limits"

    PROVIDER_MAX_PER_SECOND: Mapping[str, float] = declare(
        _RATES_KIND,
        _RATES,
        "messages per second over all workers, or parts of SMS: `provider:number,…`; 0: no limit; "
        "a provider that isn't named keeps its default, an account that of its kind",
        see="reference/providers.md",
    )
    PROVIDER_MAX_IN_FLIGHT: int = declare(
        kinds.whole(1, 4_096),
        "512",
        "most requests in flight to a provider, per worker process; the number adapts to what the "
        "provider takes; one that needs a thread for each has at most `WORKER_THREADS`",
    )


class RequestLimits(Group):
    """How much a client may ask for."""

    heading = "Request limits"
    see = "reference/limits.md"

    RATE_LIMITS: Mapping[str, int] = declare(
        kinds.numbers(kinds.whole(0, 10_000_000), defaults=_LIMITS),
        _LIMITS,
        "requests per minute: `name:number,…`; 0: no limit; one that isn't named keeps its "
        "default; `read` and `write` per client and endpoint, `inbox` per recipient with an inbox "
        "token, `failed` per IP address without a valid key or token",
        # Tests send from one address. Those of limits set their own.
        test="read:0,write:0,inbox:0,failed:0",
    )
    WEB_CONNECTIONS: int = declare(kinds.whole(100, 100_000), "4000", "connections per web process")
    WEB_CLIENT_SECONDS: float = declare(
        kinds.number(1, 600),
        "10",
        "deadline for a head, and for a body or response besides a second per 1,000 bytes",
    )
    BULK_PENDING_LIMIT: int = declare(
        kinds.whole(0, 10_000_000),
        "100000",
        "due notifications above which bulk create is rejected and broadcasts wait, as they do "
        "while the oldest one has been due for ten minutes",
    )


class TestMode(Group):
    """A sandbox for clients in test mode."""

    heading = "Test mode"
    see = "guides/channels.md#test-mode"

    SANDBOX_URL: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "address of the sandbox",
        empty="test sends fail",
        local="http://127.0.0.1:8001",
        test="http://127.0.0.1:8001",
    )


class Monitoring(Group):
    """Who watches the service, and what they may read."""

    heading = "Monitoring"
    see = "guides/observe.md"

    ALERT_RECIPIENTS: tuple[str, ...] = declare(
        kinds.items(
            r"[^\s,;<>]+(\s*,\s*([^\s,;<>]+)?)*",
            "email addresses without names, or user IDs, separated by commas",
        ),
        "",
        "email addresses and user IDs, separated by commas",
        empty="operators and admins",
    )
    ALERT_ROOM: str = declare(
        kinds.text(r"[a-z0-9][a-z0-9_-]{0,63}", "the ID of a room"),
        "",
        "room that gets each alert, beside the people",
        empty="the room `alerts`, if there is one",
    )
    METRICS_TOKEN: str = declare(
        kinds.token(min_length=16),
        "",
        "bearer token of `/metrics`: `openssl rand -hex 32`",
        empty="this machine only",
        example="",
    )
    OTEL_EXPORTER_OTLP_ENDPOINT: str = declare(
        kinds.url(Plain.PRIVATE),
        "",
        "OpenTelemetry collector, such as `http://collector:4318`",
        empty="no traces",
        see="guides/observe.md#traces",
    )
    HEARTBEAT_DIR: str = declare(
        kinds.text(),
        "",
        "folder of the file that worker, beat, or sweeper writes for `manage.py healthcheck`, one "
        "per program on a shared host; the image sets `/tmp`",
        empty="none is written",
    )


class Retention(Group):
    """Days that data is kept, unless a category has its own in the console."""

    heading = "Retention"
    see = "guides/privacy.md"

    RETENTION_CONTENT_DAYS: int = declare(
        kinds.whole(1, 3_650), "30", "days of content after the last change"
    )
    RETENTION_METADATA_DAYS: int = declare(
        kinds.whole(7, 3_650), "90", "days of the record after the send time"
    )
    ANALYTICS_EVENTS_DAYS: int = declare(
        kinds.whole(0, 3_650), "30", "days that analytics events are kept; 0: none are written"
    )
    REQUEST_LOG_DAYS: int = declare(
        kinds.whole(0, 365),
        "7",
        "days that requests of API clients are kept for the console; 0: none are written",
        test="0",
    )


class Workers(Group):
    """Size of a worker process."""

    heading = "Workers"
    see = "guides/scale.md"

    WORKER_THREADS: int = declare(
        kinds.whole(1, 512),
        "32",
        "threads per worker process: tasks, and concurrent connections to a mail server",
    )
    WORKER_MAX_MEMORY_MB: int = declare(
        kinds.whole(0), "600", "memory at which a worker is recycled; 0: no limit"
    )


class FaultInjection(Group):
    """Fault injection. A server refuses both."""

    heading = "Fault injection"
    see = "reference/fault_injection.md"

    CRASH_AT: str = declare(kinds.text(), "", "boundary at which a process kills itself")
    FREEZE_AT: str = declare(kinds.text(), "", "boundary at which a process stops itself")


class Environment(
    General,
    SignIn,
    Inbox,
    Email,
    Sms,
    Approval,
    Rooms,
    ProviderLimits,
    RequestLimits,
    TestMode,
    Monitoring,
    Retention,
    Workers,
    FaultInjection,
):
    """The validated environment. Fields have the names of the variables.

    Those of a provider are read by :meth:`.declarations.ProviderGroup.of`.
    """

    PROVIDER_ACCOUNTS: Mapping[str, Any]
    """The declared accounts of providers: an :class:`.accounts.AccountVariables` by name."""

    def __init__(self, **values: Any) -> None:
        super().__init__(**{"PROVIDER_ACCOUNTS": {}} | _PROVIDER_DEFAULTS | values)

    def of_account(self, name: str) -> "Environment":
        """Return it as the kind of an account sees it: with the account's values."""
        return Environment(**vars(self) | dict(self.PROVIDER_ACCOUNTS[name].values))


class Compose(Group):
    """Only `docker-compose.yml` reads these. Letters and digits: `openssl rand -hex 32`."""

    heading = "Stores of Compose"

    MONGODB_PASSWORD: str = declare(kinds.password(), "", "password of MongoDB", example="")
    VALKEY_PASSWORD: str = declare(kinds.password(), "", "password of Valkey", example="")


_GENERAL: tuple[type[Group], ...] = Environment.__bases__
_BEFORE = _GENERAL.index(ProviderLimits)
GROUPS: tuple[type[Group], ...] = (*_GENERAL[:_BEFORE], *PROVIDER_GROUPS, *_GENERAL[_BEFORE:])
VARIABLES = {variable.name: variable for group in GROUPS for variable in variables(group)}
"""The variables of the service, by name."""
PROVIDER_ORDERS = frozenset(order_variable(channel.value) for channel in Channel)
"""Variables with the providers of a channel in order; a channel with one provider needs none."""
_PROVIDER_DEFAULTS = {
    variable.name: variable.value for group in PROVIDER_GROUPS for variable in variables(group)
}
SECRETS = {
    name: variable.kind.secret for name, variable in VARIABLES.items() if variable.kind.secret
}
URLS = {name: variable.kind.url for name, variable in VARIABLES.items() if variable.kind.url}
"""Their rules on a server, by name."""
