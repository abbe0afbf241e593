"""Settings for the tests, which start their own servers: tests/support/plugins/servers.py."""

from . import environment as _environment
from .base import *
from .base import configure

DEBUG = False

globals().update(
    configure(
        _environment.current(
            defaults={
                "SECRET_KEY": "only-for-tests-" + "0" * 40,
                "INBOX_SIGNING_KEY": "only-for-inboxes-of-tests-" + "0" * 40,
                "FIELD_ENCRYPTION_KEYS": "tests:" + "0" * 64,
                "ADMIN_REQUIRE_OTP": "false",
                "ALLOWED_HOSTS": "testserver,127.0.0.1,localhost",
                "SANDBOX_URL": "http://127.0.0.1:8001",
                # No limits: tests send from one address. Tests of limits set their own.
                "RATE_LIMIT_READ": "0",
                "RATE_LIMIT_WRITE": "0",
                "RATE_LIMIT_INBOX": "0",
                "RATE_LIMIT_FAILED": "0",
                "LOG_LEVEL": "WARNING",
                "LOG_FORMAT": "console",
            }
        )
    )
)

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Static files directly from their apps, without collectstatic.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
