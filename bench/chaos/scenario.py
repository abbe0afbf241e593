"""What a scenario is: data about it, and one function that runs it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from .findings import Findings


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """A fault that is injected, and what is shown by it."""

    number: int
    injects: str
    shows: str
    run: Callable[..., Findings]
    """Takes the sizes as keyword arguments."""
    full: Mapping[str, Any]
    """The sizes that the committed results are made with."""
    short: Mapping[str, Any]
    """Sizes for trying it out: a minute or a few."""
