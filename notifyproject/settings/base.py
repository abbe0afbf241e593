"""Settings every installation shares. Build on this through :func:`configure`."""

from typing import Any

from kombu.entity import Exchange, Queue
from pymongo.uri_parser import parse_uri

from notifications.states import Channel, Priority

from . import console
from .environment import BASE_DIR, DATA_DIR, Environment

SERVICE_QUEUE = "service"
"""Short tasks that keep the others going: sweep, rescue."""

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
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "notifyproject",
    "access",
    "recipients",
    "devices",
    "analytics",
    "notifications",
]

MIDDLEWARE = [
    "notifyproject.requests.RequestIdMiddleware",
    "notifyproject.requests.DeadlineMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

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
AUTH_USER_MODEL = "access.StaffUser"
DEFAULT_AUTO_FIELD = "django_mongodb_backend.fields.ObjectIdAutoField"
MIGRATION_MODULES = {
    "admin": "notifyproject.mongo_migrations.admin",
    "auth": "notifyproject.mongo_migrations.auth",
    "contenttypes": "notifyproject.mongo_migrations.contenttypes",
    "django_celery_beat": "notifyproject.mongo_migrations.django_celery_beat",
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

# The API reads its bodies itself, with a cap for each route: notifications/api/parsing.py.
DATA_UPLOAD_MAX_MEMORY_SIZE = 4 * 1024 * 1024

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["access.authentication.KeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["access.permissions.HasScope"],
    "DEFAULT_PARSER_CLASSES": ["notifications.api.parsing.StrictJSONParser"],
    "DEFAULT_RENDERER_CLASSES": ["notifications.api.rendering.JSONRenderer"],
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "notifications.api.rendering.AlwaysJSON",
    "EXCEPTION_HANDLER": "notifications.api.problems.exception_handler",
    "UNAUTHENTICATED_USER": None,
    "DEFAULT_METADATA_CLASS": None,
}

SPECTACULAR_SETTINGS = {
    "TITLE": "Notifications",
    "DESCRIPTION": "Tell a person something by email, push, WhatsApp and in-app, and follow it.",
    "VERSION": "1",
    "OAS_VERSION": "3.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "POSTPROCESSING_HOOKS": ["notifications.api.schema.add_structures"],
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
        "ALLOWED_HOSTS": _listed(environment.ALLOWED_HOSTS),
        "PUBLIC_URL": environment.PUBLIC_URL.rstrip("/"),
        "SANDBOX_URL": environment.SANDBOX_URL.rstrip("/"),
        "REDIS_URL": environment.REDIS_URL,
        "WORKER_THREADS": environment.WORKER_THREADS,
        "PROVIDER_RATES": _provider_rates(environment),
        "DATABASES": _databases(environment),
        **_email(environment),
        **_push_and_whatsapp(environment),
        **_celery(environment),
        **_logging(environment),
    }


def _listed(text: str) -> list[str]:
    """Return what a variable lists, separated by commas."""
    return [item for part in text.split(",") if (item := part.strip())]


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


def _email(environment: Environment) -> dict[str, Any]:
    real = bool(environment.SENDGRID_API_KEY)
    default_url = "https://api.sendgrid.com" if real else environment.SANDBOX_URL
    return {
        "EMAIL_PROVIDERS": tuple(environment.EMAIL_PROVIDER.split(",")),
        "EMAIL_FROM": environment.EMAIL_FROM,
        "EMAIL_REPLY_TO": environment.EMAIL_REPLY_TO or None,
        "ATTACHMENT_HOSTS": frozenset(_listed(environment.ATTACHMENT_HOSTS.lower())),
        "SENDGRID_API_KEY": environment.SENDGRID_API_KEY or "SG.sandbox",
        "SENDGRID_URL": (environment.SENDGRID_URL or default_url).rstrip("/"),
        "SENDGRID_WEBHOOK_PUBLIC_KEY": environment.SENDGRID_WEBHOOK_PUBLIC_KEY,
        "EMAIL_BACKEND": "django.core.mail.backends.smtp.EmailBackend",
        "EMAIL_HOST": environment.SMTP_HOST,
        "EMAIL_PORT": environment.SMTP_PORT,
        "EMAIL_HOST_USER": environment.SMTP_USER,
        "EMAIL_HOST_PASSWORD": environment.SMTP_PASSWORD,
        "EMAIL_USE_TLS": environment.SMTP_SECURITY == "starttls",
        "EMAIL_USE_SSL": environment.SMTP_SECURITY == "tls",
        "EMAIL_TIMEOUT": 15,
    }


def _push_and_whatsapp(environment: Environment) -> dict[str, Any]:
    return {
        "FCM_CREDENTIALS": environment.FCM_CREDENTIALS,
        "FCM_PROJECT_ID": environment.FCM_PROJECT_ID,
        "FCM_URL": environment.FCM_URL.rstrip("/"),
        "WHATSAPP_TOKEN": environment.WHATSAPP_TOKEN,
        "WHATSAPP_PHONE_NUMBER_ID": environment.WHATSAPP_PHONE_NUMBER_ID,
        "WHATSAPP_APP_SECRET": environment.WHATSAPP_APP_SECRET,
        "WHATSAPP_VERIFY_TOKEN": environment.WHATSAPP_VERIFY_TOKEN,
        "WHATSAPP_URL": environment.WHATSAPP_URL.rstrip("/"),
    }


def _provider_rates(environment: Environment) -> dict[str, tuple[float, int]]:
    """Return messages a second and the most at once, for each provider that has a limit.

    A tenth of a second's worth may go at once: a batch is not cut into single messages, and the
    provider, who counts by the second, hardly sees more than the rate.
    """
    rates = {
        "sendgrid": environment.RATE_SENDGRID,
        "smtp": environment.RATE_SMTP,
        "fcm": environment.RATE_FCM,
        "whatsapp": environment.RATE_WHATSAPP,
    }
    return {name: (rate, max(1, round(rate / 10))) for name, rate in rates.items() if rate > 0}


def queue_names() -> list[str]:
    """Return every queue in the order a worker serves them: strictly from the first to the last."""
    return [SERVICE_QUEUE] + [f"{channel}.{p}" for p in Priority for channel in Channel]


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


def _logging(environment: Environment) -> dict[str, Any]:
    from notifyproject.logs import logging_config

    return {
        "LOGGING": logging_config(level=environment.LOG_LEVEL, form=environment.LOG_FORMAT),
        "LOGGING_CONFIG": "notifyproject.logs.configure",
    }
