"""A clock for tests of bulk operations."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.factories.bulk import Time


@pytest.fixture
def clock(db: None, broker: Any) -> Iterator[Time]:
    """Return a clock that tests advance. The test also gets a database and a broker."""
    return Time()
