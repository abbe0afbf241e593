"""Samples of generated cases.

Each run takes another sample, and a failed run prints the number that repeats it. ``make security``
and ``make accessibility`` take every case.
"""

import os
import random
from collections.abc import Sequence
from typing import TypeVar

Case = TypeVar("Case")
IS_WHOLE = "ALL_CASES" in os.environ
SEED = int(os.environ.setdefault("TEST_SEED", str(random.randrange(1_000_000))))
"""The same in all processes of a run, because the first one imports this module."""


def sampled(cases: Sequence[Case], *, each: int) -> Sequence[Case]:
    """Return every ``each``-th case, beginning with one that the seed gives."""
    return cases if IS_WHOLE else cases[SEED % each :: each]
