"""Settings for the tests, which start their own servers: tests/support/plugins/servers.py."""

from . import environment as _environment
from . import variables as _variables
from .base import *
from .base import configure

DEBUG = False
ADMIN_REQUIRE_OTP = False

_defaults = {name: variable.test for name, variable in _variables.VARIABLES.items()}
globals().update(configure(_environment.current(defaults=_defaults)))

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}
# Static files directly from their apps, without collectstatic.
WHITENOISE_AUTOREFRESH = True
WHITENOISE_USE_FINDERS = True
