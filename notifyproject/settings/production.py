"""Settings for a server. A process does not start without the required variables."""

import os

from django.core.exceptions import ImproperlyConfigured

from . import environment as _environment
from . import variables as _variables
from .base import *
from .base import configure

DEBUG = False
DEPLOY_CHECKS_AT_START = True

_required = (name for name, variable in _variables.VARIABLES.items() if variable.is_required)
if _missing := [name for name in _required if not os.environ.get(name)]:
    raise ImproperlyConfigured(f"Set {', '.join(_missing)} in the environment.")

if os.environ.get("CRASH_AT") or os.environ.get("FREEZE_AT"):
    raise ImproperlyConfigured("CRASH_AT and FREEZE_AT are for fault injection: unset them.")

_current = _environment.current()
globals().update(configure(_current))

SECURE_SSL_REDIRECT = True
if _current.TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
SECURE_HSTS_SECONDS = 31_536_000
SECURE_HSTS_INCLUDE_SUBDOMAINS = _current.HSTS != "host"
SECURE_HSTS_PRELOAD = _current.HSTS == "preload"
# Django recommends both. They bind hosts that this service doesn't know, so HSTS opts in.
SILENCED_SYSTEM_CHECKS = ["security.W005", "security.W021"]
SESSION_COOKIE_SECURE = True
CSRF_COOKIE_SECURE = True
