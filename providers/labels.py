"""The names of providers as staff and operators read them."""

from collections.abc import Mapping

from .discovery import SPECS

PROVIDERS: Mapping[str, str] = {
    **{spec.name: spec.label for spec in SPECS.values()},
    **{spec.sandbox_name: spec.sandbox.label for spec in SPECS.values() if spec.sandbox},
}


def provider_name(name: str) -> str:
    """Return a provider's label. An unknown name is returned unchanged."""
    return PROVIDERS.get(name, name)
