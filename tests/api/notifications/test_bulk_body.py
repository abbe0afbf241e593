"""Bulk bodies: the fast path gives the same results as the validation of single requests."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from api.http.body import MAX_DEPTH, check_values, convert
from api.http.problems import ApiError
from api.notifications import bulk_body
from api.notifications.bulk_body import read_items
from notifications.intake.requests import NotificationRequest
from notifications.validation import InvalidRequestError
from tests.support.tables import each_case

PLAIN = {"type": "transactional", "user_id": "ada", "data": {"order": 1}}


def body(*items: Any) -> bytes:
    return json.dumps({"notifications": list(items)}).encode()


def refused(raw: bytes) -> tuple[int, str, dict[str, str]]:
    with pytest.raises(ApiError) as problem:
        read_items(raw)
    error = problem.value
    return error.status, error.code, {e.pointer: e.code for e in error.errors}


def read_single(item: Any) -> Any:
    """Read an item as POST /notifications does; return the item or its problems."""
    try:
        check_values(item)
        return convert(item, NotificationRequest)
    except ApiError as problem:
        return tuple(problem.errors)


def read_in_bulk(item: Any) -> Any:
    """Read an item of a bulk body; return the item or its problems."""
    items = read_items(body(PLAIN, item))
    assert items.requests[0] == NotificationRequest(**PLAIN)
    read = items.requests[1]
    return read.problems if isinstance(read, InvalidRequestError) else read


@each_case(
    "raw, status, code",
    [
        (b"{", 400, "malformed_json"),
        (b'{"notifications": [{}]} x', 400, "malformed_json"),
        (b'{"notifications": [{"data": NaN}]}', 400, "malformed_json"),
        (b'{"notifications": [{"type": "\xff"}]}', 400, "not_utf8"),
        (b'\xef\xbb\xbf{"notifications": [{}]}', 400, "byte_order_mark"),
        (b'{"notifications": [{"ttl": ' + b"9" * 5_000 + b"}]}", 400, "number_too_long"),
        (b'{"notifications": [{"data": {"x": 1e999}}]}', 400, "number_too_large"),
        (b"[" * 100_000, 400, "too_deep"),
        *((raw, 422, "validation_failed") for raw in (b"[]", b"null", b'"text"')),
    ],
)
def test_non_object_is_refused(raw: bytes, status: int, code: str) -> None:
    assert refused(raw)[:2] == (status, code)


@each_case(
    "value, pointers",
    [
        ({}, {"/notifications": "required"}),
        ({"notifications": []}, {"/notifications": "out_of_range"}),
        ({"notifications": [5] * 1_001}, {"/notifications": "out_of_range"}),
        ({"notifications": {"0": {}}}, {"/notifications": "wrong_type"}),
        ({"notifications": None}, {"/notifications": "wrong_type"}),
        ({"notifications": "x"}, {"/notifications": "wrong_type"}),
        ({"notifications": [{}], "dry": 1}, {"/dry": "unknown_field"}),
        ({"items": [{}]}, {"/items": "unknown_field", "/notifications": "required"}),
    ],
)
def test_body_has_one_to_a_thousand_items(value: Any, pointers: dict[str, str]) -> None:
    assert refused(json.dumps(value).encode()) == (422, "validation_failed", pointers)


@each_case(
    "raw",
    [
        b'{"notifications": [{"type": "a"}], "notifications": [{"type": "b"}]}',
        b'{"notifications": [{"type": "a", "type": "b"}]}',
        b'{"notifications": [{"data": {"a": 1, "a": 1}}]}',
        b'{"notifications": [{"data": {"a": {"b": [{"c": 1, "c": 2}]}}}]}',
        b'{"notifications": [{"data": {"a": 1, "\\u0061": 2}}]}',
        b'{"notifications": [{"data": {"a": 1, "a": "\\u003a"}}]}',
        b'{"notifications": [{"data": {"a" : ":", "a"\n:"::"}}]}',
    ],
)
def test_duplicate_key_is_found_at_any_level(raw: bytes) -> None:
    assert refused(raw)[:2] == (400, "duplicate_key")


@each_case("text", [":", '":', "a:b:c", '"a": 1, "a": 2', "\\u003a", "é:"])
@each_case("ensure_ascii", [True, False])
def test_colon_in_a_text_is_no_property(text: str, *, ensure_ascii: bool) -> None:
    item = {**PLAIN, "data": {"a": text, text: "a"}}
    raw = json.dumps({"notifications": [item]}, ensure_ascii=ensure_ascii).encode()
    assert isinstance(read_items(raw).requests[0], NotificationRequest)


@each_case("levels", [1, 10, MAX_DEPTH - 1, MAX_DEPTH])
def test_item_depth_limit_equals_a_single_request(levels: int) -> None:
    deep: Any = 1
    for _ in range(levels - 2):
        deep = [deep]
    raw = body({**PLAIN, "data": {"x": deep}})
    assert isinstance(read_items(raw).requests[0], NotificationRequest)
    if levels == MAX_DEPTH:
        assert refused(body({**PLAIN, "data": {"x": [deep]}}))[:2] == (400, "too_deep")


def test_many_brackets_are_not_depth() -> None:
    wide = {**PLAIN, "data": {"x": [[n] for n in range(100)], "y": "[" * 100}}
    assert isinstance(read_items(body(wide)).requests[0], NotificationRequest)


@each_case("item", [5, None, True, "text", [], [PLAIN], 1.5])
def test_non_object_item_is_a_wrong_type(item: Any) -> None:
    (problem,) = read_in_bulk(item)
    assert (problem.pointer, problem.code) == ("", "wrong_type")


@each_case(
    "fields",
    [
        {"type": 5},
        {"type": "x" * 65},
        {"type": "a\x00b"},
        {"user_id": {"$gt": ""}},
        {"nonsense": 1},
        {"k" * 129: 1},
        {"$where": 1},
        {"data": {"$gt": 1}},
        {"data": {"a.b": 1}},
        {"data": {"": 1}},
        {"data": {"__proto__": 1}},
        {"data": {"a b": 1, "é": 2, "-": 3}},
        {"data": {"a": [{"b": {"$c": 1}}]}},
        {"data": {"k" * 129: 1}},
        {"data": {"k" * 128: 1}},
        {"data": {"a": 2**63}},
        {"data": {"a": [-(2**63) - 1]}},
        {"data": {"a": 2**63 - 1, "b": -(2**63), "c": 2.5, "d": True, "e": None}},
        {"data": {"a": "x\x00y"}},
        {"data": {"a\x00": 1}},
        {"data": {"a": "\ud800"}},
        {"data": {"\udfff": "a"}},
        {"data": {"a": "\x01\x1f\x7f\u2028"}},
        {"data": {f"k{n}": n for n in range(490)}},
        {"data": {f"k{n}": n for n in range(500)}},
        {"data": {f"k{n}": ":" * 10 for n in range(100)}},
        {"data": []},
        {"data": None},
        {"content": {"payload": {"a.b": 1}}},
        {"content": {"payload": {"a": {"b": 2**70}}}},
        {"content": {"subject": "a\x00"}},
        {"content": 5},
        {"ttl": 2**63},
        {"ttl": 2**80},
        {"ttl": True},
        {"ttl": 3.0},
        {"max_retries": 2**63},
        {"max_retries": 11},
        {"recipient": {"email": 5}},
        {"recipient": {"mail": "x"}},
        {"channels": "email"},
        {"scheduled_local": {"at": "2026-12-01T09:00"}},
    ],
)
def test_item_is_read_like_a_single_request(fields: dict[str, Any]) -> None:
    item = {**PLAIN, **fields}
    assert read_in_bulk(item) == read_single(item)


KEYS = st.text(max_size=6) | st.sampled_from(["data", "content", "payload", "$a", "a.b", "ttl", ""])
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
    | st.sampled_from([2**63, -(2**63) - 1, "a\x00", ":", "\ud800", '"', "\\"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.dictionaries(st.sampled_from(NotificationRequest.__struct_fields__), VALUES, max_size=4))
def test_any_item_is_read_like_a_single_request(fields: dict[str, Any]) -> None:
    item = {"type": "x", **fields}
    assert read_in_bulk(item) == read_single(item)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_canonical_content_is_equal_for_equal_items_only(item: Any, other: Any) -> None:
    first, second, again = read_items(body(item, other, item)).canonical
    assert first == again
    assert (first == second) == (_canonical(item) == _canonical(other))


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True)


def test_canonical_content_ignores_field_order_and_spaces() -> None:
    spaced = b'{"notifications": [{"b":1,"a":[1,2]} , { "a" : [ 1, 2 ],\n "b": 1 }]}'
    first, second = read_items(spaced).canonical
    assert first == second


def test_ordinary_items_take_the_fast_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(*_: Any) -> None:
        raise AssertionError("slow path")

    monkeypatch.setattr(bulk_body, "decode", forbidden)
    monkeypatch.setattr(bulk_body, "check_values", forbidden)
    items = [
        {
            "type": "order_shipped",
            "user_id": f"user-{n}",
            "recipient": {"email": f"user-{n}@example.com", "name": "Zoë \U0001f600"},
            "content": {"body": "Dear all,\n\n\u201cquoted\u201d", "payload": {"orderId": "1"}},
            "data": {"order_id": n, "items": [{"name": "a", "price": 1.5}], "is_gift": False},
            "scheduled_at": "2026-12-01T09:00:00Z",
        }
        for n in range(3)
    ]
    raw = json.dumps({"notifications": items}, ensure_ascii=False).encode()
    assert read_items(raw).requests == [msgspec.convert(i, NotificationRequest) for i in items]
