"""How fast a bulk operation goes. Pure.

A worker does a second's worth, gives the operation back, and another goes on when that second is
over: nobody sleeps, and the pace holds however many workers there are.
"""

from datetime import datetime, timedelta

SLOWEST, FASTEST = 1, 500
USUAL = 20
"""Notifications a second, unless a person wants it otherwise."""
AT_ONCE = 200
"""As many at most before the next pause, however fast."""


def burst(per_second: int) -> int:
    """Return how many notifications may be acted on before the next pause."""
    return max(1, min(per_second, AT_ONCE))


def resume_at(*, began: datetime, acted: int, per_second: int) -> datetime:
    """Return when to go on after ``acted`` notifications that were begun at ``began``.

    Whoever has acted on none need not wait.
    """
    return began + timedelta(seconds=acted / per_second)
