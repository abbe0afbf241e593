"""What about a callback cannot be so, and what the app is told; nothing is kept of it."""

from typing import Any

import pytest

from notifyproject.db.collections import collection
from tests.support.clients.api import App, pointers

HOOK = {"url": "https://shop.example.com/hooks", "events": ["delivery.failed"]}
INSIDE = [
    *("https://127.0.0.1/", "https://10.0.0.1/", "https://192.168.0.1/", "https://172.16.0.1/"),
    *("https://169.254.169.254/latest", "https://0.0.0.0/", "https://100.64.0.1/"),
    *("https://[::1]/", "https://[fe80::1]/", "https://[fd00::1]/", "https://[::ffff:10.0.0.1]/"),
    *("https://localhost/", "https://metadata.google.internal/", "https://printer.local/"),
    "https://intranet/",
]
NO_HOSTS = [
    *("https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://127.1/"),
    *("https://0177.0.0.1/", "https://metadata.google.internal./", "https://a_b.example.com/"),
    "https://127\u30020\u30020\u30021/",
]
NO_URLS = [
    *("", " ", "shop.example.com", "https://", "javascript:alert(1)", "data:text/html,x"),
    *("https://ada:pw@shop.example.com/", "https://shop.example.com:99999/", "https://[::1"),
    *("https://shop.example.com/\r\nHost: x", "https://shop.example.com/#x", "mailto:a@b.example"),
]
NOT_HTTPS = ["http://shop.example.com/", "ftp://shop.example.com/", "file://shop.example.com/etc"]


@pytest.mark.parametrize(
    ("urls", "code"),
    [
        (INSIDE, "not_public"),
        (NO_HOSTS, "invalid_host"),
        (NO_URLS, "invalid_url"),
        (NOT_HTTPS, "not_https"),
        (["https://shop.example.com:22/"], "port_not_allowed"),
    ],
    ids=["inside", "no host", "no URL", "not https", "port"],
)
def test_a_url_that_is_not_called_is_refused(app: App, urls: list[str], code: str) -> None:
    for url in urls:
        answer = app.put("/callbacks", HOOK | {"url": url})
        assert (answer.status_code, pointers(answer)) == (422, {"/url": code}), url
        assert not url.strip() or url.encode() not in answer.content, "no value is repeated"
    assert collection("callbacks").count_documents({}) == 0


@pytest.mark.parametrize(
    ("change", "pointer", "code"),
    [
        ({"url": ...}, "/url", "required"),
        ({"url": None}, "/url", "wrong_type"),
        ({"url": 5}, "/url", "wrong_type"),
        ({"url": {"$gt": ""}}, "/url", "wrong_type"),
        ({"url": ["https://shop.example.com/"]}, "/url", "wrong_type"),
        ({"url": "https://shop.example.com/\x00"}, "/url", "nul_character"),
        ({"url": "https://shop.example.com/" + "x" * 2_048}, "/url", "out_of_range"),
        ({"events": ...}, "/events", "required"),
        ({"events": None}, "/events", "wrong_type"),
        ({"events": "delivery.failed"}, "/events", "wrong_type"),
        ({"events": {"$in": []}}, "/events", "wrong_type"),
        ({"events": []}, "/events", "out_of_range"),
        ({"events": ["delivery.failed"] * 21}, "/events", "out_of_range"),
        ({"events": [5]}, "/events/0", "wrong_type"),
        ({"events": ["delivery.failed", "test"]}, "/events/1", "unknown_event"),
        ({"events": ["DELIVERY.FAILED"]}, "/events/0", "unknown_event"),
        ({"secret": "whsec_eA=="}, "/secret", "unknown_field"),
        ({"state": "active"}, "/state", "unknown_field"),
        ({"client_id": "a" * 24}, "/client_id", "unknown_field"),
        ({"$set": 1}, "/$set", "unknown_field"),
    ],
)
def test_what_is_no_callback_is_refused_with_its_place(
    app: App, change: dict[str, Any], pointer: str, code: str
) -> None:
    body = {name: value for name, value in {**HOOK, **change}.items() if value is not ...}
    answer = app.put("/callbacks", body)
    assert (answer.status_code, pointers(answer).get(pointer)) == (422, code)
    assert app.get("/callbacks").status_code == 404


def test_all_problems_are_told_at_once(app: App) -> None:
    answer = app.put("/callbacks", {"url": "http://x.example.com/", "events": ["a", "b"]})
    assert pointers(answer).keys() == {"/url", "/events/0", "/events/1"}


def test_what_is_refused_leaves_the_callback_as_it_was(app: App) -> None:
    app.put("/callbacks", HOOK)
    before = app.get("/callbacks").json()
    assert app.put("/callbacks", HOOK | {"url": "https://10.0.0.1/"}).status_code == 422
    assert app.get("/callbacks").json() == before


@pytest.mark.parametrize("one", ["x", "a" * 24, "msg_" + "a" * 24, "$ne", "%00", "a" * 121])
def test_a_delivery_that_is_not_there_is_not_found(app: App, one: str) -> None:
    app.put("/callbacks", HOOK)
    assert app.post(f"/callbacks/deliveries/{one}/replay").status_code == 404


@pytest.mark.parametrize("method", ["POST", "PATCH"])
def test_a_method_that_is_none_is_refused(app: App, method: str) -> None:
    assert app.send("/callbacks", b"{}", method=method).status_code == 405
