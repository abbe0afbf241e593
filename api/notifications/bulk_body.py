"""Reads the body of a bulk create: its items, each valid or with its errors."""

import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from notifications.intake.bulk import MAX_ITEMS
from notifications.intake.requests import NotificationRequest
from notifications.validation import (
    FieldProblem,
    InvalidRequestError,
    ProblemCollector,
    pointer_token,
    suggest,
)

from ..http.body import BOM, MAX_DEPTH, MAX_PROPERTIES, check_values, convert, decode, measure_depth
from ..http.field_hints import HintBudget
from ..http.problems import ApiError, validation_failed

FIELD = "notifications"
OUTER_LEVELS = 2  # The object and the list around each item
_MIN_INT, _MAX_INT = -(2**63), 2**63 - 1
_PLAIN_KEY = re.compile(r"(?!__proto__$)[A-Za-z_][A-Za-z0-9_-]{0,127}", re.ASCII)
_encoder = msgspec.json.Encoder(order="sorted")


class BulkRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Notifications to create, each independently."""

    notifications: Annotated[list[NotificationRequest], Meta(min_length=1, max_length=MAX_ITEMS)]


@dataclass(frozen=True, slots=True)
class Items:
    """The items of a body: each a request, or its errors."""

    requests: Sequence[NotificationRequest | InvalidRequestError]
    canonical: Sequence[bytes]  # Each item as canonical JSON: equal for equal items


def read_items(raw: bytes) -> Items:
    """Return the items of a body. Raises ApiError if it has no list of items."""
    decoded = _read_fast(raw)
    if decoded is None:
        values = _item_list(decode(raw, max_depth=MAX_DEPTH + OUTER_LEVELS))
        decoded = values, [_canonical_json(value) for value in values]
    values, canonical_items = decoded
    budget = HintBudget()
    requests = [
        _parse_item(value, canonical, budget)
        for value, canonical in zip(values, canonical_items, strict=True)
    ]
    return Items(requests, canonical_items)


def _read_fast(raw: bytes) -> tuple[Sequence[Any], Sequence[bytes]] | None:
    """Return the items and their canonical JSON, or None if only :func:`decode` can tell."""
    # A body with duplicate keys has more colons than its decoded items: each property has one,
    # and decoding drops duplicates. An escaped colon would falsify the count.
    if raw.startswith(BOM) or b"\\u003" in raw:
        return None
    try:
        values = _item_list(msgspec.json.decode(raw))
    except (msgspec.DecodeError, UnicodeError, RecursionError, ApiError):
        return None
    canonical_items = [_encoder.encode(value) for value in values]
    if raw.count(b":") != 1 + sum(canonical.count(b":") for canonical in canonical_items):
        return None
    for canonical in canonical_items:
        may_be_deep = canonical.count(b"{") + canonical.count(b"[") > MAX_DEPTH
        if may_be_deep and measure_depth(canonical) > MAX_DEPTH:
            return None
    return values, canonical_items


def _item_list(value: Any) -> Sequence[Any]:
    """Return the items of a decoded body. Raises ApiError 422 if it has no list of them."""
    if not isinstance(value, dict):
        raise validation_failed([FieldProblem("", "wrong_type", "Expected a JSON object.")])
    problems = ProblemCollector()
    for name in value.keys() - {FIELD}:
        detail = f"Unknown field.{suggest(name, FIELD)}"
        problems.add(f"/{pointer_token(name)}", "unknown_field", detail)
    items = value.get(FIELD)
    if FIELD not in value:
        problems.add(f"/{FIELD}", "required", "The field is required.")
    elif not isinstance(items, list):
        problems.add(f"/{FIELD}", "wrong_type", "Expected a list of notifications.")
    elif not 1 <= len(items) <= MAX_ITEMS:
        problems.add(f"/{FIELD}", "out_of_range", f"Expected 1 to {MAX_ITEMS:,} notifications.")
    if problems.problems:
        raise validation_failed(problems.problems)
    return items or ()


def _canonical_json(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except UnicodeError:
        # A lone surrogate. The strict check of the item reports it.
        return json.dumps(value, sort_keys=True).encode()


def _parse_item(
    value: Any, canonical: bytes, budget: HintBudget
) -> NotificationRequest | InvalidRequestError:
    if _needs_no_checks(value, canonical):
        with suppress(msgspec.ValidationError):
            return msgspec.convert(value, NotificationRequest, strict=True)
    try:
        if not isinstance(value, dict):
            raise validation_failed([FieldProblem("", "wrong_type", "Expected a JSON object.")])
        check_values(value)
        return convert(value, NotificationRequest, budget=budget)
    except ApiError as problem:
        return InvalidRequestError(problem.errors)


def _needs_no_checks(value: Any, canonical: bytes) -> bool:
    """Return whether :func:`check_values` would accept an item that has the right structure."""
    if not isinstance(value, dict) or b"\\u" in canonical or canonical.count(b":") > MAX_PROPERTIES:
        return False
    inner = value.get("content")
    payload = inner.get("payload") if isinstance(inner, dict) else None
    return all(_is_storable(part) for part in (value.get("data"), payload, value.get("ttl")))


def _is_storable(value: Any) -> bool:
    """Return whether a value has plain keys and 64-bit numbers only."""
    if type(value) is dict:
        return all(_PLAIN_KEY.fullmatch(k) and _is_storable(v) for k, v in value.items())
    if type(value) is list:
        return all(_is_storable(item) for item in value)
    return type(value) is not int or _MIN_INT <= value <= _MAX_INT
