"""Every process of a test run starts quickly: a pytest plugin."""

import gc
from collections.abc import Generator

import pytest

from notifyproject.stack import bytecode

bytecode.keep()
gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only from now on: thousands of tests and modules are none, and stay."""
    found = yield
    gc.freeze()
    gc.enable()
    return found
