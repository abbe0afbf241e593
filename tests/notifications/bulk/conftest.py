"""A cohort of failures, an operation on it, and a clock that tests put forward."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.factories.bulk import Time


@pytest.fixture
def clock(db: None, broker: Any) -> Iterator[Time]:
    """Give a clock, a database and a broker."""
    return Time()
