"""Finds the providers: each package beside this module, with its ``PROVIDER``."""

import pkgutil
from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import providers

from .spec import ProviderSpec


def find_specs() -> Mapping[str, ProviderSpec]:
    """Return the providers by name, in the order of their channels."""
    packages = [found.name for found in pkgutil.iter_modules(providers.__path__) if found.ispkg]
    specs: list[ProviderSpec] = [
        import_module(f"{providers.__name__}.{name}").PROVIDER for name in packages
    ]
    specs.sort(key=lambda spec: (spec.channel.spec.order, spec.name))
    return {spec.name: spec for spec in specs}


SPECS = find_specs()


def checks_of(name: str) -> Any:
    """Return ``checks.py`` of a provider's package or what stands in its place, or else None.

    Its ``check_settings`` returns Django's messages about invalid settings of an account, at the
    start of each process, and its ``check_server`` those about settings that a server lacks.
    """
    if (checks := SPECS[name].checks) is not None:
        return checks()
    path = f"{providers.__name__}.{name}.checks"
    return import_module(path) if find_spec(path) else None
