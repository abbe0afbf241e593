"""Settings for a local stack, which ``make up`` starts. No variable is required."""

from . import environment as _environment
from .base import *
from .base import configure

DEBUG = False

_stack = _environment.local_stack_environment()
_current = _environment.current(
    defaults={
        "SECRET_KEY": "only-for-one-machine-" + "0" * 40,
        "INBOX_SIGNING_KEY": "only-for-inboxes-of-one-machine-" + "0" * 40,
        "FIELD_ENCRYPTION_KEYS": "local:" + "0" * 64,
        "ADMIN_REQUIRE_OTP": "false",
        "ALLOWED_HOSTS": "127.0.0.1,localhost,[::1]",
        "CALLBACK_LOOPBACK": "true",
        "SANDBOX_URL": "http://127.0.0.1:8001",
        "LOG_FORMAT": "console",
    }
    | _stack
)
globals().update(configure(_current))
ROOT_URLCONF = "notifyproject.stack.urls"
