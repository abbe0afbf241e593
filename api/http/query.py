"""Parses query parameters. Functions add invalid values to ``problems``."""

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from itertools import islice
from typing import Any

import msgspec
from django.http import QueryDict
from drf_spectacular.utils import OpenApiParameter

from domain import time
from notifications.validation import MAX_PROBLEMS, FieldProblem, ProblemCollector, suggest

from .problems import PLAIN_NAME, REPEATED_PARAMETER, UNKNOWN_PARAMETER, ProblemType

MAX_VALUE_LENGTH = 512
INVALID_VALUE = "Invalid value."
FIELDS = OpenApiParameter(
    "fields",
    str,
    description="The fields of the response, separated by commas; omitted: all. A client that is "
    "generated from this document expects all.",
)


def reject_unknown(query: QueryDict, known: Mapping[str, bool]) -> None:
    """Raise ApiError 400 for a parameter that isn't ``known``, or is repeated and may not be.

    ``known`` says of each name whether it may be repeated.
    """
    refused = list(islice(_refusals(query, known), MAX_PROBLEMS))
    if refused:
        problem_type, first = refused[0]
        raise problem_type.error(first.detail, errors=[problem for _, problem in refused])


def _refusals(
    query: QueryDict, known: Mapping[str, bool]
) -> Iterator[tuple[ProblemType, FieldProblem]]:
    for name in query:
        value: ProblemType | None = None
        suggestion = ""
        if name not in known:
            value, suggestion = UNKNOWN_PARAMETER, suggest(name, *sorted(known))
        elif not known[name] and len(query.getlist(name)) > 1:
            value = REPEATED_PARAMETER
        if value is not None:
            is_plain = PLAIN_NAME.fullmatch(name) is not None
            detail = value.detail.format(name=name) if is_plain else "Unknown parameter."
            pointer = f"/{name}" if is_plain else ""
            yield value, FieldProblem(pointer, value.code, detail + suggestion)


def reject_invalid_text(query: QueryDict, problems: ProblemCollector) -> None:
    """Report values with NUL or more than ``MAX_VALUE_LENGTH`` characters."""
    for name, texts in query.lists():
        if any("\x00" in text or len(text) > MAX_VALUE_LENGTH for text in texts):
            problems.add(f"/{name}", "invalid", INVALID_VALUE)


def parse_time(name: str, query: QueryDict, problems: ProblemCollector) -> datetime | None:
    """Return a parameter that is a timestamp; reports an invalid one."""
    try:
        # A plus sign that wasn't escaped arrives as a space.
        return time.parse_timestamp(query[name].replace(" ", "+"))
    except time.InvalidTimeError as problem:
        problems.add(f"/{name}", problem.code, str(problem))
        return None


def parse_choice(
    name: str,
    choices: Collection[str],
    query: QueryDict,
    problems: ProblemCollector,
    *,
    code: str = "unknown_value",
) -> str | None:
    """Return a parameter with a fixed set of values, if given; reports any other value."""
    value: str | None = query.get(name)
    if value is not None and value not in choices:
        problems.add(f"/{name}", code, one_of(choices))
        return None
    return value


def parse_choices(
    name: str, choices: Collection[str], query: QueryDict, problems: ProblemCollector
) -> tuple[str, ...]:
    """Return the values of a parameter, repeated or separated by commas. Reports invalid ones."""
    values = [value for text in query.getlist(name) for value in text.split(",")]
    if any(value not in choices for value in values):
        problems.add(f"/{name}", "unknown_value", one_of(choices))
        return ()
    return tuple(dict.fromkeys(values))


def parse_fields(
    query: QueryDict, view: type[msgspec.Struct], problems: ProblemCollector
) -> frozenset[str] | None:
    """Return the requested fields, or None for all. Reports those that ``view`` doesn't have."""
    if FIELDS.name not in query:
        return None
    names = query[FIELDS.name].split(",")
    for name in names:
        if name not in view.__struct_fields__:
            suggestion = suggest(name, *view.__struct_fields__)
            unknown = f"Unknown field `{name}`." if PLAIN_NAME.fullmatch(name) else "Unknown field."
            problems.add("/fields", "unknown_field", unknown + suggestion)
    return frozenset(names)


def select_fields(view: msgspec.Struct, names: frozenset[str] | None) -> Any:
    """Return the named fields of a view, or the whole view if ``names`` is None."""
    if names is None:
        return view
    return {name: getattr(view, name) for name in view.__struct_fields__ if name in names}


def parse_bool(name: str, query: QueryDict, problems: ProblemCollector) -> bool:
    """Return a parameter that is ``true`` or ``false`` (the default); reports any other value."""
    value: str = query.get(name, "false")
    if value not in ("true", "false"):
        problems.add(f"/{name}", "wrong_type", "Expected true or false.")
    return value == "true"


def one_of(choices: Collection[str]) -> str:
    """Return the text of an error that lists the allowed values."""
    return f"Expected one of {', '.join(sorted(choices))}."
