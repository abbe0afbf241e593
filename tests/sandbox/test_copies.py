"""Counts of accepted requests for each message, which reveal duplicates."""

from typing import Any

import pytest
import urllib3

from sandbox import duplicates
from tests.support.clients.sandbox import Box, RunSandbox, mail
from tests.support.providers.sandbox_fcm import FCMClient, push
from tests.support.providers.sandbox_whatsapp import ADA, WhatsAppClient, text
from tests.support.waiting import until


def counted(box: Box, query: str = "") -> list[tuple[str, str, str, list[int]]]:
    """Return the counted messages: channel, reference, recipient, and accepting request IDs."""
    found = box.control("GET", f"/copies{query}")["results"]
    assert all(copy["copies"] == len(copy["requests"]) for copy in found)
    return [
        (copy["channel"], copy["reference"], copy["recipient"], copy["requests"]) for copy in found
    ]


def test_mail_is_counted_for_each_recipient_by_its_own_reference(box: Box) -> None:
    people: list[Any] = [
        {"to": [{"email": f"{name}@example.com"}], "custom_args": {"reference": f"ref-{name}"}}
        for name in ("ada", "bob")
    ]
    box.send(mail(personalizations=people))
    box.send(mail(personalizations=people[:1]))
    assert counted(box) == [
        ("email", "ref-bob", "bob@example.com", [1]),
        ("email", "ref-ada", "ada@example.com", [1, 2]),
    ]


def test_push_is_counted_by_each_of_its_references(box: Box) -> None:
    pushes = FCMClient(box=box)
    access = pushes.sign_in()
    for attempt in ("a-1", "a-2"):
        message = push(
            data={"reference": attempt, "notification_id": "n-1"},
            android={"notification": {"tag": "d-1"}},
            apns={"headers": {"apns-collapse-id": "d-1"}},
        )
        pushes.post({"message": message}, access=access)
    assert counted(box) == [
        ("push", "a-2", "device-1", [3]),
        ("push", "d-1", "device-1", [2, 3]),
        ("push", "n-1", "device-1", [2, 3]),
        ("push", "a-1", "device-1", [2]),
    ]
    assert box.control("GET", "/counters")["duplicates"] == 1


def test_same_reference_for_another_device_is_no_duplicate(box: Box) -> None:
    pushes = FCMClient(box=box)
    for token in ("device-1", "device-2"):
        pushes.send(token)
    assert counted(box, "?at_least=2") == []
    assert box.control("GET", "/counters")["duplicates"] == 0


def test_whatsapp_message_is_counted_by_its_callback_data(box: Box) -> None:
    chats = WhatsAppClient(box=box)
    for reference in ("ref-1", "ref-1", "ref-2"):
        chats.post(text(reference=reference))
    assert counted(box, "?channel=whatsapp&at_least=2") == [("whatsapp", "ref-1", ADA, [1, 2])]
    copies_of = [result["copies"] for result in box.control("GET", "/messages")["results"]]
    assert copies_of == [1, 2, 2]
    assert box.control("GET", "/counters")["duplicates"] == 1


def test_unanswered_message_is_a_copy_and_a_refused_one_is_not(box: Box) -> None:
    box.control("PUT", "/behaviours/ada@example.com", {"outcome": "unavailable", "times": 1})
    assert box.send(mail()).status == 503
    box.control("PUT", "/behaviours/ada@example.com", {"outcome": "timeout", "times": 1})
    with pytest.raises(urllib3.exceptions.ReadTimeoutError):
        box.send(mail(), timeout=0.2)
    until(lambda: len(box.requests()) == 2)
    box.send(mail())
    assert counted(box) == [("email", "ref-1", "ada@example.com", [2, 3])]


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 3),
        ("?provider=sendgrid", 2),
        ("?channel=push", 1),
        ("?recipient=ADA@example.com", 1),
        ("?reference=ref-2", 1),
        ("?at_least=2", 1),
        ("?at_least=2&limit=1", 1),
        ("?limit=1", 1),
        ("?provider=whatsapp", 0),
    ],
)
def test_copies_list_is_filtered(box: Box, query: str, count: int) -> None:
    box.send(mail())
    box.send(mail())
    box.send(mail("bob@example.com", reference="ref-2"))
    FCMClient(box=box).send()
    assert len(counted(box, query)) == count


@pytest.mark.parametrize("query", ["?at_least=0", "?provider=sms", "?channel=post", "?who=ada"])
def test_invalid_query_of_copies_is_refused(box: Box, query: str) -> None:
    assert box.refused("GET", f"/copies{query}").status == 400


def test_copies_survive_a_restart_and_not_a_reset(run: RunSandbox) -> None:
    for _ in range(2):
        with run() as box:
            box.send(mail())
    with run() as box:
        assert counted(box) == [("email", "ref-1", "ada@example.com", [1, 2])]
        box.control("POST", "/reset")
        assert counted(box) == []


def test_oldest_messages_are_evicted(box: Box, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(duplicates, "MAX_REMEMBERED", 2)
    for number in range(4):
        box.send(mail(reference=f"ref-{number}"))
    assert [reference for _, reference, _, _ in counted(box)] == ["ref-3", "ref-2"]
