"""What holds for the parameters of every address."""

from collections.abc import Collection

from django.http import QueryDict

from ..validation import ProblemCollector
from .problems import malformed

MAX_VALUE_LENGTH = 512


def check_names(query: QueryDict, *, allowed: Collection[str]) -> None:
    """Raise Problem 400 for a parameter that is not ``allowed``, or one given twice."""
    for name in query:
        if name not in allowed:
            raise malformed("unknown_parameter", "There is no such filter or parameter.")
        if len(query.getlist(name)) > 1:
            raise malformed("repeated_parameter", "A parameter is given more than once.")


def check_texts(query: QueryDict, problems: ProblemCollector) -> None:
    """Note values that no parameter can have."""
    for name, text in query.items():
        if "\x00" in text or len(text) > MAX_VALUE_LENGTH:
            problems.add(f"/{name}", "invalid", "Not a value of this parameter.")
