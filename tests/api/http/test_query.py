"""Parameters of every list route in the OpenAPI document."""

from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest

from tests.support.clients.api import App, new_app, pointers, request
from tests.support.clients.inbox import token
from tests.support.openapi import api_operations
from tests.support.tables import each_case

MALFORMED = [
    ("user[$ne]=x", "unknown_parameter"),
    ("user_id[$gt]=", "unknown_parameter"),
    ("$where=1", "unknown_parameter"),
    ("order=created_at", "unknown_parameter"),
    ("sort=-password", "unknown_parameter"),
    ("page_size=1000000", "unknown_parameter"),
    ("client_id=1", "unknown_parameter"),
    ("User_id=x", "unknown_parameter"),
    ("=x", "unknown_parameter"),
    ("limit=5&limit=5", "repeated_parameter"),
    ("cursor=forged", "invalid_cursor"),
    ("cursor=", "invalid_cursor"),
    (f"cursor={quote('WyJhZnRlciIsMV0:1aaaaa:' + 'x' * 43)}", "invalid_cursor"),
]
SIZES = [
    "0",
    "-1",
    "101",
    "1000000",
    "ten",
    "",
    "1.5",
    "1e2",
    "%D9%A3",
    "%00",
    "9" * 5_000,
    "%2B5",
    "0x10",
    " 5",
    "0000019999",
    "000100",
]


@pytest.fixture
def lists(app: App) -> dict[str, str]:
    """Return the credential of every list, by its path with the required parameters."""
    app.put("/recipients/ada", {"email": "ada@example.com"})
    app.put("/topics/news/members/ada", {})
    tester = new_app("tester", is_test=True)
    found = {}
    for path in _addresses():
        own = tester.key if path.startswith("/test/") else app.key
        found[path] = token(app) if path.startswith("/inbox") else own
    assert len(found) >= 9
    return found


def _addresses() -> Iterator[str]:
    names = {"user_id": "ada", "topic": "news", "slug": "payment_confirmed"}
    for operation in api_operations().values():
        parameters = operation["parameters"]
        if "limit" in [parameter["name"] for parameter in parameters]:
            needed = [
                parameter["name"]
                for parameter in parameters
                if parameter["in"] == "query" and "required" in parameter
            ]
            query = "&".join(f"{name}=ada" for name in needed)
            yield f"{operation['path'].removeprefix('/api/v1').format(**names)}?{query}"


def outcome(app: App, path: str, query: str, *, key: str) -> tuple[int, str | None]:
    answer = replace(app, key=key).get(f"{path}&{query}")
    return answer.status_code, answer.json().get("code")


def test_limit_is_accepted_and_an_unknown_parameter_and_forged_cursor_are_400(
    app: App, lists: dict[str, str]
) -> None:
    for path, key in lists.items():
        assert outcome(app, path, "limit=1", key=key) == (200, None), path
        for query, code in MALFORMED:
            assert outcome(app, path, query, key=key) == (400, code), (path, query)


@each_case(
    "path, query, code",
    [
        ("/notifications", "status=failed&status=expired", None),
        ("/notifications", "user_id=ada&user_id=ada", "repeated_parameter"),
        # The path names the recipient.
        ("/recipients/ada/notifications", "user_id=eve", "unknown_parameter"),
        ("/notifications/stats", "limit=1", "unknown_parameter"),
        ("/limits", "limit=1", "unknown_parameter"),
    ],
)
def test_parameters_are_those_that_the_route_describes(
    app: App, path: str, query: str, code: str | None
) -> None:
    assert app.get(f"{path}?{query}").json().get("code") == code


def test_parameter_is_checked_for_head_as_for_get(app: App) -> None:
    key = {"Authorization": f"Bearer {app.key}"}
    assert app.http.head("/api/v1/limits?limit=1", headers=key).status_code == 400


def test_problem_names_the_parameter(app: App, lists: dict[str, str]) -> None:
    for path, key in lists.items():
        own = replace(app, key=key)
        answer = own.get(f"{path}&limits=5&curser=x")
        assert pointers(answer) == dict.fromkeys(("/limits", "/curser"), "unknown_parameter")
        assert answer.json()["detail"] == "Unknown parameter `limits`. Did you mean `limit`?"
        assert pointers(own.get(f"{path}&cursor=x")) == {"/cursor": "invalid_cursor"}
        assert pointers(own.get(f"{path}&limit=1&limit=2")) == {"/limit": "repeated_parameter"}
        assert pointers(own.get(f"{path}&limit=x")) == {"/limit": "out_of_range"}


def test_cursor_of_another_list_is_400(app: App, lists: dict[str, str]) -> None:
    for _ in range(2):
        app.notify(user_id="ada")
    cursor = app.get("/notifications", limit=1).json()["next"]
    for path, key in lists.items():
        # The notifications of a recipient are a filter of the same list.
        if "notifications" not in path:
            assert outcome(app, path, f"cursor={cursor}", key=key) == (400, "invalid_cursor"), path


def test_page_size_out_of_1_to_100_is_422(app: App, lists: dict[str, str]) -> None:
    for path, key in lists.items():
        for size in SIZES:
            assert outcome(app, path, f"limit={size}", key=key) == (422, "validation_failed"), (
                path,
                size,
            )


def test_route_without_parameters_refuses_any(app: App) -> None:
    """https://github.com/kestra-io/kestra/issues/18246"""
    app.put("/recipients/ada", {"email": "ada@example.com"})
    device = {"user_id": "ada", "device_token": "a-token-of-ada", "platform": "ios"}
    device_id = app.put("/devices", device).json()["id"]
    notification_id = app.notify().json()["id"]
    for path in (
        "/recipients/ada",
        "/recipients/ada/preferences",
        "/recipients/ada/limits",
        f"/devices/{device_id}",
        f"/notifications/{notification_id}",
        f"/notifications/{notification_id}/attempts",
        "/types/payment_confirmed",
        "/limits",
        "/callbacks",
    ):
        answer = app.get(path, colour="red")
        assert (answer.status_code, answer.json()["code"]) == (400, "unknown_parameter"), path
    assert app.post("/notifications?dry_run=true", request()).status_code == 400
    assert app.delete("/recipients/ada", confirm="no").status_code == 400
    assert app.get("/recipients/ada").status_code == 200
