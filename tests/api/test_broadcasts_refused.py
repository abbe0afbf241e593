"""What is wrong with a broadcast is told at once, all of it, and nothing is stored."""

from datetime import timedelta
from typing import Any

import pytest

from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.api.test_broadcasts import WORDS, begin
from tests.support.clients.api import App, pointers

CONTROL, URL = "control_characters", "invalid_url"


def in_days(days: int) -> str:
    return (utc_now() + timedelta(days=days)).isoformat()


@pytest.mark.parametrize(
    ("audience", "problems"),
    [
        ({}, {"/audience": "conflict"}),
        ({"topic": "news", "all": True}, {"/audience": "conflict"}),
        ({"all": False}, {"/audience/all": "out_of_range"}),
        ({"topic": "No Such"}, {"/audience/topic": "invalid_topic"}),
        ({"topic": {"$gt": ""}}, {"/audience/topic": "wrong_type"}),
        ({"topic": ""}, {"/audience/topic": "out_of_range"}),
        ({"user_ids": []}, {"/audience/user_ids": "out_of_range"}),
        ({"user_ids": ["x" * 129]}, {"/audience/user_ids/0": "out_of_range"}),
        ({"user_ids": ["a\x00"]}, {"/audience/user_ids/0": "nul_character"}),
        ({"user_ids": [f"{n}" for n in range(10_001)]}, {"/audience/user_ids": "out_of_range"}),
        ({"segment": "x"}, {"/audience/segment": "unknown_field"}),
        ([], {"/audience": "wrong_type"}),
        (..., {"/audience": "required"}),
    ],
)
def test_an_audience_is_one_of_three(app: App, audience: Any, problems: dict[str, str]) -> None:
    answer = begin(app, audience=audience)
    assert answer.status_code == 422
    assert pointers(answer) == problems
    assert collection("broadcasts").count_documents({}) == 0


@pytest.mark.parametrize(
    ("fields", "problems"),
    [
        ({"type": "nope"}, {"/type": "unknown_type"}),
        ({"type": "mfa_code", "data": {"code": "1", "expires_in": 5}}, {"/type": "critical_type"}),
        ({"priority": "critical"}, {"/priority": "critical_broadcast"}),
        ({"priority": "urgent"}, {"/priority": "unknown_priority"}),
        ({"channels": []}, {"/channels": "no_channel"}),
        ({"channels": ["fax"]}, {"/channels/0": "unknown_channel"}),
        ({"ttl": 0}, {"/ttl": "invalid_ttl"}),
        ({"ttl": 60, "expires_at": in_days(1)}, {"/ttl": "conflict"}),
        ({"scheduled_at": in_days(-1)}, {"/scheduled_at": "in_the_past"}),
        ({"scheduled_at": in_days(400)}, {"/scheduled_at": "too_far_ahead"}),
        ({"scheduled_at": "2026-12-01T09:00:00"}, {"/scheduled_at": "naive_datetime"}),
        (
            {"scheduled_at": in_days(2), "expires_at": in_days(1)},
            {"/expires_at": "expires_before_sending"},
        ),
        ({"data": {"$where": 1}}, {"/data/$where": "forbidden_key"}),
        ({"type": {"$gt": ""}}, {"/type": "wrong_type"}),
        ({"type": 5}, {"/type": "wrong_type"}),
        ({"channels": "email"}, {"/channels": "wrong_type"}),
        ({"ttl": True}, {"/ttl": "wrong_type"}),
        ({"ttl": 2**63}, {"/ttl": "integer_too_large"}),
        ({"data": []}, {"/data": "wrong_type"}),
        ({"data": {"x": "a\x00"}}, {"/data/x": "nul_character"}),
        ({"content": {**WORDS, "subject": "a\r\nBcc: b"}}, {"/content/subject": CONTROL}),
        ({"content": {**WORDS, "image_url": "https://10.0.0.1/"}}, {"/content/image_url": URL}),
        (
            {"channels": ["push"], "content": {**WORDS, "payload": {"x": "y" * 5_000}}},
            {"/content/payload": "too_long"},
        ),
        ({"content": {**WORDS, "sender": "x"}}, {"/content/sender": "unknown_field"}),
        ({"entity_id": "x"}, {"/entity_id": "unknown_field"}),
        ({"recipient": {"email": "a@example.com"}}, {"/recipient": "unknown_field"}),
    ],
)
def test_what_is_wrong_for_everybody_is_a_problem(
    app: App, fields: dict[str, Any], problems: dict[str, str]
) -> None:
    answer = begin(app, **fields)
    assert answer.status_code == 422
    assert pointers(answer) == problems
    assert collection("broadcasts").count_documents({}) == 0


def test_a_template_that_lacks_a_variable_is_a_problem(app: App) -> None:
    answer = begin(app, type="order_shipped", content=..., data={})
    assert answer.status_code == 422
    assert set(pointers(answer).values()) == {"missing_variable"}


def test_a_type_that_says_something_secret_is_for_one_person(app: App) -> None:
    secret = {"$set": {"sensitive_variables": ["code"]}}
    collection("notification_types").update_one({"_id": "alert"}, secret)
    answer = begin(app, type="alert", data={"code": "1"})
    assert pointers(answer) == {"/type": "secret_type"}


def test_nor_is_the_secret_template_of_another_type_for_everybody(app: App) -> None:
    data = {"code": "123456", "expires_in": 5}
    answer = begin(app, type="transactional", content={"template_id": "mfa_code"}, data=data)
    assert pointers(answer)["/type"] == "secret_type"
    assert collection("broadcasts").count_documents({}) == 0


def test_all_problems_are_told_at_once(app: App) -> None:
    answer = begin(app, audience={}, priority="urgent", channels=["fax"])
    assert pointers(answer).keys() == {"/audience", "/priority", "/channels/0"}


def test_a_body_has_a_largest_size(app: App) -> None:
    huge = {"subject": "Spring", "body": "x" * 103_000}
    assert begin(app, content=huge).status_code == 422
    assert app.send("/broadcasts", b" " * (4 * 1024 * 1024 + 1)).status_code == 413


@pytest.mark.parametrize("raw", [b"", b"[", b'{"type": "marketing"} x', b"\xff"])
def test_what_is_no_json_is_refused(app: App, raw: bytes) -> None:
    assert app.send("/broadcasts", raw).status_code == 400


def test_a_key_is_visible_text(app: App) -> None:
    assert begin(app, key="with blank").json()["code"] == "invalid_idempotency_key"


@pytest.mark.parametrize("one", ["x", "a" * 24, "A" * 25, "%00", "$ne"])
def test_a_broadcast_that_is_not_there_is_not_found(app: App, one: str) -> None:
    answers = [app.get(f"/broadcasts/{one}")]
    answers += [app.post(f"/broadcasts/{one}/{what}") for what in ("pause", "resume", "cancel")]
    assert [answer.status_code for answer in answers] == [404] * 4
