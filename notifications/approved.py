"""Which of a type's approved wordings a person gets on WhatsApp, with what in its places. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from providers.contract import ApprovedTemplate

from .types import Approved

MAX_PARAMETER = 1_024
"""A longer text in one place is cut: Meta takes 1,024 characters for the whole body."""


def choose(
    approved: Sequence[Approved], *, locale: str | None, data: Mapping[str, Any]
) -> ApprovedTemplate | None:
    """Return the wording in the nearest language; None if there is none, or a variable is missing.

    ``pt-BR`` falls back to ``pt``, and what nobody has asked for in their language is the first.
    """
    wording = _nearest(approved, locale)
    if wording is None or any(data.get(name) is None for name in wording.parameters):
        return None
    return ApprovedTemplate(
        name=wording.name,
        language=wording.language,
        parameters=tuple(_in_one_line(data[name]) for name in wording.parameters),
    )


def _nearest(approved: Sequence[Approved], locale: str | None) -> Approved | None:
    by_locale = {one.locale.lower(): one for one in approved}
    parts = (locale or "").lower().replace("_", "-").split("-")
    names = ["-".join(parts[:count]) for count in range(len(parts), 0, -1)]
    found = (by_locale.get(name) for name in names)
    return next((one for one in found if one is not None), next(iter(approved), None))


def _in_one_line(value: Any) -> str:
    """Return a value as Meta takes it: no line breaks, no tabs, no row of blanks."""
    return " ".join(str(value).split())[:MAX_PARAMETER]
