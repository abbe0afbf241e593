"""A clock that tests advance, with a database and a broker."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.factories.bulk import Time


@pytest.fixture
def clock(db: None, broker: Any) -> Iterator[Time]:
    """Return a clock, with a database and a broker."""
    return Time()
