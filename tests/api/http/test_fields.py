"""Validation of texts, keys, and times of a request."""

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from domain.time import utc_now
from tests.support.clients.api import App, pointers, request

CONTROL = "control_characters"


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"content": {"subject": "a\nb", "body": "x"}}, "/content/subject", CONTROL),
        ({"content": {"subject": "a\x1bb", "body": "x"}}, "/content/subject", CONTROL),
        ({"content": {"subject": "a\r\nB: b", "body": "x"}}, "/content/subject", CONTROL),
        ({"recipient": {"name": "A\r\nBcc: x"}}, "/recipient/name", CONTROL),
        ({"content": {"subject": "", "body": "x"}}, "/content/subject", "blank"),
        ({"content": {"subject": "  \u200b ", "body": "x"}}, "/content/subject", "blank"),
        ({"content": {"body": "   "}}, "/content/body", "blank"),
        ({"content": {"body": "x" * (100 * 1024 + 1)}}, "/content/body", "too_long"),
        ({"content": {"body": "\u00e4" * (51 * 1024)}}, "/content/body", "too_long"),
        ({"priority": "urgent"}, "/priority", "unknown_priority"),
    ],
)
def test_invalid_value_is_refused_with_its_pointer(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    answer = app.notify(**fields)
    assert answer.status_code == 422
    assert pointers(answer)[pointer] == code


SCALARS: dict[str, list[str]] = {
    "": ["type", "user_id", "priority", "entity_id", "external_id", "scheduled_at", "expires_at"],
    "recipient": ["email", "phone", "name", "locale", "timezone"],
    "content": ["subject", "body", "template_id", "image_url", "deep_link", "reply_to"],
    "scheduled_local": ["at", "timezone"],
}


@pytest.mark.parametrize("operator", [{"$gt": ""}, {"$ne": None}, ["ada@example.com"], True, 5])
def test_non_text_is_a_wrong_type_in_every_text_field(app: App, operator: Any) -> None:
    for place, names in [*SCALARS.items(), ("", ["ttl", "max_retries", "event_at"])]:
        for name in names:
            if operator == 5 and name in ("ttl", "max_retries"):
                continue
            within = {"at": "2099-01-01T09:00"} if place == "scheduled_local" else {}
            fields = {place: {**within, name: operator}} if place else {name: operator}
            pointer = f"/{place}/{name}" if place else f"/{name}"
            answer = app.notify(**fields)
            assert (answer.status_code, pointers(answer)) == (422, {pointer: "wrong_type"}), fields


def test_rendered_push_over_4_kb_is_refused(app: App) -> None:
    content = {"subject": "S", "body": "B", "payload": {"fill": "x" * 4_096}}
    fields = {"channels": ["push"], "user_id": "ada", "recipient": ..., "content": content}
    for answer in (app.notify(**fields), app.post("/notifications/preview", request(**fields))):
        assert (answer.status_code, pointers(answer)) == (422, {"/content/payload": "too_long"})
    assert app.notify(**fields | {"channels": ["in_app"]}).status_code == 202


@pytest.mark.parametrize(
    "text",
    [
        *("Ol\u00e1, \u00e7\u00e3o", "\U0001f469\u200d\U0001f469\u200d\U0001f467"),
        "e\u0301 (combining)",
        "\U0001f3f4\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f",
        *("\u0645\u0631\u062d\u0628\u0627", "<script>alert(1)</script>", "{{ 7 | times: 7 }}"),
        *("$password", "  two  spaces\u00a0kept "),
    ],
)
def test_text_is_returned_unchanged(app: App, stored: Any, text: str) -> None:
    answer = app.notify(content={"subject": text, "body": text}, data={"x": text})
    body = answer.json()
    assert body["content"]["subject"] == text
    assert body["content"]["body"] == text
    assert body["data"]["x"] == text
    assert stored(answer)["content"]["body"] == text


def test_invisible_characters_are_removed_from_subject_and_link(app: App) -> None:
    answer = app.notify(
        content={
            "subject": "Pay\u202eeur\u200b now",
            "body": "kept: \u202e\u200b",
            "deep_link": "app://orders/\u200b5",
        }
    )
    content = answer.json()["content"]
    assert content["subject"] == "Payeur now"
    assert content["deep_link"] == "app://orders/5"
    assert content["body"] == "kept: \u202e\u200b"


def test_placeholder_in_data_is_not_rendered(app: App) -> None:
    answer = app.notify(data={**request()["data"], "video_title": "{{ order_id }}"})
    assert answer.json()["content"]["subject"] == "Payment confirmed: {{ order_id }}"


def test_missing_variable_is_named(app: App) -> None:
    answer = app.notify(data={"order_id": 1, "amount": "1"})
    assert pointers(answer) == {"/data/video_title": "missing_variable"}
    assert "video_title" in answer.json()["errors"][0]["detail"]


def test_problem_repeats_no_value(app: App) -> None:
    answer = app.notify(recipient={"email": "very-secret-value"}, priority="very-secret-value")
    assert b"very-secret-value" not in answer.content


def test_sensitive_data_is_neither_shown_nor_stored_in_content(app: App, stored: Any) -> None:
    answer = app.notify(type="mfa_code", data={"code": "481516"})
    assert answer.status_code == 202
    assert b"481516" not in answer.content
    assert "481516" not in str(stored(answer)["content"])


def test_type_without_template_needs_a_body(app: App) -> None:
    answer = app.notify(type="transactional", data={})
    assert pointers(answer) == {"/content/body": "required"}


def test_missing_subject_is_the_first_line_of_the_body(app: App) -> None:
    answer = app.notify(type="transactional", content={"body": "\nOrder shipped\nmore"}, data={})
    assert answer.json()["content"]["subject"] == "Order shipped"


def test_content_of_the_request_overrides_the_template(app: App) -> None:
    answer = app.notify(content={"subject": "S", "body": "B"}, data={})
    assert (
        answer.json()["content"] | {"subject": "S", "body": "B", "template_id": None}
        == (answer.json()["content"])
    )


def test_unknown_template_is_refused(app: App) -> None:
    for name in ("nope", "../etc", "_layout", "a/b"):
        answer = app.notify(content={"template_id": name})
        assert pointers(answer) == {"/content/template_id": "unknown_template"}


def from_now(**span: float) -> str:
    return (utc_now() + timedelta(**span)).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


def next_clock_change(zone: str, *, forward: bool) -> str:
    """Return the next day of a clock change in a zone."""
    day = utc_now().replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
    while True:
        before, after = (
            (day + timedelta(days=n)).astimezone(ZoneInfo(zone)).utcoffset() for n in (0, 1)
        )
        if before != after and (after > before) is forward:
            return day.strftime("%Y-%m-%d")
        day += timedelta(days=1)


@pytest.mark.parametrize(
    ("text", "code"),
    [("2026-12-01T09:00:00", "naive_datetime"), ("2026-02-30T09:00:00Z", "invalid_datetime")],
)
@pytest.mark.parametrize("field", ["scheduled_at", "expires_at"])
def test_invalid_time_is_refused(app: App, field: str, text: str, code: str) -> None:
    assert pointers(app.notify(**{field: text})) == {f"/{field}": code}


def test_time_is_truncated_to_milliseconds(app: App) -> None:
    day = (utc_now() + timedelta(days=1)).strftime("%Y-%m-%d")
    answer = app.notify(scheduled_at=f"{day}T10:00:00.123999999+01:00")
    assert moment(answer.json()["scheduled_at"]) == datetime.fromisoformat(
        f"{day}T09:00:00.123+00:00"
    )


def test_slightly_past_time_means_now(app: App) -> None:
    answer = app.notify(scheduled_at=from_now(minutes=-4))
    assert answer.json()["status"] == "queued"


def test_past_time_is_refused(app: App) -> None:
    assert pointers(app.notify(scheduled_at=from_now(minutes=-6))) == {
        "/scheduled_at": "in_the_past"
    }


def test_time_over_a_year_ahead_is_refused(app: App) -> None:
    assert pointers(app.notify(scheduled_at=from_now(days=366))) == {
        "/scheduled_at": "too_far_ahead"
    }
    assert app.notify(scheduled_at=from_now(days=364)).status_code == 202


def test_scheduled_notification_is_due_at_its_time(app: App, stored: Any) -> None:
    answer = app.notify(scheduled_at=from_now(hours=2))
    assert answer.json()["status"] == "created"
    assert stored(answer)["due_at"] == moment(answer.json()["scheduled_at"])


def test_scheduled_in_app_notification_is_pending(app: App) -> None:
    answer = app.notify(
        channels=["in_app"], user_id="ada", recipient=..., scheduled_at=from_now(hours=2)
    )
    assert answer.json()["delivery"][0]["status"] == "pending"


@pytest.mark.parametrize(
    ("fields", "pointer", "code"),
    [
        ({"ttl": 0}, "/ttl", "invalid_ttl"),
        ({"ttl": -1}, "/ttl", "invalid_ttl"),
        ({"ttl": 30 * 86_400 + 1}, "/ttl", "invalid_ttl"),
        ({"expires_at": "2020-01-01T00:00:00Z"}, "/expires_at", "expires_before_sending"),
        ({"ttl": 60, "expires_at": "2030-01-01T00:00:00Z"}, "/ttl", "conflict"),
    ],
)
def test_invalid_expiry_is_refused(
    app: App, fields: dict[str, Any], pointer: str, code: str
) -> None:
    assert pointers(app.notify(**fields)) == {pointer: code}


def test_expiry_at_the_send_time_is_refused(app: App) -> None:
    at = from_now(hours=2)
    answer = app.notify(scheduled_at=at, expires_at=at)
    assert pointers(answer) == {"/expires_at": "expires_before_sending"}


def test_ttl_counts_from_the_send_time(app: App) -> None:
    body = app.notify(scheduled_at=from_now(hours=2), ttl=60).json()
    assert moment(body["expires_at"]) - moment(body["scheduled_at"]) == timedelta(seconds=60)


def test_type_sets_the_default_ttl(app: App) -> None:
    body = app.notify(type="mfa_code", data={"code": "1"}).json()
    assert moment(body["expires_at"]) - moment(body["created_at"]) == timedelta(seconds=300)


class TestLocalTime:
    """A time on the recipient's wall clock."""

    def ask(self, app: App, at: str, zone: str | None = "Europe/London", **fields: Any) -> Any:
        local = {"at": at, **({"timezone": zone} if zone else {})}
        return app.notify(scheduled_local=local, **fields)

    def test_local_time_is_resolved_to_utc(self, app: App) -> None:
        day = (utc_now() + timedelta(days=2)).strftime("%Y-%m-%d")
        body = self.ask(app, f"{day}T09:00", "Asia/Kolkata").json()
        assert moment(body["scheduled_at"]) == datetime.fromisoformat(f"{day}T03:30:00+00:00")
        assert body["adjusted"] is False

    def test_skipped_local_time_is_the_next_instant(self, app: App) -> None:
        day = next_clock_change("Europe/London", forward=True)
        body = self.ask(app, f"{day}T01:30").json()
        assert body["scheduled_at"] == f"{day}T01:00:00Z"
        assert body["adjusted"] is True

    def test_repeated_local_time_is_the_first(self, app: App) -> None:
        day = next_clock_change("Europe/London", forward=False)
        body = self.ask(app, f"{day}T01:30").json()
        assert body["scheduled_at"] == f"{day}T00:30:00Z"
        assert body["adjusted"] is False

    def test_timezone_defaults_to_the_recipients(self, app: App) -> None:
        day = (utc_now() + timedelta(days=2)).strftime("%Y-%m-%d")
        recipient = {"email": "ada@example.com", "timezone": "Asia/Kolkata"}
        body = self.ask(app, f"{day}T09:00", None, recipient=recipient).json()
        assert moment(body["scheduled_at"]) == datetime.fromisoformat(f"{day}T03:30:00+00:00")

    @pytest.mark.parametrize(
        ("at", "zone", "pointer", "code"),
        [
            ("2099-03-28T01:30Z", "Europe/London", "/scheduled_local/at", "invalid_datetime"),
            ("2099-03-28T01:30", "Nowhere/Land", "/scheduled_local/timezone", "unknown_timezone"),
            ("2099-03-28T01:30", None, "/scheduled_local/timezone", "required"),
        ],
    )
    def test_invalid_local_time_is_refused(
        self, app: App, at: str, zone: str | None, pointer: str, code: str
    ) -> None:
        assert pointers(self.ask(app, at, zone)) == {pointer: code}

    def test_local_time_excludes_scheduled_at(self, app: App) -> None:
        answer = self.ask(app, "2099-03-28T03:30", scheduled_at=from_now(hours=1))
        assert pointers(answer) == {"/scheduled_local": "conflict"}
