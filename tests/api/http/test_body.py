"""Request bodies: transport, JSON, and values."""

import io
import json
import tracemalloc
from typing import Any

import pytest
from django.test import RequestFactory
from hypothesis import given, settings
from hypothesis import strategies as st
from rest_framework.exceptions import UnsupportedMediaType

from api.http.body import (
    MAX_BYTES,
    MAX_DEPTH,
    MAX_PROPERTIES,
    check_values,
    convert,
    decode,
    read_body,
)
from api.http.problems import ApiError
from notifications.intake.requests import NotificationRequest
from notifications.validation import MAX_KEY_LENGTH
from tests.support.tables import each_case
from tests.support.waiting import computing

JSON = "application/json"
factory = RequestFactory()


def read(body: bytes, content_type: str = JSON, limit: int = MAX_BYTES, **headers: Any) -> bytes:
    request = factory.generic("POST", "/", body, content_type=content_type, **headers)
    return read_body(request, limit=limit)


def refused(body: bytes) -> tuple[int, str]:
    with pytest.raises(ApiError) as problem:
        decode(body)
    return problem.value.status, problem.value.code


@each_case(
    "content_type",
    [
        JSON,
        "application/json; charset=utf-8",
        'application/json; charset="UTF-8"',
        "application/json;charset=utf8",
        "APPLICATION/JSON",
    ],
)
def test_json_in_utf8_is_read(content_type: str) -> None:
    assert read(b'{"a": 1}', content_type) == b'{"a": 1}'


@each_case(
    "content_type",
    [
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "text/plain",
        "application/xml",
        "text/xml",
        "application/json; charset=utf-16",
        "text/json",
        "",
        "application/json; charset=latin-1",
        "application/json; charset=nope",
        "*/*",
        "application/jsonx",
        "application/vnd.api+json",
        "application/problem+json",
        "application/json, text/plain",
    ],
)
def test_unsupported_media_type_is_refused(content_type: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        read(b"{}", content_type)


@each_case("encoding", ["gzip", "deflate", "br", "GZIP", "identity, gzip"])
def test_compressed_body_is_refused(encoding: str) -> None:
    with pytest.raises(UnsupportedMediaType):
        read(b"{}", HTTP_CONTENT_ENCODING=encoding)


def test_identity_encoding_is_accepted() -> None:
    assert read(b"{}", HTTP_CONTENT_ENCODING="identity") == b"{}"


@each_case("body", [b"", b" ", b"\n\t\r\n"])
def test_empty_body_is_malformed(body: bytes) -> None:
    with pytest.raises(ApiError) as problem:
        read(body)
    assert (problem.value.status, problem.value.code) == (400, "empty_body")


@each_case("size, limit", [(MAX_BYTES, MAX_BYTES), (10, 10)])
def test_body_up_to_the_limit_is_read(size: int, limit: int) -> None:
    assert len(read(b"x" * size, limit=limit)) == size


@each_case("size, limit", [(MAX_BYTES + 1, MAX_BYTES), (11, 10)])
def test_body_over_the_limit_is_too_large(size: int, limit: int) -> None:
    with pytest.raises(ApiError) as problem:
        read(b"x" * size, limit=limit)
    assert (problem.value.status, problem.value.code) == (413, "too_large")


@each_case("length", ["-1", "1e3", "abc", "0x10", "\u0661", "1,000", " 5 5", "\u00b2"])
def test_invalid_content_length_is_malformed(length: str) -> None:
    request = factory.generic("POST", "/", b"{}", content_type=JSON)
    request.META["CONTENT_LENGTH"] = length
    with pytest.raises(ApiError) as problem:
        read_body(request)
    assert problem.value.status == 400


@each_case("length", [str(MAX_BYTES + 1), "9" * 400])
def test_content_length_over_the_limit_is_refused_unread(length: str) -> None:
    request = factory.generic("POST", "/", b"{}", content_type=JSON)
    request.META["CONTENT_LENGTH"] = length
    with pytest.raises(ApiError) as problem:
        read_body(request)
    assert problem.value.status == 413


@each_case("size, status", [(100, None), (101, 413), (10_000, 413)])
def test_chunked_body_is_read_up_to_the_limit(size: int, status: int | None) -> None:
    request = factory.generic(
        "POST", "/", b"{}", content_type=JSON, HTTP_TRANSFER_ENCODING="chunked"
    )
    del request.META["CONTENT_LENGTH"]
    request.META["wsgi.input"] = io.BytesIO(b"x" * size)
    if status is None:
        assert len(read_body(request, limit=100)) == size
    else:
        with pytest.raises(ApiError) as problem:
            read_body(request, limit=100)
        assert problem.value.status == status


@each_case("is_chunked", [True, False])
def test_incomplete_body_is_malformed(is_chunked: bool) -> None:
    """The web server raises OSError for a lost connection or invalid chunks."""

    class Broken(io.BytesIO):
        def read(self, _size: int | None = -1) -> bytes:
            raise OSError("secret")

    headers = {"HTTP_TRANSFER_ENCODING": "chunked", "CONTENT_LENGTH": ""} if is_chunked else {}
    body = {"wsgi.input": Broken()}
    request = factory.generic("POST", "/", b"{}", content_type=JSON, **headers, **body)
    with pytest.raises(ApiError) as problem:
        read_body(request)
    assert (problem.value.status, problem.value.code) == (400, "incomplete_body")


@each_case(
    "body, value",
    [
        (b"{}", {}),
        (b' {"a": [1, 2.5, true, null, "x"]} \n', {"a": [1, 2.5, True, None, "x"]}),
        (
            '{"a": "caf\u00e9 \U0001f469\u200d\U0001f467"}'.encode(),
            {"a": "caf\u00e9 \U0001f469\u200d\U0001f467"},
        ),
        (b'{"a": "\\ud83d\\ude00"}', {"a": "\U0001f600"}),
        (b'{"a": 9223372036854775807}', {"a": 2**63 - 1}),
        (b'{"a": "[[[[[[[[[[[[[[[[[[[[[[[[[[["}', {"a": "[" * 27}),
        (b'{"a": "\\"[[[[[[[[[[[[[[[[[[[[[[[[\\\\"}', {"a": '"' + "[" * 24 + "\\"}),
        (b'{"a": "' + b"9" * 5_000 + b'"}', {"a": "9" * 5_000}),
        (b'{"$gt": "", "a.b": 1}', {"$gt": "", "a.b": 1}),
    ],
)
def test_json_object_is_decoded(body: bytes, value: dict[str, Any]) -> None:
    assert decode(body) == value


@each_case(
    "body, code",
    [
        *[
            (body, "malformed_json")
            for body in (b"{", b"}", b"{]", b'{"a"}', b'{"a":}', b"{'a': 1}")
        ],
        *[(body, "malformed_json") for body in (b'{"a": 1,}', b"{a: 1}", b'{"a": 01}', b"nul")],
        *[(body, "malformed_json") for body in (b"{} {}", b"{}x", b"{}\x00", b"\x00", b"//{}")],
        *[
            (body, "malformed_json")
            for body in (b'{"a": NaN}', b'{"a": Infinity}', b'{"a": -Infinity}')
        ],
        *[
            (body, "malformed_json")
            for body in (b'{"a": "\n"}', b'{"a": "\x01"}', b'{"a": "\\x"}', b'{"a": "x}')
        ],
        (b"\xef\xbb\xbf{}", "byte_order_mark"),
        ("{}".encode("utf-16"), "not_utf8"),
        (b'{"a": "\xff"}', "not_utf8"),
        (b'{"a": "\xed\xa0\x80"}', "not_utf8"),
        (b'{"a": "\xc0\x80"}', "not_utf8"),
        (b'{"a": 1, "a": 2}', "duplicate_key"),
        (b'{"a": 1, "\\u0061": 2}', "duplicate_key"),
        (b'{"x": {"a": 1, "a": 1}}', "duplicate_key"),
        (b'{"x": [{"a": 1, "a": 1}]}', "duplicate_key"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "too_deep"),
        (b'{"a":' * 1_000 + b"1" + b"}" * 1_000, "too_deep"),
        (b"[" * 100_000, "too_deep"),
        (b'{"a": ' + b"9" * 5_000 + b"}", "number_too_long"),
        (b'{"a": -' + b"9" * 400 + b"}", "number_too_long"),
        (b'{"a": 0.' + b"1" * 400 + b"}", "number_too_long"),
    ],
)
def test_malformed_json_is_refused(body: bytes, code: str) -> None:
    assert refused(body) == (400, code)


def test_utf16_without_byte_order_mark_is_malformed() -> None:
    for encoding in ("utf-16-le", "utf-16-be", "utf-32"):
        assert refused('{"a": 1}'.encode(encoding))[0] == 400


@each_case("body", [b"[]", b"null", b'"x"', b"1", b"true", b"[{}]", b"0.5"])
def test_json_that_is_no_object_is_invalid(body: bytes) -> None:
    assert refused(body) == (422, "validation_failed")


def test_deepest_allowed_json_is_decoded() -> None:
    body = b'{"a":' * (MAX_DEPTH - 1) + b"{}" + b"}" * (MAX_DEPTH - 1)
    assert decode(body)["a"]


def test_infinite_number_is_refused() -> None:
    for number in (b"1e400", b"-1e999", b"1" + b"0" * 350 + b".5"):
        with pytest.raises(ApiError):
            check_values(decode(b'{"data": {"x": ' + number + b"}}"))


def test_syntax_problem_has_the_position_and_no_content() -> None:
    with pytest.raises(ApiError) as problem:
        decode(b'{"secret":\n  canary}')
    assert problem.value.detail == "Invalid JSON at line 2, column 3."


@given(st.binary(max_size=80))
def test_any_bytes_are_decoded_or_refused(body: bytes) -> None:
    try:
        value = decode(body)
    except ApiError:
        return
    assert isinstance(value, dict)


@settings(max_examples=25)
@given(
    st.dictionaries(
        st.text(max_size=10),
        st.recursive(
            st.none()
            | st.booleans()
            | st.integers()
            | st.floats(allow_nan=False, allow_infinity=False)
            | st.text(max_size=20),
            lambda below: (
                st.lists(below, max_size=4)
                | st.dictionaries(st.text(max_size=5), below, max_size=4)
            ),
            max_leaves=8,
        ),
        max_size=5,
    )
)
def test_decoding_round_trips(value: dict[str, Any]) -> None:
    assert decode(json.dumps(value).encode()) == value


def test_decoding_uses_bounded_ram() -> None:
    body = b'{"body": "' + b"x" * 1_000_000 + b'"}'
    tracemalloc.start()
    decode(body)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 10 * len(body)


@each_case("rest", [b'\\"' * 120_000, b'"\\' * 120_000, b"[" * 240_000])
def test_unterminated_text_takes_linear_time(rest: bytes) -> None:
    with computing(at_most=1.0):
        assert refused(b'{"body": "' + rest)[0] == 400


def problems_of(value: dict[str, Any]) -> list[tuple[str, str]]:
    with pytest.raises(ApiError) as problem:
        check_values(value)
    assert problem.value.status == 422
    return [(e.pointer, e.code) for e in problem.value.errors]


def test_ordinary_values_are_accepted() -> None:
    check_values(
        {
            "type": "x",
            "data": {"a": [1, -1, 2**63 - 1, -(2**63), 1.5, True, None, "$password", "{{ x }}"]},
            "content": {"payload": {"k": {"deep": ["\U0001f469\u200d\U0001f467", "e\u0301"]}}},
        }
    )


@each_case(
    "value, problem",
    [
        ({"content": {"subject": "a\x00b"}}, ("/content/subject", "nul_character")),
        ({"data": {"a": ["x", "\x00"]}}, ("/data/a/1", "nul_character")),
        ({"data": {"a\x00": 1}}, ("/data/a\x00", "nul_character")),
        ({"data": {"a": "\ud800"}}, ("/data/a", "lone_surrogate")),
        ({"data": {"a": "x\udfff"}}, ("/data/a", "lone_surrogate")),
        ({"data": {"\ud800": 1}}, ("/data/?", "lone_surrogate")),
        ({"data": {"a": 2**63}}, ("/data/a", "integer_too_large")),
        ({"data": {"a": -(2**63) - 1}}, ("/data/a", "integer_too_large")),
        ({"ttl": 10**300}, ("/ttl", "integer_too_large")),
        ({"data": {"$gt": ""}}, ("/data/$gt", "forbidden_key")),
        ({"data": {"$where": "1"}}, ("/data/$where", "forbidden_key")),
        ({"data": {"a.b": 1}}, ("/data/a.b", "forbidden_key")),
        ({"data": {"": 1}}, ("/data/", "forbidden_key")),
        ({"data": {"__proto__": 1}}, ("/data/__proto__", "forbidden_key")),
        ({"data": {"a": [{"b": {"$c": 1}}]}}, ("/data/a/0/b/$c", "forbidden_key")),
        ({"content": {"payload": {"a.b": 1}}}, ("/content/payload/a.b", "forbidden_key")),
        ({"content": {"payload": {"$set": 1}}}, ("/content/payload/$set", "forbidden_key")),
        ({"data": {"x": [{"__proto__": 1}]}}, ("/data/x/0/__proto__", "forbidden_key")),
        ({"data": {"a/b~c": "\x00"}}, ("/data/a~1b~0c", "nul_character")),
        ({"data": {"k" * 129: 1}}, (f"/data/{'k' * 128}", "key_too_long")),
        ({"k" * 129: 1}, (f"/{'k' * 128}", "key_too_long")),
    ],
)
def test_value_that_cannot_be_stored_is_refused_with_its_pointer(
    value: dict[str, Any], problem: tuple[str, str]
) -> None:
    assert problems_of(value) == [problem]


def test_key_of_128_characters_is_accepted() -> None:
    check_values({"data": {"k" * MAX_KEY_LENGTH: 1}})


@each_case("count", [MAX_PROPERTIES - 1, MAX_PROPERTIES])
def test_up_to_500_properties_are_accepted(count: int) -> None:
    check_values({f"k{n}": 1 for n in range(count)})


@each_case(
    "value",
    [
        {f"k{n}": 1 for n in range(501)},
        {"data": {f"k{n}": 1 for n in range(500)}},
        {"data": [{"a": {"b": 1}} for _ in range(250)]},
    ],
)
def test_more_than_500_properties_at_all_levels_are_refused(value: dict[str, Any]) -> None:
    assert problems_of(value) == [("", "too_many_properties")]


def test_at_most_100_problems_are_reported() -> None:
    assert len(problems_of({"data": {"a": ["\x00"] * 20_000}})) == 100


def test_pointer_prefix_is_kept() -> None:
    with pytest.raises(ApiError) as problem:
        check_values({"data": {"a": "\x00"}}, pointer="/items/3")
    assert problem.value.errors[0].pointer == "/items/3/data/a"


def test_valid_request_is_converted() -> None:
    request = convert(
        {"type": "alert", "user_id": "ada", "recipient": {"device_ids": ["d"]}, "ttl": 60},
        NotificationRequest,
    )
    assert (request.type, request.user_id, request.ttl) == ("alert", "ada", 60)
    assert request.recipient.device_ids == ["d"]


@each_case(
    "fields, problem",
    [
        ({"type": ""}, ("/type", "out_of_range")),
        ({"type": "x" * 65}, ("/type", "out_of_range")),
        ({"user_id": ""}, ("/user_id", "out_of_range")),
        ({"user_id": "x" * 129}, ("/user_id", "out_of_range")),
        ({"content": {"subject": 7}}, ("/content/subject", "wrong_type")),
        ({"content": {"subject": ["x"]}}, ("/content/subject", "wrong_type")),
        ({"content": {"subject": "x" * 256}}, ("/content/subject", "out_of_range")),
        ({"content": {"payload": []}}, ("/content/payload", "wrong_type")),
        ({"content": {"image_url": "h" * 2049}}, ("/content/image_url", "out_of_range")),
        ({"recipient": {"email": ["a@example.com"]}}, ("/recipient/email", "wrong_type")),
        ({"recipient": {"device_ids": ["d", 7]}}, ("/recipient/device_ids/1", "wrong_type")),
        ({"recipient": {"device_ids": ["d", ""]}}, ("/recipient/device_ids/1", "out_of_range")),
        ({"recipient": {"device_ids": ["d"] * 101}}, ("/recipient/device_ids", "out_of_range")),
        ({"channels": [1]}, ("/channels/0", "wrong_type")),
        ({"ttl": True}, ("/ttl", "wrong_type")),
        ({"max_retries": -1}, ("/max_retries", "out_of_range")),
        ({"max_retries": 11}, ("/max_retries", "out_of_range")),
        ({"scheduled_at": "x" * 41}, ("/scheduled_at", "out_of_range")),
        ({"scheduled_local": {}}, ("/scheduled_local/at", "required")),
        ({"nope": 1}, ("/nope", "unknown_field")),
        ({"a/b~c": 1}, ("/a~1b~0c", "unknown_field")),
        ({"recipient": {"nope": 1}}, ("/recipient/nope", "unknown_field")),
        ({"content": {"no`pe": 1}}, ("/content/no`pe", "unknown_field")),
    ],
)
def test_invalid_field_is_refused_with_its_pointer(
    fields: dict[str, Any], problem: tuple[str, str]
) -> None:
    with pytest.raises(ApiError) as refusal:
        convert({"type": "alert"} | fields, NotificationRequest)
    assert refusal.value.status == 422
    assert [(e.pointer, e.code) for e in refusal.value.errors] == [problem]


@each_case("field", ["type", "user_id", "priority"])
def test_invalid_value_is_not_repeated(field: str) -> None:
    with pytest.raises(ApiError) as problem:
        convert({"type": "alert", field: ["secret"]}, NotificationRequest)
    assert "secret" not in repr(problem.value.errors)
