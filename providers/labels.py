"""The names of accounts of providers as staff and operators read them."""

from collections.abc import Iterator, Mapping

from django.conf import settings

from .accounts import spec_of
from .discovery import SPECS


class _Labels(Mapping[str, str]):
    """The label of each account and sandbox by its name."""

    def __getitem__(self, name: str) -> str:
        spec = spec_of(name)
        if name == spec.name:
            return spec.label
        if name in settings.PROVIDER_ACCOUNTS:
            return f"{name} ({spec.label})"
        if spec.sandbox is None:
            raise KeyError(name)
        return spec.sandbox.label

    def __iter__(self) -> Iterator[str]:
        yield from SPECS
        yield from settings.PROVIDER_ACCOUNTS
        yield from (spec.sandbox_name for spec in SPECS.values() if spec.sandbox)

    def __len__(self) -> int:
        return sum(1 for _ in self)


PROVIDERS: Mapping[str, str] = _Labels()


def provider_name(name: str) -> str:
    """Return the label of an account. An unknown name is returned unchanged."""
    return PROVIDERS.get(name, name)
