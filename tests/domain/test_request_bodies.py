"""Of a request's body, its form is kept, and no value that could name somebody."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from domain.request_bodies import MAX_ITEMS, SHOWN, pointer_without_values, without_values
from tests.support.tables import each_case

SECRET = "Lovelace, 912345678"
TEXTS = st.text(max_size=8).map(lambda text: f"{SECRET}{text}")
NAMES = st.sampled_from([*sorted(SHOWN), "data", "email", "name", SECRET])
VALUES = st.recursive(
    TEXTS | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=20,
)


def test_values_of_the_service_stay_and_others_become_their_kind() -> None:
    body = {
        "type": "mfa_code",
        "user_id": "ada",
        "recipient": {"email": "ada@example.com", "phone": None},
        "channels": ["sms", "email"],
        "plan": {"until": "delivered", "steps": [{"channels": ["sms"]}, {"after": 30}]},
        "data": {"code": "123456", "expires_in": 5, "type": "flu", "is_ill": True},
        "scheduled_at": "2027-03-01T14:07:00Z",
        "ignore_limits": True,
    }
    assert without_values(body) == {
        "type": "mfa_code",
        "user_id": "… (3 characters)",
        "recipient": {"email": "… (15 characters)", "phone": None},
        "channels": ["sms", "email"],
        "plan": {"until": "delivered", "steps": [{"channels": ["sms"]}, {"after": 30}]},
        "data": {
            "code": "… (6 characters)",
            "expires_in": "… (number)",
            "type": "… (3 characters)",
            "is_ill": "… (true or false)",
        },
        "scheduled_at": "2027-03-01T14:07:00Z",
        "ignore_limits": True,
    }


@each_case("value", ["ada@example.com", "+447700900999", "447700900999", "Ada Lovelace", "a" * 65])
def test_field_that_is_shown_hides_what_no_such_field_has(value: str) -> None:
    assert without_values({"type": value}) == {"type": f"… ({len(value)} characters)"}


def test_rest_of_a_long_list_is_counted() -> None:
    kept = without_values({"notifications": [{"type": "alert"}] * (MAX_ITEMS + 2)})
    assert len(kept["notifications"]) == MAX_ITEMS + 1
    assert kept["notifications"][-1] == "… (2 more)"


def test_name_that_is_no_name_is_hidden() -> None:
    assert without_values({"ada@example.com": 1}) == {"…": "… (number)"}


def test_pointer_keeps_names_and_places() -> None:
    assert pointer_without_values("/notifications/12/recipient/email") == (
        "/notifications/12/recipient/email"
    )
    assert pointer_without_values("/attributes/ada@example.com") == "/attributes/…"
    assert pointer_without_values("/data/447700900999") == "/data/…"
    assert pointer_without_values("") == ""


@given(VALUES)
def test_no_text_of_a_person_is_kept(value: Any) -> None:
    assert SECRET not in json.dumps(without_values(value), ensure_ascii=False)
