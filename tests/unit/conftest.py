"""What the tests of pure modules share. None of them has a database."""

import math
from collections.abc import Iterator

import hypothesis
import pytest

from notifications import types

from .building import SHIPPED

# How long an example takes says more about the machine than about the code.
hypothesis.settings.register_profile("notifyproject", deadline=None)
hypothesis.settings.load_profile("notifyproject")


@pytest.fixture
def shipped_types() -> Iterator[None]:
    """Register the shipped types, as if they had just been read."""
    types._snapshots["all"] = types._Snapshot(SHIPPED, math.inf)
    yield
    types.forget()
