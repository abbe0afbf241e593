"""A clock for tests of bulk operations."""

from typing import Any

import pytest

from tests.support.factories.bulk import Time


@pytest.fixture
def clock(db: None, broker: Any) -> Time:
    """Return a clock that tests advance. The test also gets a database and a broker."""
    return Time()
