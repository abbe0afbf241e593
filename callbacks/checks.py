"""System checks: a setting that would let apps reach into this machine."""

from typing import Any

from django.conf import settings
from django.core import checks


def no_loopback(**_: Any) -> list[checks.CheckMessage]:
    """Return an error if apps on this very machine are called back: on a server that is a hole."""
    if not settings.CALLBACK_LOOPBACK:
        return []
    problem = checks.Error(
        "CALLBACK_LOOPBACK is on: an app could have services of this machine called.",
        hint="It is for a stack on one machine.",
        id="callbacks.E001",
    )
    return [problem]
