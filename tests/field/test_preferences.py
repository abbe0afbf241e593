"""Preferences are changed one at a time: a choice deletes no other one.

Users of other services lost settings that a request didn't name:
https://github.com/novuhq/novu/pull/7428.
"""

from collections.abc import Callable
from typing import Any

import pytest

from domain.states import Channel
from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers
from tests.support.clients.inbox import InboxUser

HOURS = {"enabled": True, "start": "22:00", "end": "07:00", "timezone": "Europe/Lisbon"}
Put = Callable[[dict[str, Any]], Any]


@pytest.fixture(params=["by the app", "by the recipient"])
def put(request: pytest.FixtureRequest, app: App) -> Put:
    """Return the writer of preferences: both of them."""
    app.put("/recipients/ada", {"email": "ada@example.com", "quiet_hours": HOURS})
    if request.param == "by the app":
        return lambda body: app.put("/recipients/ada/preferences", body)
    return lambda body: InboxUser(app=app).put("/preferences", body)


def own(answer: Any) -> dict[str, Any]:
    """Return the fields that are set, by preference."""
    assert answer.status_code == 200, answer.content
    return {
        name: {field: value for field, value in preference.items() if value is not None}
        for name, preference in answer.json()["preferences"].items()
    }


def test_preference_keeps_the_quiet_hours(app: App, put: Put) -> None:
    answer = put({"preferences": {"marketing": {"muted": True}}})
    assert answer.json()["quiet_hours"] == HOURS
    assert app.get("/recipients/ada").json()["quiet_hours"] == HOURS


def test_quiet_hours_keep_the_preferences(put: Put) -> None:
    put({"preferences": {"marketing": {"muted": True}}})
    assert own(put({"quiet_hours": None})) == {"marketing": {"muted": True}}
    answer = put({"quiet_hours": {**HOURS, "start": "21:00"}})
    assert (own(answer), answer.json()["quiet_hours"]["start"]) == (
        {"marketing": {"muted": True}},
        "21:00",
    )


def test_other_preferences_and_fields_stay(put: Put) -> None:
    put({"preferences": {"contest_reminder": {"notify_before": 7200}}})
    put({"preferences": {"marketing": {"muted": True, "digest": "off"}}})
    answer = put({"preferences": {"contest_reminder": {"muted": True}}})
    assert own(answer) == {
        "contest_reminder": {"notify_before": 7200, "muted": True},
        "marketing": {"muted": True, "digest": "off"},
    }
    assert own(put({})) == own(answer)
    assert own(put({"preferences": {}})) == own(answer)


def test_null_clears_what_it_names(put: Put) -> None:
    put({"preferences": {"marketing": {"muted": True, "digest": "off"}, "alert": {"muted": True}}})
    answer = put({"preferences": {"marketing": {"muted": None}, "alert": None}})
    assert own(answer) == {"marketing": {"digest": "off"}}
    assert own(put({"preferences": {"marketing": {"digest": None}}})) == {}
    assert answer.json()["quiet_hours"] == HOURS


def test_channel_that_is_muted_is_preferred_no_more(put: Put) -> None:
    put({"preferences": {"alert": {"channels": ["push", "email"]}}})
    answer = put({"preferences": {"alert": {"muted_channels": ["email"]}}})
    assert own(answer) == {"alert": {"channels": ["push"], "muted_channels": ["email"]}}
    answer = put({"preferences": {"alert": {"muted_channels": ["email", "push"]}}})
    assert own(answer) == {"alert": {"muted_channels": ["email", "push"]}}


@pytest.mark.parametrize("names", ["all", ["all"]])
def test_all_channels_can_be_preferred(put: Put, names: Any) -> None:
    answer = put({"preferences": {"video_release_schedule": {"channels": names}}})
    assert own(answer) == {"video_release_schedule": {"channels": list(Channel)}}


@pytest.mark.parametrize(
    ("preference", "pointer", "detail"),
    [
        ({"channels": ["all", "email"]}, "/channels/0", ", or all alone."),
        ({"channels": ["ALL"]}, "/channels/0", ", or all alone."),
        ({"muted_channels": ["all"]}, "/muted_channels/0", "whatsapp, in_app."),
        ({"muted_channels": "all"}, "/muted_channels", "array"),
        ({"channels": "email"}, "/channels", ""),
        ({"channels": ""}, "/channels", ""),
    ],
)
def test_other_value_is_refused_and_changes_nothing(
    put: Put, preference: Any, pointer: str, detail: str
) -> None:
    answer = put({"preferences": {"alert": preference, "marketing": {"muted": True}}})
    assert answer.status_code == 422
    (error,) = answer.json()["errors"]
    assert error["pointer"] == f"/preferences/alert{pointer}"
    assert detail in error["detail"]
    assert own(put({})) == {}


def test_value_of_an_earlier_release_is_no_obstacle(put: Put) -> None:
    for stored in (7, {"marketing": 7, "alert": {"channels": ["email"]}}):
        collection("recipients").update_one({"_id": "ada"}, {"$set": {"preferences": stored}})
        answer = put({"preferences": {"marketing": {"muted": True}}})
        assert own(answer)["marketing"] == {"muted": True}


def test_preference_without_quiet_hours_wakes_nobody(app: App, put: Put) -> None:
    always = {"enabled": True, "start": "00:00", "end": "23:59", "timezone": "UTC"}
    put({"quiet_hours": always})
    put({"preferences": {"marketing": {"muted": True}}})
    recipient = app.get("/recipients/ada").json()
    assert recipient["quiet_hours"] == always


def test_unknown_name_is_refused_also_for_null(put: Put) -> None:
    answer = put({"preferences": {"marketnig": None}})
    assert pointers(answer) == {"/preferences/marketnig": "unknown_type"}
