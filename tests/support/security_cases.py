"""Samples of generated security tests. ``make security`` runs every case."""

import os
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")
IS_WHOLE = "SECURITY_WHOLE" in os.environ


def sampled(cases: Sequence[Case], *, each: int, offset: int = 0) -> Sequence[Case]:
    """Return all cases by `make security`, otherwise every ``each``-th from ``offset``."""
    return cases if IS_WHOLE else cases[offset % each :: each]
