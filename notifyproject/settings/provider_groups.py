"""Finds the variables of the providers: ``variables.py`` of each package of ``providers``.

Providers are above the settings, so they are found by name, before Django starts.
"""

from collections.abc import Sequence
from functools import cache
from importlib import import_module
from pathlib import Path

from domain.channels import Channel

from .declarations import ProviderGroup


@cache
def find_groups() -> Sequence[type[ProviderGroup]]:
    """Return the variables of the providers that have any, in the order of their channels."""
    packages = find_kinds("variables.py")
    groups = [import_module(f"providers.{name}.variables").Settings for name in packages]
    return sorted(groups, key=_place)


@cache
def find_kinds(module: str = "__init__.py") -> frozenset[str]:
    """Return the names of the providers whose packages have a module."""
    folders = map(Path, import_module("providers").__path__)
    return frozenset(path.parent.name for folder in folders for path in folder.glob(f"*/{module}"))


def _place(group: type[ProviderGroup]) -> tuple[int, bool, str]:
    return Channel(group.channel).spec.order, not group.is_default, group.provider


def names_of(channel: str) -> list[str]:
    """Return the names of the providers of a channel that have variables, the default first."""
    return [group.provider for group in find_groups() if group.channel == channel]


def order_variable(channel: str) -> str:
    """Return the variable with the providers of a channel in order, if it is declared."""
    return f"{channel.upper()}_PROVIDER"
