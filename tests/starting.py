"""Every process of a test run starts quickly: a pytest plugin.

Where Python is told to write no bytecode beside the sources (``PYTHONDONTWRITEBYTECODE``, as in
most container images), each of the many processes of a run would compile Django, the service and
the tests anew: five seconds of work for a worker of Celery, thirteen for one of pytest. Then the
bytecode is kept in the virtual environment, for the next run too.
"""

import gc
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

BYTECODE = Path(sys.prefix) / "bytecode"

if sys.dont_write_bytecode and sys.pycache_prefix is None and sys.prefix != sys.base_prefix:
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(BYTECODE)
    # For the processes that this one starts.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = str(BYTECODE)

gc.disable()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection() -> Generator[None, object, object]:
    """Look for garbage only from now on: thousands of tests and modules are none, and stay."""
    found = yield
    gc.freeze()
    gc.enable()
    return found
