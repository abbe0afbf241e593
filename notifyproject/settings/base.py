"""Settings that all installations share. :func:`configure` adds those of the environment."""

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from kombu.entity import Exchange, Queue

from domain.channels import Channel
from domain.queues import BROADCASTS, CALLBACKS, DIGESTS, SERVICE, queue_name
from domain.states import Priority

from ..platform import rabbitmq
from ..platform.logs import logging_config
from . import console, sentinel_url, store_urls
from .accounts import AccountSettings
from .declarations import ProviderGroup
from .environment import BASE_DIR, DATA_DIR
from .kinds import split_list
from .variables import PROVIDER_GROUPS, PROVIDER_ORDERS, Environment

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "notifyproject.mongo_apps.MongoAdminConfig",
    "notifyproject.mongo_apps.MongoAuthConfig",
    "notifyproject.mongo_apps.MongoContentTypesConfig",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.forms",
    "notifyproject.mongo_apps.MongoBeatConfig",
    "notifyproject.mongo_apps.MongoAxesConfig",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "notifyproject",
    "access",
    "recipients",
    "rooms",
    "devices",
    "callbacks",
    "notifications",
    "privacy",
    "monitoring",
    "tasks",
    "console",
]

MIDDLEWARE = [
    "notifyproject.platform.middleware.SecurityHeadersMiddleware",
    "notifyproject.platform.middleware.RequestIdMiddleware",
    "notifyproject.platform.tracing.middleware.TracingMiddleware",
    "notifyproject.platform.middleware.DeadlineMiddleware",
    "api.inbox.cors.InboxCorsMiddleware",
    # Before the middleware that checks the host name and redirects to HTTPS.
    "api.probes.ProbeMiddleware",
    "django.middleware.security.SecurityMiddleware",
    # The middleware after it is for pages.
    "api.http.middleware.ApiMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "access.staff.oidc.middleware.OidcSessionMiddleware",
    "access.staff.idle_limit.IdleLimitMiddleware",
    "access.staff.second_factor_middleware.SecondFactorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "access.staff.idle_limit.LostFormMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Innermost, because it renders the page of a refused login.
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "access.staff.permissions.StaffBackend",
]
# Limits are in access/staff/lockout.py. A refused login does not extend the lockout.
AXES_HANDLER = "access.staff.lockout.LockoutHandler"
AXES_LOCKOUT_CALLABLE = "access.staff.lockout.locked_out"
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# Widgets come from templates/ as well.
FORM_RENDERER = "django.forms.renderers.TemplatesSetting"

ROOT_URLCONF = "notifyproject.urls"
WSGI_APPLICATION = "notifyproject.wsgi.application"
ASGI_APPLICATION = "notifyproject.asgi.application"
AUTH_USER_MODEL = "access.StaffUser"
DEFAULT_AUTO_FIELD = "django_mongodb_backend.fields.ObjectIdAutoField"
MIGRATION_MODULES = {
    "admin": "notifyproject.mongo_migrations.admin",
    "auth": "notifyproject.mongo_migrations.auth",
    "contenttypes": "notifyproject.mongo_migrations.contenttypes",
    "django_celery_beat": "notifyproject.mongo_migrations.django_celery_beat",
    "axes": None,
}

LANGUAGE_CODE = "en"
USE_I18N = True
USE_TZ = True
TIME_ZONE = "UTC"

STATIC_URL = "/static/"
STATIC_ROOT = DATA_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# collectstatic stores a compressed copy of each file beside it, and WhiteNoise serves that.
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "whitenoise.storage.CompressedStaticFilesStorage"},
}
UNFOLD = console.UNFOLD
LOGIN_REDIRECT_URL = "admin:index"

# Idle limit of a session. The cookie has no end of its own, because the server extends the session.
SESSION_COOKIE_AGE = 8 * 60 * 60
SESSION_EXPIRE_AT_BROWSER_CLOSE = True

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

DEPLOY_CHECKS_AT_START = False
"""Whether a process also refuses settings that are unsafe on a server."""

ADMIN_REQUIRE_OTP = True
"""Whether all staff need a second factor. Otherwise, only those who set it up."""
CALLBACK_LOOPBACK = False
"""Whether callbacks may lead to this machine, where a client could reach other services."""
BULK_OLDEST_DUE = timedelta(minutes=10)
"""How long a notification may be due before bulk requests must wait."""

# The API limits bodies by route: api/http/body.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024
# Uploads aren't written to the disk, where they would be unencrypted. A larger one is left out.
FILE_UPLOAD_HANDLERS = ("django.core.files.uploadhandler.MemoryFileUploadHandler",)

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["access.clients.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["access.clients.authentication.HasScope"],
    "DEFAULT_PARSER_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "api.http.rendering.JSONOnlyNegotiation",
    "EXCEPTION_HANDLER": "api.http.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_METADATA_CLASS": "api.http.rendering.AllowOnly",
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Notifications",
    "DESCRIPTION": "Sends notifications on several channels, and tracks them.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": [
        "api.openapi.document.add_components",
        "api.openapi.document.complete_document",
    ],
    "SCHEMA_PATH_PREFIX": "/api/v1",
    "COMPONENT_SPLIT_REQUEST": False,
    "SERVE_AUTHENTICATION": [],
    "SERVE_PERMISSIONS": [],
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
}


def configure(environment: Environment) -> dict[str, Any]:
    """Return the settings that depend on the environment: each variable, and what follows."""
    store_urls.check_valkey(environment.REDIS_URL)
    if environment.BROKER_URL:
        store_urls.check_rabbitmq(environment.BROKER_URL)
    return {
        **vars(environment),
        "SECRET_KEY_FALLBACKS": split_list(environment.SECRET_KEY_FALLBACKS),
        "ALLOWED_HOSTS": list(environment.ALLOWED_HOSTS),
        "PUBLIC_URL": environment.PUBLIC_URL.rstrip("/"),
        "DOCS_URL": environment.DOCS_URL.rstrip("/"),
        **{f"RATE_LIMIT_{name.upper()}": limit for name, limit in environment.RATE_LIMITS.items()},
        "DATABASES": _databases(environment),
        "INBOX_STREAM_URL": (environment.INBOX_STREAM_URL or environment.PUBLIC_URL).rstrip("/"),
        **{
            f"{name}S": names or None
            for name, names in vars(environment).items()
            if name in PROVIDER_ORDERS
        },
        "EMAIL_REPLY_TO": environment.EMAIL_REPLY_TO or None,
        "EMAIL_SENDERS": frozenset(environment.EMAIL_SENDERS),
        "ATTACHMENT_HOSTS": frozenset(map(str.lower, environment.ATTACHMENT_HOSTS)),
        **{
            name: value
            for group in PROVIDER_GROUPS
            for name, value in group.of(environment).configure(environment).items()
        },
        "PROVIDER_ACCOUNTS": {
            name: _account(environment, name) for name in environment.PROVIDER_ACCOUNTS
        },
        "ROOMS_URL": environment.ROOMS_URL.rstrip("/"),
        "SANDBOX_URL": environment.SANDBOX_URL.rstrip("/"),
        "PROVIDER_RATES": _provider_rates(environment),
        "MAX_IN_FLIGHT": {
            name: environment.WORKER_THREADS
            if group.needs_threads
            else environment.PROVIDER_MAX_IN_FLIGHT
            for name, group in _groups(environment).items()
        },
        **_celery(environment),
        "LOGGING": logging_config(level=environment.LOG_LEVEL, form=environment.LOG_FORMAT),
        "LOGGING_CONFIG": "notifyproject.platform.logs.configure",
    }


def _account(environment: Environment, name: str) -> AccountSettings:
    """Return what an account's kind makes of the account's variables."""
    variables, own = environment.PROVIDER_ACCOUNTS[name], environment.of_account(name)
    values = SimpleNamespace(**variables.group.of(own).configure(own))
    return AccountSettings(variables=variables, values=values)


def _groups(environment: Environment) -> dict[str, type[ProviderGroup]]:
    """Return the variables of each kind and account, by its name."""
    kinds = {group.provider: group for group in PROVIDER_GROUPS}
    return kinds | {name: found.group for name, found in environment.PROVIDER_ACCOUNTS.items()}


def _databases(environment: Environment) -> dict[str, Any]:
    name = store_urls.mongodb_database(environment.MONGODB_URI)
    return {
        "default": {
            "ENGINE": "notifyproject.db",
            "HOST": environment.MONGODB_URI,
            "NAME": name,
            "OPTIONS": {
                # One connection for each thread, and some for the process.
                "maxPoolSize": environment.WORKER_THREADS + 8,
                "retryWrites": True,
                "w": "majority",
                "journal": True,
                # Without a primary, a request gets a problem document in time.
                "serverSelectionTimeoutMS": 5_000,
                "connectTimeoutMS": 3_000,
                # A host that disappears closes no connection: the driver notices it after
                # the sum of both times, and ends the requests that wait for it.
                "heartbeatFrequencyMS": 2_000,
                "appname": "notifyproject",
            },
        }
    }


def _provider_rates(environment: Environment) -> dict[str, tuple[float, int]]:
    """Return rate per second and burst for each provider with a limit.

    The burst is the messages of a tenth of a second, so that a second has little more than the
    rate.
    """
    rates = environment.PROVIDER_MAX_PER_SECOND.items()
    return {name: (rate, max(1, round(rate / 10))) for name, rate in rates if rate > 0}


def queue_names() -> list[str]:
    """Return all queues in the strict order in which a worker serves them."""
    low = [queue_name(channel, Priority.LOW) for channel in Channel]
    higher = [p for p in Priority if p is not Priority.LOW]
    others = [queue_name(channel, p) for p in higher for channel in Channel]
    return [SERVICE, *others, DIGESTS, *low, CALLBACKS, BROADCASTS]


def urgent_queue_names() -> list[str]:
    """Return the queues of the urgent worker, whose threads no campaign uses."""
    return [SERVICE] + [queue_name(channel, Priority.CRITICAL) for channel in Channel]


def _valkey_broker(environment: Environment) -> dict[str, Any]:
    sentinels = sentinel_url.parse(environment.REDIS_URL)
    return {
        "CELERY_BROKER_URL": sentinels.broker_url() if sentinels else environment.REDIS_URL,
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            # Seconds after which a lost message is redelivered. The sweep is faster.
            "visibility_timeout": 120,
            "queue_order_strategy": "priority",
            "socket_connect_timeout": 1,
            "socket_timeout": 5,
            "socket_keepalive": True,
            "retry_on_timeout": False,
            "health_check_interval": 10,
            **(sentinels.transport_options(timeout=1) if sentinels else {}),
        },
        "CELERY_TASK_QUEUES": [
            Queue(name, Exchange(name), routing_key=name) for name in queue_names()
        ],
        "CELERY_WORKER_POOL": "threads",
    }


def _rabbitmq_broker(environment: Environment) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": environment.BROKER_URL,
        "CELERY_BROKER_TRANSPORT_OPTIONS": rabbitmq.TRANSPORT_OPTIONS,
        "CELERY_BROKER_HEARTBEAT": rabbitmq.HEARTBEAT,
        "CELERY_TASK_QUEUES": [rabbitmq.quorum_queue(name) for name in queue_names()],
        "CELERY_WORKER_POOL": rabbitmq.POOL,
    }


def _celery(environment: Environment) -> dict[str, Any]:
    broker = _rabbitmq_broker if environment.BROKER_URL else _valkey_broker
    return {
        **broker(environment),
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
        "CELERY_TASK_DEFAULT_QUEUE": SERVICE,
        "CELERY_TASK_CREATE_MISSING_QUEUES": False,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
        "CELERY_TASK_IGNORE_RESULT": True,
        # There are no results, so beat needs no task that removes old ones.
        "CELERY_RESULT_EXPIRES": 0,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_WORKER_CONSUMER": "notifyproject.platform.consumer:Consumer",
        # A demoted Valkey, one without memory, or a changed password is an outage of the broker,
        # which a worker outlives.
        "CELERY_BROKER_CHANNEL_ERROR_RETRY": True,
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_CONCURRENCY": environment.WORKER_THREADS,
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_WORKER_SEND_TASK_EVENTS": False,
        # A task may finish during an outage of the broker, because MongoDB has the state.
        "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": False,
        "CELERY_BEAT_SCHEDULER": "tasks.beat:HeartbeatScheduler",
        "CELERY_TIMEZONE": "UTC",
    }
