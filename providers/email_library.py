"""The optional library of the providers of email with an API."""

from importlib.util import find_spec

LIBRARY = "anymail"
REQUIREMENTS = "requirements-providers.txt"


def is_installed() -> bool:
    """Return whether the library is installed, without importing it."""
    return find_spec(LIBRARY) is not None
