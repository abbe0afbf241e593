"""How often accepted data differed from the schema of its type, by field."""

from datetime import timedelta

import pytest

from domain.time import utc_now
from notifications.catalog import schemas, types
from notifications.intake import mismatches
from notifications.intake.mismatches import MAX_FIELDS, MAX_POINTER, WINDOW
from notifications.validation import FieldProblem
from notifyproject.platform import valkey
from tests.support.clients.api import App
from tests.support.clients.bulk import item, post_bulk
from tests.support.fakes.valkey_faults import unavailable

pytestmark = pytest.mark.usefixtures("db", "broker")

SLUG = "payment_confirmed"
NUMBER = {"type": "object", "properties": {"order_id": {"type": "integer"}}}


def define(mode: str, **schema: object) -> str:
    text = schemas.dump(NUMBER | schema)
    types.define_type(SLUG, {"schema": text, "schema_mode": mode}, now=utc_now())
    return text


def counts(schema: str) -> dict[str, int]:
    found = mismatches.read(SLUG, schema, now=utc_now())
    return dict(found.counts) if found else {}


def problems(*pointers: str) -> list[FieldProblem]:
    return [FieldProblem(pointer, "wrong_type", "Expected integer.") for pointer in pointers]


def test_accepted_differences_are_counted_for_one_and_bulk(app: App) -> None:
    schema = define("warn")
    data = {"order_id": "1001", "video_title": "Sunrise", "amount": "49.90"}
    for _ in range(2):
        assert app.notify(content=..., data=data).status_code == 202
    many = [item(n, type=SLUG, content=..., data={**data, "amount": str(n)}) for n in range(3)]
    right = item(9, type=SLUG, content=..., data={**data, "order_id": 1})
    answer = post_bulk(app, *many, right)
    assert answer.json()["accepted"] == 4, answer.json()
    assert counts(schema) == {"/data/order_id": 5}


def test_request_that_fits_or_is_refused_is_not_counted(app: App) -> None:
    data = {"order_id": "1001", "video_title": "Sunrise", "amount": "49.90"}
    schema = define("reject")
    assert app.notify(content=..., data=data).status_code == 422
    define("warn")
    assert app.notify(content=..., data={**data, "order_id": 1}).status_code == 202
    assert counts(schema) == {}


def test_another_schema_begins_anew(app: App) -> None:
    schema = define("warn")
    mismatches.count(SLUG, [problems("/data/order_id")])
    other = define("warn", title="Order")
    assert (counts(schema), counts(other)) == ({"/data/order_id": 1}, {})


def test_items_of_a_list_are_one_field(app: App) -> None:
    schema = define("warn")
    mismatches.count(SLUG, [problems("/data/lines/0/sku", "/data/lines/17/sku", "/data/a1/2")])
    mismatches.count(SLUG, [problems("/data/lines/3/sku")])
    assert counts(schema) == {"/data/lines/*/sku": 2, "/data/a1/*": 1}


def test_names_that_clients_choose_are_bounded(app: App) -> None:
    schema = define("warn")
    mismatches.count(SLUG, [problems(*(f"/data/field{n}" for n in range(MAX_FIELDS + 20)))])
    mismatches.count(SLUG, [problems("/data/one_more", "/data/" + "x" * 1_000)])
    assert len(counts(schema)) == MAX_FIELDS
    assert "/data/one_more" not in counts(schema)
    other = define("warn", title="Order")
    mismatches.count(SLUG, [problems("/data/" + "x" * 1_000, "/data/\ud800")])
    assert {len(pointer) for pointer in counts(other)} == {MAX_POINTER, len("/data/?")}


def test_window_begins_with_the_first_difference(app: App) -> None:
    schema = define("warn")
    mismatches.count(SLUG, [problems("/data/order_id")])
    now = utc_now()
    found = mismatches.read(SLUG, schema, now=now)
    assert found is not None
    assert now - timedelta(minutes=1) < found.since <= now + timedelta(seconds=1)
    (key,) = (key for key in valkey.client().scan_iter("type:*:mismatches"))
    assert 0 < valkey.client().ttl(key) <= WINDOW.total_seconds()


def test_acceptance_does_not_need_the_counts(app: App) -> None:
    schema = define("warn")
    data = {"order_id": "1001", "video_title": "Sunrise", "amount": "49.90"}
    with unavailable():
        assert app.notify(content=..., data=data).status_code == 202
        assert counts(schema) == {}
