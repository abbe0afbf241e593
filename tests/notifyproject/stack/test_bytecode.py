"""The stack's processes cache bytecode even if Python is configured to write none."""

import os
import sys

import pytest

from notifyproject.stack import bytecode
from tests.support.tables import each_case

VARIABLES = ("PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")


@pytest.fixture
def no_bytecode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Configure this process to write no bytecode."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(sys, "pycache_prefix", None)
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    # Set first, so that what the code sets is taken back.
    monkeypatch.setenv("PYTHONPYCACHEPREFIX", "before")
    monkeypatch.delenv("PYTHONPYCACHEPREFIX")


def kept() -> tuple[bool, str | None, list[str | None]]:
    """Return the bytecode settings of this process and of its children."""
    values = [os.environ.get(name) for name in VARIABLES]
    return not sys.dont_write_bytecode, sys.pycache_prefix, values


@pytest.mark.usefixtures("no_bytecode")
def test_bytecode_is_cached_in_the_virtual_environment() -> None:
    bytecode.enable_cache()
    place = str(bytecode.BYTECODE)
    assert kept() == (True, place, [None, place])
    assert place.startswith(sys.prefix)


@pytest.mark.usefixtures("no_bytecode")
@each_case(
    "name, value, folder",
    [("prefix", sys.base_prefix, None), ("pycache_prefix", "/elsewhere", "/elsewhere")],
)
def test_bytecode_is_otherwise_unchanged(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, folder: str | None
) -> None:
    monkeypatch.setattr(sys, name, value)
    bytecode.enable_cache()
    assert kept() == (False, folder, ["1", None])
