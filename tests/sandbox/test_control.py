"""The sandbox's control API: past requests, scripted outcomes, and reset."""

import threading
import time
from typing import Any

import pytest

from tests.support.clients.sandbox import Box, Receiver, mail
from tests.support.providers.sandbox_fcm import FCMClient
from tests.support.providers.sandbox_whatsapp import WhatsAppClient
from tests.support.tables import each_case
from tests.support.waiting import until


def detail(answer: Any) -> str:
    assert answer.headers["Content-Type"].startswith("application/problem+json")
    problem = answer.json()
    assert problem["status"] == answer.status
    return problem["detail"]


def test_requests_list_is_newest_first_with_bodies(box: Box) -> None:
    bodies = [mail(reference=f"ref-{number}") for number in range(3)]
    for body in bodies:
        box.send(body)
    listed = box.control("GET", "/requests")
    assert [result["body"] for result in listed["results"]] == bodies[::-1]
    assert (listed["next"], listed["previous"]) == (None, None)


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("", [4, 3, 2, 1]),
        ("?limit=2", [4, 3]),
        ("?recipient=ada@example.com", [4, 1]),
        ("?recipient=ADA@example.com", [4, 1]),
        ("?recipient=nobody@example.com", []),
        ("?reference=b", [2]),
        ("?accepted=true", [4, 2, 1]),
        ("?accepted=false", [3]),
        ("?recipient=ada@example.com&reference=a&accepted=true&limit=1", [4]),
    ],
)
def test_requests_list_is_filtered(box: Box, query: str, ids: list[int]) -> None:
    box.send(mail("Ada@example.com", reference="a"))
    box.send(mail("bob@example.com", reference="b"))
    box.send(mail("invalid@example.com", reference="c"))
    box.send(mail("ada@example.com", reference="a"))
    assert [request["id"] for request in box.requests(query)] == ids


@pytest.mark.parametrize(
    ("query", "ids"),
    [
        ("?provider=sendgrid", [1]),
        ("?provider=google-oauth", [2]),
        ("?channel=push", [3]),
        ("?channel=whatsapp", [4]),
        ("?recipient=447700900999", [4]),
        ("?recipient=%2B447700900999&channel=whatsapp", [4]),
        ("?channel=email&accepted=false", []),
    ],
)
def test_requests_list_is_filtered_by_provider_and_channel(
    box: Box, query: str, ids: list[int]
) -> None:
    box.send(mail())
    FCMClient(box=box).send()
    WhatsAppClient(box=box).send()
    assert [request["id"] for request in box.requests(query)] == ids


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/requests?provider=sms", "provider must be one of sendgrid, fcm, whatsapp"),
        ("/messages?channel=post", "channel must be one of email, push, whatsapp"),
        ("/requests?limit=0", "limit must be between 1 and 1000"),
        ("/requests?limit=1001", "limit must be between 1 and 1000"),
        ("/requests?limit=many", "limit must be between 1 and 1000"),
        ("/requests?limit=" + "9" * 5000, "limit must be between 1 and 1000"),
        ("/requests?accepted=maybe", "accepted must be true or false"),
        ("/requests?page=2", "Unknown: page. Known: recipient"),
        ("/messages?accepted=true", "Unknown: accepted"),
    ],
)
def test_invalid_query_returns_400_with_the_reason(box: Box, path: str, words: str) -> None:
    answer = box.refused("GET", path)
    assert (answer.status, words in detail(answer)) == (400, True)


def test_messages_list_has_only_accepted_mails_with_their_events(
    box: Box, receiver: Receiver
) -> None:
    box.send(mail())
    box.send(mail("unavailable@example.com"))
    receiver.wait_for("ref-1", "processed", "delivered")
    until(lambda: box.control("GET", "/counters")["webhooks"]["waiting"] == 0)
    [message] = box.control("GET", "/messages")["results"]
    assert (message["from"], message["to"]) == ("The Shop <shop@example.com>", ["ada@example.com"])
    assert message["subject"] == "Your order has shipped"
    assert (message["text"], message["html"]) == ("Hello Ada", "<p>Hello Ada</p>")
    assert (message["reference"], message["outcome"]) == ("ref-1", "delivered")
    assert [(event["kind"], event["state"]) for event in message["events"]] == [
        ("processed", "sent"),
        ("delivered", "sent"),
    ]


def test_counters_count_requests_outcomes_and_connections(box: Box, receiver: Receiver) -> None:
    for recipient in ("ada", "ada", "server-error", "bounce"):
        box.send(mail(f"{recipient}@example.com"))
    box.send(b"{")
    until(lambda: box.control("GET", "/counters")["webhooks"]["sent"] == 6)
    counters = box.control("GET", "/counters")
    assert (counters["requests"], counters["accepted"]) == (5, 3)
    assert counters["outcomes"] == {"delivered": 2, "server-error": 1, "bounce": 1, "not-json": 1}
    assert counters["connections"] == 1


def test_script_of_a_recipient_precedes_one_for_everybody_and_both_the_magic_recipient(
    box: Box,
) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "unavailable"})
    box.control("PUT", "/behaviours/Ada@example.com", {"outcome": "error"})
    statuses = [box.send(mail(f"{name}@example.com")).status for name in ("ada", "invalid", "bob")]
    assert statuses == [500, 503, 503]
    listed = box.control("GET", "/behaviours")["results"]
    assert listed == [
        {"match": "*", "outcome": "unavailable", "times": None},
        {"match": "ada@example.com", "outcome": "server-error", "times": None},
    ]
    box.control("DELETE", "/behaviours/ada@example.com")
    assert box.send(mail("ada@example.com")).status == 503
    box.control("DELETE", "/behaviours")
    assert box.send(mail("ada@example.com")).status == 202


def test_script_of_a_provider_precedes_one_for_everybody(box: Box) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "unavailable"})
    box.control("PUT", "/behaviours/sendgrid:*", {"outcome": "error"})
    box.control("PUT", "/behaviours/ada@example.com", {"outcome": "invalid"})
    statuses = [box.send(mail(f"{name}@example.com")).status for name in ("ada", "bob")]
    assert (statuses, FCMClient(box=box).send().status) == ([400, 500], 503)


def test_script_is_not_used_up_by_a_provider_without_its_outcome(box: Box) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "unregistered", "times": 1})
    assert box.send(mail()).status == 202
    assert [FCMClient(box=box).send().status for _ in range(2)] == [404, 200]


def test_connections_are_counted_in_total_and_by_provider(box: Box) -> None:
    box.send(mail())
    WhatsAppClient(box=box).send()
    counters = box.control("GET", "/counters")
    assert (counters["connections"], counters["requests"]) == (1, 2)
    each = {"requests": 1, "connections": 1, "accepted": 1}
    assert counters["providers"] == {"sendgrid": each, "whatsapp": each}


def test_script_ends_after_its_number_of_messages(box: Box) -> None:
    box.control("PUT", "/behaviours/ada@example.com", {"outcome": "server-error", "times": 2})
    assert box.send(mail()).status == 500
    assert box.control("GET", "/behaviours/ada@example.com")["times"] == 1
    assert [box.send(mail()).status for _ in range(2)] == [500, 202]
    assert box.refused("GET", "/behaviours/ada@example.com").status == 404


@each_case(
    "call, body, status, words",
    [
        ("PUT /behaviours/*", {"outcome": "explode"}, 400, "There are: delivered, bounce"),
        ("PUT /behaviours/*", {"outcome": "error", "times": 0}, 400, "times must be 1"),
        ("PUT /behaviours/*", {"outcome": "error", "times": "x"}, 400, "times"),
        ("PUT /behaviours/*", {"outcome": "error", "time": 1}, 400, "unknown field `time`"),
        ("PUT /behaviours/*", {}, 400, "missing required field `outcome`"),
        ("PUT /behaviours/*", None, 400, "The body is not what it should be"),
        ("PUT /behaviours/%20", {"outcome": "error"}, 400, "must be an address"),
        ("GET /behaviours/ada@example.com", None, 404, "Nothing is scripted"),
        ("DELETE /behaviours/ada@example.com", None, 404, "Nothing is scripted"),
        ("POST /events", {"reference": "x", "kind": "open"}, 404, "No accepted message"),
        ("POST /events", {"reference": "ref-1", "kind": "read"}, 400, "There are: blocked"),
        ("POST /events", {"reference": "ref-1", "kind": "open", "delay": -1}, 400, "delay"),
        ("POST /events", {"reference": "ref-1", "kind": "open", "delay": 3601}, 400, "delay"),
        (
            "POST /events",
            {"reference": "ref-1", "kind": "open", "duplicates": 101},
            400,
            "duplicates",
        ),
        ("POST /events", {"reference": "ref-1", "kind": "open", "timestamp": -5}, 400, "timestamp"),
        ("POST /events", {"reference": "ref-1", "kind": "open", "code": 5}, 400, "no code"),
        (
            "POST /events",
            {"reference": "ref-1", "kind": "open", "recipient": "bob@example.com"},
            400,
            "no such recipient",
        ),
        ("GET /nothing", None, 404, "There is no GET /_sandbox/nothing"),
        ("PATCH /counters", None, 404, "There is no PATCH /_sandbox/counters"),
    ],
)
def test_invalid_call_is_refused_with_the_reason(
    box: Box, call: str, body: Any, status: int, words: str
) -> None:
    box.send(mail())
    method, path = call.split(" ")
    answer = box.refused(method, path, body)
    assert answer.status == status
    assert words in detail(answer)


def test_requested_events_are_sent_in_any_order_and_number(box: Box, receiver: Receiver) -> None:
    box.send(mail("no-events@example.com"))
    box.control("POST", "/events", {"reference": "ref-1", "kind": "delivered", "duplicates": 2})
    box.control("POST", "/events", {"reference": "ref-1", "kind": "processed", "delay": 0.1})
    events = receiver.wait_for("ref-1", "delivered", "delivered", "delivered", "processed")
    assert len({event["sg_event_id"] for event in events}) == 2
    assert len(set(map(str, events))) == 2


def test_requested_event_has_the_given_time_and_recipient(box: Box, receiver: Receiver) -> None:
    to = [{"email": "no-events@example.com"}, {"email": "no-events+2@example.com"}]
    box.send(mail(personalizations=[{"to": to, "custom_args": {"reference": "ref-1"}}]))
    eight_days_ago = int(time.time()) - 8 * 86_400
    wanted = {
        "reference": "ref-1",
        "kind": "click",
        "recipient": "NO-events+2@example.com",
        "timestamp": eight_days_ago,
    }
    box.control("POST", "/events", wanted)
    [event] = receiver.wait_for("ref-1", "click")
    assert (event["timestamp"], event["email"]) == (eight_days_ago, "no-events+2@example.com")


def test_event_is_sent_before_a_slow_answer(box: Box, receiver: Receiver) -> None:
    sender = threading.Thread(target=box.send, args=(mail("slow@example.com"),))
    sender.start()
    until(lambda: "processed" in receiver.kinds("ref-1"))
    assert sender.is_alive()
    sender.join()


def test_reset_deletes_everything_except_the_log(box: Box, receiver: Receiver) -> None:
    box.control("PUT", "/behaviours/*", {"outcome": "soft-bounce"})
    box.send(mail(reference="forgotten"))
    box.control("POST", "/reset")
    assert box.requests() == []
    assert box.control("GET", "/behaviours")["results"] == []
    counters = box.control("GET", "/counters")
    assert (counters["requests"], counters["outcomes"]) == (0, {})
    box.send(mail(reference="new"))
    receiver.wait_for("new", "processed", "delivered")
    assert "delivered" not in receiver.kinds("forgotten")
    assert [request["id"] for request in box.requests()] == [2]


def test_request_of_another_site_is_refused(box: Box) -> None:
    box.send(mail())
    for site in ("cross-site", "same-site"):
        answer = box.http.request(
            "POST", f"{box.sandbox.url}/_sandbox/reset", headers={"Sec-Fetch-Site": site}
        )
        assert answer.status == 403
    assert len(box.requests()) == 1
