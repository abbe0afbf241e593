"""Recipient preferences: storing, validation, and effect on channels."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from domain.time import utc_now
from notifyproject.db.collections import collection
from tests.support.clients.api import Answer, App, pointers
from tests.support.clients.inbox import InboxUser
from tests.support.tables import each_case

PATH = "/recipients/ada/preferences"
HOURS = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/Lisbon"}
NOTHING = {
    "muted": None,
    "channels": None,
    "muted_channels": None,
    "notify_before": None,
    "digest": None,
}


@pytest.fixture
def ada(app: App) -> App:
    app.put("/recipients/ada", {"email": "ada@example.com", "phone": "+351912345678"})
    return app


def set_preferences(app: App, **preferences: Any) -> Answer:
    return app.put(PATH, {"preferences": preferences})


def sent(app: App, **fields: Any) -> dict[str, tuple[str, str | None]]:
    answer = app.notify(user_id="ada", recipient=..., **fields)
    assert answer.status_code == 202
    return {d["channel"]: (d["status"], d["failure_code"]) for d in answer.json()["delivery"]}


def test_preferences_are_stored_and_shown(ada: App) -> None:
    given = {
        "marketing": {"muted": True},
        "contest_reminder": {"channels": ["email", "in-app"], "notify_before": 7200},
        "alert": {"muted_channels": ["whatsapp"]},
        "new_sale": {},
    }
    answer = ada.put(PATH, {"preferences": given, "quiet_hours": HOURS})
    assert answer.status_code == 200
    shown = answer.json()
    assert shown == ada.get(PATH).json()
    assert shown["quiet_hours"] == HOURS
    assert shown["preferences"] == {
        "marketing": {**NOTHING, "muted": True},
        "contest_reminder": {**NOTHING, "channels": ["email", "in_app"], "notify_before": 7200},
        "alert": {**NOTHING, "muted_channels": ["whatsapp"]},
    }


def test_recipient_has_an_own_schedule_of_digests(ada: App) -> None:
    morning = {"every": "day", "at": "08:00", "days": ["mon"], "zone": "recipient"}
    answer = set_preferences(ada, marketing={"digest": "off"}, alert={"digest": morning})
    assert answer.json()["preferences"] == {
        "marketing": {**NOTHING, "digest": "off"},
        "alert": {**NOTHING, "digest": morning},
    }
    answer = set_preferences(ada, alert={"digest": {"every": "week"}})
    weekly = {"every": "week", "at": "09:00", "days": [], "zone": "recipient"}
    assert ada.get(PATH).json()["preferences"]["alert"]["digest"] == weekly


@each_case(
    "digest, expected",
    [
        ("on", {"": "wrong_type"}),
        (5, {"": "wrong_type"}),
        ({}, {"/every": "required"}),
        ({"minutes": 30}, {"/minutes": "unknown_field", "/every": "required"}),
        ({"every": "year"}, {"/every": "unknown_value"}),
        ({"every": "day", "at": "8"}, {"/at": "invalid_time"}),
        ({"every": "day", "days": ["xyz"]}, {"/days/0": "unknown_value"}),
        ({"every": "day", "zone": "Mars/Olympus"}, {"/zone": "unknown_timezone"}),
    ],
)
def test_invalid_schedule_of_digests_is_refused(
    ada: App, digest: Any, expected: dict[str, str]
) -> None:
    answer = set_preferences(ada, alert={"digest": digest})
    assert answer.status_code == 422
    found = {
        name.removeprefix("/preferences/alert/digest"): c for name, c in pointers(answer).items()
    }
    assert found == expected


def test_null_removes_all_preferences(ada: App) -> None:
    ada.put(PATH, {"preferences": {"marketing": {"muted": True}}, "quiet_hours": HOURS})
    assert ada.put(PATH, {"preferences": None}).json() == {"preferences": {}, "quiet_hours": HOURS}


LOCKED: list[tuple[str, Any]] = [
    ("muted", True),
    ("channels", ["email"]),
    ("channels", ["in_app"]),
    ("muted_channels", ["email"]),
    ("notify_before", 3600),
    ("digest", "off"),
    ("digest", {"every": "week"}),
]


@each_case("field, value", LOCKED)
def test_locked_types_have_no_preference(ada: App, field: str, value: Any) -> None:
    link = {"name": "Link", "category": "alert", "channels": ["email"], "priority": "high"}
    ada.put("/types/sign_in_link", {**link, "sensitive_variables": ["token"]})
    answer = set_preferences(ada, mfa_code={field: value}, sign_in_link={field: value})
    assert (answer.status_code, pointers(answer)) == (
        422,
        {
            f"/preferences/mfa_code/{field}": "critical",
            f"/preferences/sign_in_link/{field}": "sensitive_type",
        },
    )
    ada.put("/types/sign_in_link", {**link, "sensitive_variables": ["token"], "is_active": False})
    assert set_preferences(ada, sign_in_link={field: value}).status_code == 422


def test_preference_without_effect_is_accepted_for_a_locked_type(ada: App) -> None:
    nothing = {"muted": False, "muted_channels": []}
    answer = set_preferences(ada, mfa_code=nothing, marketing={"muted": True})
    assert (answer.status_code, set(answer.json()["preferences"])) == (200, {"marketing"})


def test_preferences_from_before_a_type_was_locked_can_be_put_back(ada: App) -> None:
    stored = {"mfa_code": {"channels": ["push"]}, "marketing": {"muted": True}}
    collection("recipients").update_one({"_id": "ada"}, {"$set": {"preferences": stored}})
    shown = ada.get(PATH).json()
    assert set(shown["preferences"]) == {"marketing"}
    assert ada.put(PATH, {"preferences": {"marketing": {"muted": True}}}).status_code == 200


# Users of other services lost settings that a request didn't name:
# https://github.com/novuhq/novu/pull/7428.


def own(answer: Any) -> dict[str, Any]:
    """Return the fields that are set, by preference."""
    assert answer.status_code == 200, answer.content
    return {
        name: {field: value for field, value in preference.items() if value is not None}
        for name, preference in answer.json()["preferences"].items()
    }


@pytest.mark.parametrize("writer", ["app", "recipient"])
def test_choice_deletes_no_other_one(ada: App, writer: str) -> None:
    inbox = InboxUser(app=ada)
    put = partial(ada.put, PATH) if writer == "app" else partial(inbox.put, "/preferences")
    ada.put("/recipients/ada", {"email": "ada@example.com", "quiet_hours": HOURS})
    put({"preferences": {"contest_reminder": {"notify_before": 7200}}})
    put({"preferences": {"marketing": {"muted": True, "digest": "off"}}})
    answer = put({"preferences": {"contest_reminder": {"muted": True}}})
    assert answer.json()["quiet_hours"] == ada.get("/recipients/ada").json()["quiet_hours"] == HOURS
    assert own(answer) == {
        "contest_reminder": {"notify_before": 7200, "muted": True},
        "marketing": {"muted": True, "digest": "off"},
    }
    assert own(put({})) == own(put({"preferences": {}})) == own(answer)
    assert own(put({"quiet_hours": None})) == own(answer)
    later = put({"quiet_hours": {**HOURS, "start": "21:00"}})
    assert (own(later), later.json()["quiet_hours"]["start"]) == (own(answer), "21:00")
    fewer = put({"preferences": {"marketing": {"muted": None}, "contest_reminder": None}})
    assert own(fewer) == {"marketing": {"digest": "off"}}
    assert own(put({"preferences": {"marketing": {"digest": None}}})) == {}
    assert pointers(put({"preferences": {"marketnig": None}})) == {
        "/preferences/marketnig": "unknown_type"
    }


def test_channel_that_is_muted_is_preferred_no_more(ada: App) -> None:
    set_preferences(ada, alert={"channels": ["push", "email"]})
    answer = set_preferences(ada, alert={"muted_channels": ["email"]})
    assert own(answer) == {"alert": {"channels": ["push"], "muted_channels": ["email"]}}
    answer = set_preferences(ada, alert={"muted_channels": ["email", "push"]})
    assert own(answer) == {"alert": {"muted_channels": ["email", "push"]}}


@each_case("names", ["all", ["all"]])
def test_all_channels_can_be_preferred(ada: App, names: Any) -> None:
    answer = set_preferences(ada, video_release_schedule={"channels": names})
    assert own(answer) == {
        "video_release_schedule": {"channels": ["email", "push", "whatsapp", "in_app"]}
    }


@each_case(
    "preference, pointer, detail",
    [
        ({"channels": ["all", "email"]}, "/channels/0", ", or all alone."),
        ({"channels": ["ALL"]}, "/channels/0", ", or all alone."),
        ({"muted_channels": ["all"]}, "/muted_channels/0", "sms, room, in_app."),
        ({"channels": ["email", "room"]}, "/channels/1", "no way to reach a person"),
        ({"muted_channels": "all"}, "/muted_channels", "array"),
        ({"channels": "email"}, "/channels", ""),
        ({"channels": ""}, "/channels", ""),
    ],
)
def test_other_channel_is_refused_and_changes_nothing(
    ada: App, preference: Any, pointer: str, detail: str
) -> None:
    answer = set_preferences(ada, alert=preference, marketing={"muted": True})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == f"/preferences/alert{pointer}"
    assert detail in error["detail"]
    assert own(ada.put(PATH, {})) == {}


def test_value_of_an_earlier_release_is_no_obstacle(ada: App) -> None:
    for stored in (7, {"marketing": 7, "alert": {"channels": ["email"]}}):
        collection("recipients").update_one({"_id": "ada"}, {"$set": {"preferences": stored}})
        assert own(set_preferences(ada, marketing={"muted": True}))["marketing"] == {"muted": True}


MUTED = "/alert/muted_channels"
BAD_PREFERENCES: list[tuple[Any, str, str]] = [
    ([], "", "wrong_type"),
    ({"alert": True}, "/alert", "wrong_type"),
    ({"alret": None}, "/alret", "unknown_type"),
    ({"alert": {"muted": 1}}, "/alert/muted", "wrong_type"),
    ({"alert": {"mute": True}}, "/alert/mute", "unknown_field"),
    ({"alret": {}}, "/alret", "unknown_type"),
    ({"Alert": {}}, "/Alert", "unknown_type"),
    ({"MfaCode": {"muted": True}}, "/MfaCode", "unknown_type"),
    ({"$where": {}}, "/$where", "unknown_type"),
    ({"a.b/c": {}}, "/a.b~1c", "unknown_type"),
    ({"": {}}, "/", "unknown_type"),
    ({"alert": {"channels": []}}, "/alert/channels", "no_channel"),
    ({"alert": {"channels": ["email", "fax"]}}, "/alert/channels/1", "unknown_channel"),
    ({"alert": {"muted_channels": ["push", "push"]}}, MUTED + "/1", "duplicate_channel"),
    ({"alert": {"channels": ["push"], "muted_channels": ["push"]}}, MUTED, "conflict"),
    (
        {"alert": {"notify_before": 3600}, "marketing": {"notify_before": 59}},
        "/marketing/notify_before",
        "out_of_range",
    ),
    ({"alert": {"notify_before": 2_592_001}}, "/alert/notify_before", "out_of_range"),
    ({"new_sale": {"notify_before": 3600}}, "/new_sale/notify_before", "not_a_reminder"),
    ({f"t{n}": {} for n in range(201)}, "", "out_of_range"),
]
BAD = [
    *(({"preferences": given}, f"/preferences{at}", code) for given, at, code in BAD_PREFERENCES),
    ({"quiet_hours": {**HOURS, "end": "22:00"}}, "/quiet_hours/end", "empty_quiet_hours"),
    ({"quiet_hours": {**HOURS, "timezone": "/etc"}}, "/quiet_hours/timezone", "unknown_timezone"),
]


@each_case("body, pointer, code", BAD)
def test_invalid_preferences_change_nothing(ada: App, body: Any, pointer: str, code: str) -> None:
    set_preferences(ada, marketing={"muted": True})
    before = ada.get(PATH).json()
    answer = ada.put(PATH, body)
    assert (answer.status_code, pointers(answer)) == (422, {pointer: code})
    assert ada.get(PATH).json() == before


def test_all_problems_are_reported_with_suggestions(ada: App) -> None:
    answer = set_preferences(
        ada, mfa_code={"muted": True}, marketnig={"muted": True}, alert={"channels": []}
    )
    assert set(pointers(answer)) == {
        "/preferences/mfa_code/muted",
        "/preferences/marketnig",
        "/preferences/alert/channels",
    }
    (unknown,) = [e for e in answer.json()["errors"] if e["code"] == "unknown_type"]
    assert "Did you mean marketing?" in unknown["detail"]


def test_preference_for_a_disabled_type_is_accepted(ada: App) -> None:
    off = {"name": "Sale", "category": "marketing", "channels": ["email"], "is_active": False}
    ada.put("/types/new_sale", off)
    assert set_preferences(ada, new_sale={"muted": True}).status_code == 200


def test_muted_channel_is_suppressed_alone(ada: App) -> None:
    set_preferences(ada, payment_confirmed={"muted_channels": ["email"]})
    assert sent(ada, channels=["email", "whatsapp"]) == {
        "email": ("suppressed", "opted_out"),
        "whatsapp": ("pending", None),
    }


def test_reminder_is_scheduled_by_the_preference(ada: App) -> None:
    event = {
        "type": "contest_reminder",
        "event_at": "2099-01-01T12:00:00Z",
        "channels": ["email"],
        "data": {"contest_name": "Round 900"},
    }
    far = ada.notify(user_id="ada", recipient=..., **event)
    assert pointers(far) == {"/event_at": "too_far_ahead"}
    soon = (utc_now() + timedelta(days=10)).date().isoformat()
    set_preferences(ada, contest_reminder={"notify_before": 3600})
    shown = ada.notify(user_id="ada", recipient=..., **{**event, "event_at": f"{soon}T12:00:00Z"})
    assert (shown.status_code, shown.json()["scheduled_at"]) == (202, f"{soon}T11:00:00Z")
    assert shown.json()["expires_at"] == f"{soon}T12:00:00Z"
    assert shown.json()["content"]["subject"] == "Round 900 starts in 1 hour"


def test_custom_type_can_be_a_reminder(ada: App) -> None:
    kind = {"name": "Call", "category": "transactional", "channels": ["email"]}
    ada.put("/types/call_planned", kind)
    hour = {"notify_before": 3600}
    assert pointers(set_preferences(ada, call_planned=hour)) == {
        "/preferences/call_planned/notify_before": "not_a_reminder"
    }
    assert pointers(ada.put("/types/call_planned", {**kind, "notify_before_seconds": 59})) == {
        "/notify_before_seconds": "out_of_range"
    }
    shown = ada.put("/types/call_planned", {**kind, "notify_before_seconds": 900})
    assert shown.json()["notify_before_seconds"] == 900
    assert set_preferences(ada, call_planned=hour).status_code == 200
