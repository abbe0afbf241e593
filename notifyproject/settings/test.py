"""For the test suite, which starts its own servers: tests/servers.py."""

from . import environment as _environment
from .base import *  # noqa: F403
from .base import configure

DEBUG = False

globals().update(
    configure(
        _environment.current(
            defaults={
                "SECRET_KEY": "only-for-tests-" + "0" * 40,
                "ALLOWED_HOSTS": "testserver,127.0.0.1,localhost",
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
# Static files straight from their apps: nothing is collected for a test run.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
