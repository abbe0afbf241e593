"""Settings every installation shares. Build on this through :func:`configure`."""

import base64
import re
from datetime import timedelta
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from kombu.entity import Exchange, Queue
from pymongo.uri_parser import parse_uri

from domain.queues import CALLBACKS as CALLBACK_QUEUE
from domain.states import Channel, Priority

from ..platform.logs import logging_config
from . import console, providers
from .environment import BASE_DIR, DATA_DIR, Environment, split_list

ORIGIN = re.compile(r"https?://([a-z0-9.-]+|\[[0-9a-f:]+\])(:[0-9]{1,5})?", re.ASCII)
ENCRYPTION_KEY_ID = re.compile(r"[a-z0-9_-]{1,32}", re.ASCII)
SERVICE_QUEUE = "service"
"""Short tasks that keep the others going: sweep, rescue."""
BROADCAST_QUEUE = "broadcasts"
"""Pages of broadcasts: more is accepted when nothing that was accepted waits."""

INSTALLED_APPS = [
    "unfold",
    "unfold.contrib.filters",
    "notifyproject.mongo_apps.MongoAdminConfig",
    "notifyproject.mongo_apps.MongoAuthConfig",
    "notifyproject.mongo_apps.MongoContentTypesConfig",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "notifyproject.mongo_apps.MongoBeatConfig",
    "notifyproject.mongo_apps.MongoAxesConfig",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "notifyproject",
    "access",
    "recipients",
    "devices",
    "analytics",
    "callbacks",
    "notifications",
    "privacy",
    "monitoring",
    "background",
    "console",
]

MIDDLEWARE = [
    "notifyproject.platform.middleware.SecurityHeadersMiddleware",
    "notifyproject.platform.middleware.RequestIdMiddleware",
    "notifyproject.platform.tracing.middleware.TracingMiddleware",
    "notifyproject.platform.middleware.DeadlineMiddleware",
    "notifyproject.platform.middleware.ClockMiddleware",
    "api.inbox.cors.InboxCorsMiddleware",
    "api.http.rate_limits.RateLimitMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "access.staff.second_factor_gate.SecondFactorMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    # Innermost: it makes a page of a login that axes did not allow.
    "axes.middleware.AxesMiddleware",
]
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "access.staff.permissions.StaffBackend",
]
# Limits and windows are in access/staff/lockout.py. What is refused does not make the wait longer.
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
            ],
        },
    },
]

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
STATICFILES_DIRS = console.STATICFILES_DIRS
UNFOLD = console.UNFOLD
LOGIN_REDIRECT_URL = console.LOGIN_REDIRECT_URL

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

# The API reads its bodies itself, with a cap for each route: api/http/body.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["access.clients.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["access.clients.authentication.HasScope"],
    "DEFAULT_THROTTLE_CLASSES": ["api.http.rate_limits.ClientThrottle"],
    "DEFAULT_PARSER_CLASSES": ["api.http.body.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["api.http.rendering.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "api.http.rendering.JSONOnlyNegotiation",
    "EXCEPTION_HANDLER": "api.http.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_METADATA_CLASS": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Notifications",
    "DESCRIPTION": "Sends notifications by email, push, WhatsApp and in-app, and tracks their delivery.",
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
    """Return the settings that follow from the environment."""
    return {
        "SECRET_KEY": environment.SECRET_KEY,
        "ALLOWED_HOSTS": split_list(environment.ALLOWED_HOSTS),
        "PUBLIC_URL": environment.PUBLIC_URL.rstrip("/"),
        "REDIS_URL": environment.REDIS_URL,
        "WORKER_THREADS": environment.WORKER_THREADS,
        "WORKER_MAX_MEMORY_MB": environment.WORKER_MAX_MEMORY_MB,
        "WORKER_MAX_TASKS": environment.WORKER_MAX_TASKS,
        "BULK_PENDING_LIMIT": environment.BULK_PENDING_LIMIT,
        "BULK_OLDEST_DUE": timedelta(seconds=environment.BULK_OLDEST_DUE),
        "RATE_LIMIT_READ": environment.RATE_LIMIT_READ,
        "RATE_LIMIT_WRITE": environment.RATE_LIMIT_WRITE,
        "RATE_LIMIT_INBOX": environment.RATE_LIMIT_INBOX,
        "RATE_LIMIT_FAILED": environment.RATE_LIMIT_FAILED,
        "TRUSTED_PROXIES": environment.TRUSTED_PROXIES,
        "CALLBACK_LOOPBACK": environment.CALLBACK_LOOPBACK,
        "ALERT_RECIPIENTS": tuple(split_list(environment.ALERT_RECIPIENTS)),
        "ANALYTICS_EVENTS_DAYS": environment.ANALYTICS_EVENTS_DAYS,
        "RETENTION_CONTENT_DAYS": environment.RETENTION_CONTENT_DAYS,
        "RETENTION_METADATA_DAYS": environment.RETENTION_METADATA_DAYS,
        "DATABASES": _databases(environment),
        "FIELD_ENCRYPTION_KEYS": _field_encryption_keys(environment.FIELD_ENCRYPTION_KEYS),
        "ADMIN_REQUIRE_OTP": environment.ADMIN_REQUIRE_OTP,
        **_inbox(environment),
        **providers.configure(environment),
        **_celery(environment),
        "LOGGING": logging_config(level=environment.LOG_LEVEL, form=environment.LOG_FORMAT),
        "LOGGING_CONFIG": "notifyproject.platform.logs.configure",
        "METRICS_TOKEN": environment.METRICS_TOKEN,
        "OTEL_EXPORTER_OTLP_ENDPOINT": environment.OTEL_EXPORTER_OTLP_ENDPOINT,
        "CRASH_AT": environment.CRASH_AT,
        "FREEZE_AT": environment.FREEZE_AT,
    }


def _databases(environment: Environment) -> dict[str, Any]:
    name = parse_uri(environment.MONGODB_URI, validate=False)["database"] or "notifyproject"
    return {
        "default": {
            "ENGINE": "notifyproject.db",
            "HOST": environment.MONGODB_URI,
            "NAME": name,
            "OPTIONS": {
                # A pool about as large as the threads that use it.
                "maxPoolSize": environment.WORKER_THREADS + 8,
                "retryWrites": True,
                "w": "majority",
                "journal": True,
                # A request is answered with a problem rather than left hanging when no primary
                # is there.
                "serverSelectionTimeoutMS": 5_000,
                "connectTimeoutMS": 3_000,
                "appname": "notifyproject",
            },
        }
    }


def _field_encryption_keys(text: str) -> dict[str, bytes]:
    """Return the keys by their ids, the newest first. What is wrong is told without the text."""
    keys: dict[str, bytes] = {}
    for number, item in enumerate(split_list(text), start=1):
        key_id, _, encoded = item.partition(":")
        try:
            secret = base64.b64decode(encoded, validate=True)
        except ValueError:
            secret = b""
        if not ENCRYPTION_KEY_ID.fullmatch(key_id) or not secret or key_id in keys:
            raise ImproperlyConfigured(
                f"environment variable FIELD_ENCRYPTION_KEYS: key {number} is not id:base64 "
                "with a unique id of lowercase letters, digits, - and _."
            )
        keys[key_id] = secret
    return keys


def _inbox(environment: Environment) -> dict[str, Any]:
    origins = split_list(environment.INBOX_ORIGINS.lower())
    if not all(ORIGIN.fullmatch(origin) for origin in origins):
        raise ImproperlyConfigured(
            "environment variable INBOX_ORIGINS: expected origins such as https://app.example.com, "
            "with a port if it is not the usual one, and without a path."
        )
    return {
        "INBOX_SIGNING_KEY": environment.INBOX_SIGNING_KEY,
        "INBOX_ORIGINS": frozenset(origins),
        "INBOX_STREAM_URL": (environment.INBOX_STREAM_URL or environment.PUBLIC_URL).rstrip("/"),
        "INBOX_STREAMS": environment.INBOX_STREAMS,
    }


def queue_names() -> list[str]:
    """Return every queue in the order a worker serves them: strictly from the first to the last."""
    delivery_queues = [f"{channel}.{p}" for p in Priority for channel in Channel]
    return [SERVICE_QUEUE, *delivery_queues, CALLBACK_QUEUE, BROADCAST_QUEUE]


def urgent_queue_names() -> list[str]:
    """Return the queues that a worker of their own serves: no campaign takes all of its threads."""
    return [SERVICE_QUEUE] + [f"{channel}.{Priority.CRITICAL}" for channel in Channel]


def _celery(environment: Environment) -> dict[str, Any]:
    return {
        "CELERY_BROKER_URL": environment.REDIS_URL,
        "CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP": True,
        "CELERY_BROKER_CONNECTION_MAX_RETRIES": None,
        "CELERY_BROKER_TRANSPORT_OPTIONS": {
            # A hint that died with its worker comes back after this; the sweep is faster.
            "visibility_timeout": 120,
            "queue_order_strategy": "priority",
            "socket_connect_timeout": 1,
            "socket_timeout": 5,
            "socket_keepalive": True,
            "retry_on_timeout": False,
            "health_check_interval": 10,
        },
        "CELERY_TASK_QUEUES": [
            Queue(name, Exchange(name), routing_key=name) for name in queue_names()
        ],
        "CELERY_TASK_DEFAULT_QUEUE": SERVICE_QUEUE,
        "CELERY_TASK_CREATE_MISSING_QUEUES": False,
        "CELERY_TASK_ACKS_LATE": True,
        "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
        "CELERY_TASK_IGNORE_RESULT": True,
        "CELERY_TASK_SERIALIZER": "json",
        "CELERY_ACCEPT_CONTENT": ["json"],
        "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
        "CELERY_WORKER_CONCURRENCY": environment.WORKER_THREADS,
        "CELERY_WORKER_POOL": "threads",
        "CELERY_WORKER_HIJACK_ROOT_LOGGER": False,
        "CELERY_WORKER_SEND_TASK_EVENTS": False,
        # A task that runs on while the broker is away is not lost: MongoDB has its state.
        "CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS": False,
        "CELERY_BEAT_SCHEDULER": "django_celery_beat.schedulers:DatabaseScheduler",
        "CELERY_TIMEZONE": "UTC",
    }
