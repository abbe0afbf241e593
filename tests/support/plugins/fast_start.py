"""A pytest plugin that starts test processes fast."""

import gc
from collections.abc import Generator

import pytest

from notifyproject.stack import bytecode

bytecode.enable_cache()
gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Exclude the collected tests from garbage collection, which runs rarely from then on."""
    found = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    return found
