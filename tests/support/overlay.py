"""Puts files beside those of the service, as if they were part of it, for who imports this first.

``OVERLAY`` names a folder with the same paths: modules of ``domain/channels``, packages of
``providers``, and templates. Packages find their modules as they find their own.
"""

import importlib.util
import os
import sys
from pathlib import Path

FOLDER = Path(os.environ["OVERLAY"])


def _extend(name: str) -> None:
    """Import a package whose modules are also those of the overlay."""
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.loader is not None
    assert spec.submodule_search_locations is not None
    spec.submodule_search_locations.append(str(FOLDER.joinpath(*name.split("."))))
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


for _name in ("domain.channels", "providers"):
    _extend(_name)
