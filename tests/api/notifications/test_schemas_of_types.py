"""Requests whose data differs from the schema of their type."""

from datetime import timedelta
from typing import Any

import pytest
from bson import ObjectId

from domain.time import utc_now
from notifications.catalog import schemas, types
from tests.support.clients.api import Answer, App, pointers, request
from tests.support.clients.bulk import item, post_bulk, problems
from tests.support.factories.broadcasts import recipients, run_to_completion
from tests.support.tables import each_case

SCHEMA = {
    "type": "object",
    "properties": {
        "order_id": {"type": "integer", "minimum": 1},
        "amount": {"type": "string", "pattern": "^[0-9]+[.][0-9]{2}$"},
        "video_title": {"type": "string"},
    },
    "required": ["order_id", "amount", "video_title"],
    "additionalProperties": False,
}
RIGHT = {"order_id": 1001, "amount": "49.90", "video_title": "Sunrise"}
WRONG = {"order_id": "1001", "amount": 49.9, "title": "Sunrise"}
PROBLEMS = {
    "/data/amount": "wrong_type",
    "/data/order_id": "wrong_type",
    "/data/title": "unknown_field",
    "/data/video_title": "missing_variable",
}


def define(mode: str = "reject", *, slug: str = "payment_confirmed", **schema: Any) -> None:
    text = schemas.dump(SCHEMA | schema)
    types.define_type(slug, {"schema": text, "schema_mode": mode}, now=utc_now())


@pytest.fixture(autouse=True)
def schema(db: None) -> None:
    define()


def notify(app: App, **fields: Any) -> Answer:
    return app.notify(**{"type": "payment_confirmed", "content": ..., "data": WRONG} | fields)


def test_every_wrong_field_is_named_once_and_nothing_is_stored(app: App) -> None:
    answer = notify(app)
    assert (answer.status_code, pointers(answer)) == (422, PROBLEMS)
    assert len(answer.json()["errors"]) == len(PROBLEMS)
    assert app.get("/notifications").json()["results"] == []
    preview = request(type="payment_confirmed", content=..., data=WRONG)
    assert pointers(app.post("/notifications/preview", preview)) == PROBLEMS


def test_matching_data_is_accepted_without_warnings(app: App) -> None:
    answer = notify(app, data=RIGHT)
    assert (answer.status_code, answer.json()["warnings"]) == (202, [])


def test_each_item_of_a_bulk_call_has_its_own_problems(app: App) -> None:
    of_type = {"type": "payment_confirmed", "content": ...}
    wrong, right = ({**item(n), **of_type, "data": d} for n, d in enumerate((WRONG, RIGHT)))
    for each in (wrong, right):
        del each["content"]
    answer = post_bulk(app, wrong, right)
    assert answer.json()["results"][1].keys() == {"index", "id"}
    assert problems(answer.json()["results"][0]) == PROBLEMS


def test_broadcast_is_refused_when_it_is_created(app: App) -> None:
    body = {"type": "payment_confirmed", "audience": {"all": True}, "data": WRONG}
    assert pointers(app.post("/broadcasts", body)) == PROBLEMS


def test_accepted_broadcast_reaches_everyone_after_the_schema_changes(app: App) -> None:
    recipients(3)
    body = {"type": "payment_confirmed", "audience": {"all": True}, "data": RIGHT}
    answer = app.post("/broadcasts", body)
    assert answer.status_code == 202
    define(required=["reference"])
    run_to_completion(ObjectId(answer.json()["id"]), at=utc_now())
    done = app.get(f"/broadcasts/{answer.json()['id']}").json()
    assert (done["accepted"], done["rejected"]) == (3, [])


def test_repeated_request_stays_accepted_after_the_schema_changes(app: App) -> None:
    key = {"Idempotency-Key": "once"}
    body = request(type="payment_confirmed", content=..., data=RIGHT)
    first = app.post("/notifications", body, headers=key)
    define(required=["reference"])
    again = app.post("/notifications", body, headers=key)
    assert (first.status_code, again.json()["id"]) == (202, first.json()["id"])


def test_warning_mode_accepts_and_names_each_field(app: App) -> None:
    define("warn")
    data = RIGHT | {"order_id": "1001", "source": "web"}
    answer = notify(app, data=data)
    assert answer.status_code == 202
    found = {w["pointer"]: (w["code"], w["channel"]) for w in answer.json()["warnings"]}
    assert found == {
        "/data/order_id": ("wrong_type", None),
        "/data/source": ("unknown_field", None),
    }
    preview = app.post(
        "/notifications/preview", request(type="payment_confirmed", content=..., data=data)
    )
    assert preview.json()["warnings"] == answer.json()["warnings"]


def test_variable_that_the_template_lacks_is_refused_in_any_mode(app: App) -> None:
    for mode in ("warn", "off"):
        define(mode)
        assert pointers(notify(app)) == {"/data/video_title": "missing_variable"}


def test_mode_off_checks_nothing(app: App) -> None:
    define("off")
    answer = notify(app, data=RIGHT | {"order_id": "1001"})
    assert (answer.status_code, answer.json()["warnings"]) == (202, [])


def test_request_with_its_own_body_has_free_data(app: App) -> None:
    content = {"subject": "Paid", "body": "We have your money."}
    assert notify(app, content=content, data={"note": "x"}).status_code == 202
    assert notify(app, content=content, data={}).status_code == 202


def test_schema_is_that_of_the_templates_type(app: App) -> None:
    of_template = {"type": "alert", "content": {"template_id": "payment_confirmed"}}
    assert pointers(notify(app, **of_template)) == PROBLEMS
    other = {"content": {"template_id": "order_shipped"}, "data": {"order": "12345"}}
    assert notify(app, **other).status_code == 202


@each_case(
    "required, properties",
    [
        (["contest_name", "start_time", "hours_until_start"], {}),
        (["contest_name"], {"hours_until_start": {"type": "integer"}}),
    ],
)
def test_reminder_adds_its_variables(
    app: App, required: list[str], properties: dict[str, Any]
) -> None:
    properties = {"contest_name": {"type": "string"}, **properties}
    define(slug="contest_reminder", required=required, properties=properties)
    answer = notify(
        app,
        type="contest_reminder",
        data={"contest_name": "Round 900"},
        event_at=f"{utc_now() + timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}",
        scheduled_at=...,
        send_at=...,
    )
    assert answer.status_code == 202, answer.json()


def test_refusal_has_no_value_of_a_secret(app: App) -> None:
    define(
        slug="mfa_code", properties={"code": {"type": "string", "pattern": "^[0-9]{6}$"}},
        required=["code", "expires_in"], additionalProperties=True,
    )  # fmt: skip
    answer = notify(app, type="mfa_code", data={"code": "s3cret"})
    assert pointers(answer) == {
        "/data/code": "invalid_format",
        "/data/expires_in": "missing_variable",
    }
    assert "s3cret" not in answer.content.decode()
