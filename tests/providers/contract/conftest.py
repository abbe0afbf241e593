"""Every test closes its SMTP connections."""

import pytest

from tests.providers.conftest import opened

__all__ = ["opened"]


@pytest.fixture(autouse=True)
def _none_left_open(opened: object) -> None:
    pass
