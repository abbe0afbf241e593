"""How a program ends whose settings are refused: with the message alone."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import SystemCheckError

STATUS = 3
"""Exit status by which gunicorn's arbiter ends, instead of starting the worker again."""


@contextmanager
def shown_alone() -> Iterator[None]:
    """End the process with the message if its settings are refused: no traceback hides it."""
    try:
        yield
    except (ImproperlyConfigured, SystemCheckError) as error:
        sys.stderr.write(f"{error}\n")
        refusal = SystemExit(str(error))
        refusal.code = STATUS
        raise refusal from None
