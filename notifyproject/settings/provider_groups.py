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
    folders = map(Path, import_module("providers").__path__)
    packages = [path.parent.name for folder in folders for path in folder.glob("*/variables.py")]
    groups = [import_module(f"providers.{name}.variables").Settings for name in packages]
    return sorted(groups, key=_place)


def _place(group: type[ProviderGroup]) -> tuple[int, bool, str]:
    return Channel(group.channel).spec.order, not group.is_default, group.provider


def names_of(channel: str) -> list[str]:
    """Return the names of the providers of a channel that have variables, the default first."""
    return [group.provider for group in find_groups() if group.channel == channel]
