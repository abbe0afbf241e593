"""Checks query parameters."""

from collections.abc import Collection
from datetime import datetime

from django.http import QueryDict

from domain import time
from notifications.validation import ProblemCollector

from .problems import bad_request

MAX_VALUE_LENGTH = 512


def reject_unknown(query: QueryDict, *, allowed: Collection[str]) -> None:
    """Raise ApiError 400 for a parameter that is not ``allowed``, or one given twice."""
    for name in query:
        if name not in allowed:
            raise bad_request("unknown_parameter", "There is no such filter or parameter.")
        if len(query.getlist(name)) > 1:
            raise bad_request("repeated_parameter", "A parameter is given more than once.")


def reject_invalid_text(query: QueryDict, problems: ProblemCollector) -> None:
    """Note values that no parameter can have."""
    for name, text in query.items():
        if "\x00" in text or len(text) > MAX_VALUE_LENGTH:
            problems.add(f"/{name}", "invalid", "Not a value of this parameter.")


def parse_time(name: str, query: QueryDict, problems: ProblemCollector) -> datetime | None:
    """Return the instant a parameter names; notes what is wrong with it."""
    try:
        # A plus sign that was not escaped arrives as a blank.
        return time.parse_timestamp(query[name].replace(" ", "+"))
    except time.InvalidTimeError as problem:
        problems.add(f"/{name}", problem.code, str(problem))
        return None
