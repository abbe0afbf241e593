"""A fork, as one module sees it."""

import os
from itertools import count
from types import ModuleType, SimpleNamespace

import pytest

_unused = count(-1, -1)


def become_child(monkeypatch: pytest.MonkeyPatch, *modules: ModuleType) -> int:
    """Let ``modules`` read the process ID of a new forked child, and return it.

    ``os.getpid`` itself stays: background threads of PyMongo read it too, and would abandon their
    connections.
    """
    process_id = next(_unused)
    child = SimpleNamespace(**vars(os) | {"getpid": lambda: process_id})
    for module in modules:
        monkeypatch.setattr(module, "os", child)
    return process_id
