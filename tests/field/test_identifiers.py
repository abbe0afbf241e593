"""Identifiers that clients choose: the same rule wherever one is accepted, and the paths they name.

A slash in an ID made users of other services undeletable, or named something else:
https://github.com/uc-cdis/arborist/pull/189, https://github.com/leanprover/velcom/pull/317,
https://github.com/pydio/cells/pull/59, https://github.com/solid/specification/issues/381.
"""

from collections.abc import Callable
from urllib.parse import quote

import pytest
from django.test import Client

from domain.identifiers import find_identifier_fault
from domain.time import utc_now
from notifyproject.db.collections import collection
from recipients.registration import RecipientProfile, register
from tests.support.clients.api import Answer, App, pointers, request
from tests.support.factories import notifications as factories
from tests.support.samples import sampled
from tests.support.tables import each_case

REFUSED = {
    "tenant/42": "slash",
    "/": "slash",
    "victim/": "slash",
    "/victim": "slash",
    "..": "dot_segment",
    ".": "dot_segment",
    "a\x00b": "nul_character",
    "a\nb": "control_characters",
    "victim\r": "control_characters",
    "a\u2028b": "control_characters",
    "a\x85b": "control_characters",
    "   ": "blank",
}
VALID = [
    "auth0|5f7c8e",
    "a b",
    " ada ",
    "100%",
    "a?b#c",
    "a%2Fb",
    "%2e%2e",
    "DOMAIN\\user",
    "a;b=c",
    "ünïcode-日本",
    "مستخدم",
    "...",
    ".a",
    "a..b",
    "a&b=c",
    "a+b",
    "ada@example.com",
    "_2F",
    "x" * 128,
    "{}",
    "<b>",
    "'\"",
    "a:b",
    "👩\u200d👧",
    "~",
    "null",
    "@",
    "$ne",
]


@each_case("text, code", [*REFUSED.items(), ("a\ud800", "lone_surrogate")])
def test_rule_refuses(text: str, code: str) -> None:
    fault = find_identifier_fault(text)
    assert fault is not None
    assert fault.code == code


@each_case("text", VALID)
def test_rule_accepts(text: str) -> None:
    assert find_identifier_fault(text) is None


NEWS = {"type": "marketing", "content": {"subject": "s", "body": "b"}}
DEVICE = {"device_token": "a-token-of-adas", "platform": "ios"}
INTAKES: dict[str, Callable[[App, str], Answer]] = {
    "/user_id": lambda app, text: app.notify(user_id=text),
    "/user_id of a preview": lambda app, text: app.post(
        "/notifications/preview", request(user_id=text)
    ),
    "/user_id of an item": lambda app, text: app.post(
        "/notifications/bulk",
        {"notifications": [request(user_id=text)]},
        headers={"Idempotency-Key": text.encode().hex()},
    ),
    "/user_id of a device": lambda app, text: app.put("/devices", {**DEVICE, "user_id": text}),
    "/user_id of a token": lambda app, text: app.post("/inbox/tokens", {"user_id": text}),
    "/audience/user_ids/1": lambda app, text: app.post(
        "/broadcasts", {**NEWS, "audience": {"user_ids": ["ada", text]}}
    ),
    "/audience/user_ids/0": lambda app, text: app.post(
        "/broadcasts/preview", {**NEWS, "audience": {"user_ids": [text]}}
    ),
}


# Each intake has the rule: a text for each kind of fault.
@each_case("text", ["tenant/42", "..", "a\x00b", "   "])
def test_identifier_in_a_body_is_refused_everywhere(app: App, text: str) -> None:
    for place, intake in INTAKES.items():
        answer = intake(app, text)
        body = answer.json()
        if "results" in body:
            body = body["results"][0]["error"]
        # A blank user ID of a token has always been a missing one.
        codes = {REFUSED[text], "required"} if text == "   " else {REFUSED[text]}
        found = {error["pointer"]: error["code"] for error in body["errors"]}
        assert found.get(place.partition(" ")[0]) in codes, (place, body)
    assert collection("devices").count_documents({}) == 0
    assert collection("notifications").count_documents({}) == 0


@each_case("text", ["..", "a\nb", "   "])
def test_identifier_in_a_path_is_refused_with_its_code(app: App, text: str) -> None:
    path = quote(text, safe="")
    for url in (f"/recipients/{path}", f"/topics/news/members/{path}"):
        answer = app.put(url, {})
        assert (answer.status_code, pointers(answer)) == (422, {"": REFUSED[text]})
    for url in (f"/recipients/{path}", f"/recipients/{path}/export", f"/recipients/{path}/limits"):
        assert app.get(url).status_code in (404, 405)
    assert app.delete(f"/recipients/{path}").status_code == 404


@pytest.mark.parametrize("user_id", sampled(VALID, each=6))
def test_other_characters_work_on_every_route(app: App, user_id: str) -> None:
    path = f"/recipients/{quote(user_id, safe='')}"
    assert app.put(path, {"email": "ada@example.com"}).status_code == 201
    sent = app.notify(user_id=user_id, channels=["in_app"])
    assert sent.status_code == 202
    assert app.put("/devices", {**DEVICE, "user_id": user_id}).json()["user_id"] == user_id
    member = app.put(f"/topics/news/members/{quote(user_id, safe='')}", {})
    assert member.json()["user_id"] == user_id
    assert app.get(path).json()["user_id"] == user_id
    assert app.put(f"{path}/preferences", {"preferences": {}}).status_code == 200
    assert app.get(f"{path}/limits").status_code == 200
    (listed,) = app.get(f"{path}/notifications").json()["results"]
    assert listed["id"] == sent.json()["id"]
    (listed,) = app.get("/notifications", user_id=user_id).json()["results"]
    assert listed["id"] == sent.json()["id"]
    (device,) = app.get("/devices", user_id=user_id).json()["results"]
    assert device["user_id"] == user_id
    assert app.get(f"{path}/export").json()["user_id"] == user_id
    erased = app.delete(path).json()
    counts = (erased["user_id"], erased["notifications"], erased["devices"], erased["topics"])
    assert counts == (user_id, 1, 1, 1)
    assert app.get(path).status_code == 404


@each_case(
    "path, detail",
    [
        ("/recipients/victim/", "No path of the API ends with a slash."),
        ("/notifications/", "No path of the API ends with a slash."),
        ("/recipients//victim", "The path has an empty segment, or one that is `.` or `..`."),
        ("/recipients/a/../victim", "The path has an empty segment, or one that is `.` or `..`."),
        ("/nothing/here", "The API has no such path."),
    ],
)
def test_unknown_path_says_what_is_wrong_with_it(app: App, path: str, detail: str) -> None:
    answer = app.get(path)
    assert (answer.status_code, answer.json()["detail"]) == (404, detail)


@each_case(
    "raw, status",
    [
        ("recipients/ada%2Fpreferences", 404),
        ("recipients%2Fada", 404),
        ("recipients/ada/%2e%2e%2Fada", 404),
        ("recipients/ada%252Fpreferences", 404),
        ("suppressions/email%2Fada@example.com", 404),
        ("suppressions/email/a%2Fb@example.com", 200),
        ("suppressions/email/a/b@example.com", 200),
        ("suppressions/email/a%2F%2Fb@example.com", 404),
        ("suppressions/email/a%2F.%2Fb@example.com", 404),
        ("suppressions/email/%2Fb@example.com", 404),
        ("notifications?user_id=a%2Fb", 200),
        ("recipients/ada%FF", 404),
        ("recipients/ada", 200),
    ],
)
def test_escaped_slash_is_no_delimiter(app: App, raw: str, status: int) -> None:
    app.put("/recipients/ada", {"email": "ada@example.com"})
    path = f"/api/v1/{raw}"
    answer = app.http.get(path, headers=app._headers({}), RAW_URI=path)
    assert answer.status_code == status, answer.content


@pytest.mark.parametrize("user_id", ["x/../y", " ada "])
def test_stored_identifier_that_the_api_refuses_can_be_erased_in_the_console(
    app: App, console: Client, user_id: str
) -> None:
    register(RecipientProfile(user_id=user_id, email="old@example.com"), now=utc_now())
    register(RecipientProfile(user_id="y", email="y@example.com"), now=utc_now())
    factories.accepted(client_id=app.id, user_id=user_id)
    listed = console.get("/admin/recipients/recipient/").content.decode()
    urls = [part.partition('"')[0] for part in listed.split('href="')[1:]]
    url = next(
        url.partition("?")[0]
        for url in urls
        if url.startswith("/admin/recipients/recipient/")
        and "/change/" in url
        and _title(console, url) == user_id
    )
    assert not {"..", "."} & set(url.split("/")), "a browser would resolve it"
    erased = console.post(url.replace("/change/", "/erase/"), {"typed": user_id})
    assert erased.status_code == 302
    assert collection("recipients").count_documents({"_id": user_id}) == 0
    assert collection("recipients").count_documents({"_id": "y"}) == 1
    (kept,) = collection("notifications").find({"user_id": user_id})
    assert kept["erased_at"] is not None


def _title(console: Client, url: str) -> str:
    page = console.get(url, follow=True)
    return str(page.context["original"].user_id) if "original" in (page.context or {}) else ""
