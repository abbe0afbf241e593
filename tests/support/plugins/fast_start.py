"""Every process of a test run starts quickly: a pytest plugin."""

import gc
from collections.abc import Generator

import pytest

from notifyproject.stack import bytecode

bytecode.enable_cache()
gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only from now on: thousands of tests and modules are none, and stay.

    A test run has memory to spare, so it looks less often than a server does.
    """
    found = yield
    gc.freeze()
    gc.set_threshold(50_000, 20, 50)
    gc.enable()
    return found
