"""Settings for a local stack, which ``make up`` starts. No variable is required."""

from . import environment as _environment
from . import variables as _variables
from .base import *
from .base import configure

DEBUG = False
ADMIN_REQUIRE_OTP = False
CALLBACK_LOOPBACK = True

_defaults = {name: variable.local for name, variable in _variables.VARIABLES.items()}
_stack = _environment.local_stack_environment()
globals().update(configure(_environment.current(defaults=_defaults | _stack)))
ROOT_URLCONF = "notifyproject.stack.urls"
