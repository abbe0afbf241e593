"""Parameters and filters of notification lists."""

import itertools
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import ObjectId
from django.core import signing
from django.http import QueryDict
from hypothesis import given
from hypothesis import strategies as st

from api.http.problems import ApiError
from api.notifications.filters import (
    CHOICES,
    LIST,
    STATUSES,
    ListRequest,
    cursors,
    parse_list_request,
)
from domain.channels import Channel
from domain.states import DeliveryStatus
from notifications.queries import Filter, Ordering
from notifyproject.db.paging import MAX_PAGE, Cursor, Page, _salt
from tests.support.tables import each_case

CLIENT = ObjectId("c" * 24)
ID = ObjectId("a" * 24)
ANY_CHANNEL = {"$in": [channel.value for channel in Channel]}
ANY_STATUS = {"$in": [status.value for status in DeliveryStatus]}
SENT = {"$in": ["delivered", "read", "sent"]}
SALT = _salt(LIST)
NOON = datetime(2026, 11, 21, 12, 0, 0, 123_000, tzinfo=UTC)


def parse(query: str = "", **fixed: Any) -> ListRequest:
    return parse_list_request(QueryDict(query), client_id=CLIENT, fixed=fixed)


def refused(query: str) -> tuple[int, str]:
    with pytest.raises(ApiError) as problem:
        parse(query)
    return problem.value.status, problem.value.code


def problems(query: str) -> list[tuple[str, str]]:
    with pytest.raises(ApiError) as problem:
        parse(query)
    assert problem.value.status == 422
    return [(e.pointer, e.code) for e in problem.value.errors]


def document(number: int) -> dict[str, Any]:
    return {"_id": ObjectId(f"{number:024x}"), "created_at": NOON}


def test_default_list_has_twenty_of_the_client() -> None:
    assert parse() == ListRequest(filters=Filter(client_id=CLIENT), limit=20)


@each_case(
    "query, fields",
    [
        ("user_id=ada", {"user_id": "ada"}),
        ("user_id=%24ne", {"user_id": "$ne"}),
        ("user_id=", {"user_id": ""}),
        ("type=alert", {"type": "alert"}),
        ("entity_id=order-1&external_id=x", {"entity_id": "order-1", "external_id": "x"}),
        ("unread=true", {"unread": True}),
        ("unread=false", {"unread": False}),
        ("is_active=true", {"is_active": True}),
        ("is_active=false", {"is_active": False}),
        (
            "created_after=2026-11-21T12:00:00.123Z&created_before=2026-11-21T14:00:00.123%2B01:00",
            {"created_after": NOON, "created_before": NOON.replace(hour=13)},
        ),
        ("created_after=2026-11-21T13:00:00.123+01:00", {"created_after": NOON}),
    ],
)
def test_filter_is_parsed(query: str, fields: dict[str, Any]) -> None:
    assert parse(query).filters == Filter(client_id=CLIENT, **fields)


@each_case(
    "name, word", [(name, member.value) for name, words in CHOICES.items() for member in words]
)
def test_every_choice_is_a_filter(name: str, word: str) -> None:
    assert getattr(parse(f"{name}={word}").filters, name) == word


@each_case(
    "name, word",
    [(name, member.value) for name, (_, words) in STATUSES.items() for member in words],
)
def test_every_status_is_a_filter(name: str, word: str) -> None:
    assert getattr(parse(f"{name}={word}").filters, STATUSES[name][0]) == (word,)


@each_case(
    "query",
    [
        "status=failed,expired",
        "status=failed&status=expired",
        "status=failed,expired&status=failed",
    ],
)
def test_several_statuses_are_a_filter(query: str) -> None:
    filters = parse(query).filters
    assert filters.statuses == ("failed", "expired")
    assert filters.match()["status"] == {"$in": ["failed", "expired"]}


def test_several_delivery_statuses_are_a_filter() -> None:
    match = parse("delivery_status=failed,expired").filters.match()
    statuses = {"$in": ["failed", "expired"]}
    assert match["delivery"] == {"$elemMatch": {"channel": ANY_CHANNEL, "status": statuses}}


@each_case(
    "query, ordering",
    [
        ("", "-created_at"),
        *((f"ordering={ordering}", ordering) for ordering in Ordering),
        ("scheduled_after=2026-11-21T12:00:00Z", "scheduled_at"),
        ("scheduled_before=2026-11-21T12:00:00Z&ordering=-scheduled_at", "-scheduled_at"),
        ("created_before=2026-11-21T12:00:00Z&ordering=scheduled_at", "scheduled_at"),
    ],
)
def test_list_has_the_order_of_an_index(query: str, ordering: str) -> None:
    assert parse(query).ordering == ordering


def test_other_order_is_refused_with_those_that_an_index_serves() -> None:
    with pytest.raises(ApiError) as problem:
        parse("ordering=updated_at")
    (error,) = problem.value.errors
    assert error.pointer == "/ordering"
    assert all(ordering.value in error.detail for ordering in Ordering)


def test_order_of_creation_is_refused_for_a_range_of_the_schedule() -> None:
    with pytest.raises(ApiError) as problem:
        parse("scheduled_after=2026-11-21T12:00:00Z&ordering=-created_at")
    (error,) = problem.value.errors
    assert (error.pointer, error.code) == ("/ordering", "conflict")
    assert error.detail.startswith("Expected one of -scheduled_at, scheduled_at with")


def test_cursor_is_for_one_order() -> None:
    newest = parse()
    cursor = cursors(Page([document(1)], has_next=True, has_previous=False), newest)["next"]
    assert parse(f"cursor={cursor}").cursor is not None
    assert refused(f"cursor={cursor}&ordering=created_at") == (400, "invalid_cursor")


def test_fields_are_parsed() -> None:
    assert parse().fields is None
    assert parse("fields=id,status").fields == frozenset({"id", "status"})


@each_case(
    "query, detail",
    [
        ("fields=id,statuss", "Unknown field `statuss`. Did you mean `status`?"),
        ("fields=xyzzy", "Unknown field `xyzzy`."),
        ("fields=", "Unknown field."),
        ("fields=%3Cb%3E", "Unknown field."),
    ],
)
def test_unknown_field_is_refused_with_its_name(query: str, detail: str) -> None:
    with pytest.raises(ApiError) as problem:
        parse(query)
    (error,) = problem.value.errors
    assert (error.pointer, error.code, error.detail) == ("/fields", "unknown_field", detail)


@each_case("limit", [1, 20, 99, MAX_PAGE])
def test_page_size_up_to_100_is_accepted(limit: int) -> None:
    assert parse(f"limit={limit}").limit == limit


def test_path_fixes_a_filter() -> None:
    assert parse(user_id="ada").filters.user_id == "ada"


@each_case(
    "query, place",
    [
        *[(f"{name}=nope", (f"/{name}", "unknown_value")) for name in (*CHOICES, *STATUSES)],
        *[(f"{name}=", (f"/{name}", "unknown_value")) for name in (*CHOICES, *STATUSES)],
        ("status=failed,nope", ("/status", "unknown_value")),
        ("status=failed,", ("/status", "unknown_value")),
        ("scheduled_after=tomorrow", ("/scheduled_after", "invalid_datetime")),
        ("status=SENT", ("/status", "unknown_value")),
        ("status=pending", ("/status", "unknown_value")),
        ("created_after=yesterday", ("/created_after", "invalid_datetime")),
        ("created_before=2026-11-21T12:00:00", ("/created_before", "naive_datetime")),
        ("created_before=", ("/created_before", "invalid_datetime")),
        *((query, ("/unread", "wrong_type")) for query in ("unread=1", "unread=TRUE", "unread=")),
        ("is_active=0", ("/is_active", "wrong_type")),
        ("user_id=a%00b", ("/user_id", "invalid")),
        (f"user_id={'x' * 513}", ("/user_id", "invalid")),
    ],
)
def test_invalid_value_is_refused_with_its_pointer(query: str, place: tuple[str, str]) -> None:
    assert problems(query) == [place]


def test_all_problems_are_reported_at_once() -> None:
    found = problems("status=x&limit=0&unread=x&created_after=x&user_id=%00")
    assert {pointer for pointer, _ in found} == {
        "/status",
        "/limit",
        "/unread",
        "/created_after",
        "/user_id",
    }


@each_case(
    "cursor",
    [
        "",
        "x",
        "eyJhIjoxfQ",
        "a:b:c",
        "null",
        "../..",
        "$gt",
        "x" * 500,
        signing.dumps([0, ["t", 1], ["o", str(ID)]], salt="another"),
        signing.dumps([0, ["t", 1], ["o", str(ID)]], salt=SALT)[:-1],
        signing.dumps([0, ["t", 1], ["o", str(ID)]], key="another" * 8, salt=SALT),
    ],
)
def test_forged_cursor_is_malformed(cursor: str) -> None:
    assert refused(f"cursor={cursor}") == (400, "invalid_cursor")


@each_case("has_next, has_previous", list(itertools.product([True, False], repeat=2)))
def test_page_has_cursors_to_its_neighbors(has_next: bool, has_previous: bool) -> None:
    page = Page([document(3), document(2), document(1)], has_next, has_previous)
    found = cursors(page, parse())
    assert (found["next"] is not None) is has_next
    assert (found["previous"] is not None) is has_previous
    if found["next"]:
        assert parse(f"cursor={found['next']}").cursor == Cursor((NOON, document(1)["_id"]))
    if found["previous"]:
        before = Cursor((NOON, document(3)["_id"]), backwards=True)
        assert parse(f"cursor={found['previous']}").cursor == before


def test_empty_page_has_no_cursors() -> None:
    empty = Page([], has_next=False, has_previous=True)
    assert cursors(empty, parse()) == {"next": None, "previous": None}


@given(
    st.datetimes(datetime(2000, 1, 1), datetime(2100, 1, 1)), st.binary(min_size=12, max_size=12)
)
def test_cursor_is_exact_to_the_millisecond(moment: datetime, raw: bytes) -> None:
    created_at = moment.replace(microsecond=moment.microsecond // 1000 * 1000, tzinfo=UTC)
    page = Page([{"_id": ObjectId(raw), "created_at": created_at}], True, False)
    cursor = parse(f"cursor={cursors(page, parse())['next']}").cursor
    assert cursor == Cursor((created_at, ObjectId(raw)))


def test_cursor_is_short_ascii() -> None:
    cursor = cursors(Page([document(1)], has_next=True, has_previous=False), parse())["next"]
    assert cursor is not None
    assert len(cursor) < 200
    assert cursor.isascii()


@each_case(
    "query, match",
    [
        ("", {}),
        ("user_id=ada", {"user_id": "ada"}),
        ("channel=email", {"delivery": {"$elemMatch": {"channel": "email", "status": ANY_STATUS}}}),
        (
            "delivery_status=failed",
            {"delivery": {"$elemMatch": {"channel": ANY_CHANNEL, "status": "failed"}}},
        ),
        (
            "channel=email&delivery_status=failed",
            {"delivery": {"$elemMatch": {"channel": "email", "status": "failed"}}},
        ),
        ("unread=true", {"is_read": False, "delivery.status": SENT}),
        (
            "unread=true&channel=push&delivery_status=failed",
            {
                "is_read": False,
                "delivery.status": SENT,
                "delivery": {"$elemMatch": {"channel": "push", "status": "failed"}},
            },
        ),
        ("created_after=2026-11-21T12:00:00.123Z", {"created_at": {"$gte": NOON}}),
        ("created_before=2026-11-21T12:00:00.123Z", {"created_at": {"$lt": NOON}}),
    ],
)
def test_filter_is_translated_to_mongodb(query: str, match: dict[str, Any]) -> None:
    expected = {"client_id": CLIENT, "is_active": True} | match
    assert parse(query).filters.match() == expected
