"""WhatsApp's magic numbers: responses and status webhooks."""

from typing import Any

import pytest
from urllib3.exceptions import ReadTimeoutError

from sandbox.providers.whatsapp.outcomes import ERRORS, OUTCOME_BY_SUFFIX, OUTCOMES, magic
from tests.support.clients.sandbox import QUICK, Box, Receiver
from tests.support.providers.sandbox_whatsapp import (
    ADA,
    WhatsAppClient,
    error,
    template,
    text,
    wait_for,
)
from tests.support.tables import each_case
from tests.support.waiting import ending, until


@pytest.fixture
def chats(chat_box: Box) -> WhatsAppClient:
    return WhatsAppClient(box=chat_box)


def number(last: str) -> str:
    """Return a fictional phone number with these last three digits."""
    return f"+447700900{last}"


def test_outcomes_have_one_number_each() -> None:
    assert sorted(OUTCOME_BY_SUFFIX.values()) == sorted(row.name for row in OUTCOMES.table)
    assert set(ERRORS) <= {OUTCOME_BY_SUFFIX[last] for last, _, _ in REFUSALS}


def test_number_that_resembles_a_magic_one_has_no_outcome() -> None:
    assert [magic(text) for text in ("447700901026", "26", "4477009000260", "447700900999")] == [
        ""
    ] * 4
    assert magic("12024900026") == "undeliverable"


@pytest.mark.parametrize(
    ("to", "kinds"),
    [
        (ADA, ["sent", "delivered"]),
        (number("001"), ["sent", "delivered"]),
        (number("002"), ["sent", "delivered", "read"]),
        (number("003"), ["sent"]),
        (number("005"), ["read", "sent", "read", "delivered", "sent", "delivered"]),
        (number("006"), ["sent", "failed"]),
        (number("007"), ["failed"]),
        (number("149"), ["failed"]),
        *((to, ["sent", "delivered"]) for to in (number("413"), number("414"), number("415"))),
    ],
)
def test_accepted_message_causes_its_statuses(
    chats: WhatsAppClient, meta_receiver: Receiver, to: str, kinds: list[str]
) -> None:
    assert chats.send(to).status == 200
    found = wait_for(meta_receiver, *kinds)
    assert {item["recipient_id"] for item in found} == {to.removeprefix("+")}
    assert {item["id"] for item in found} == {chats.box.requests()[0]["message_id"]}


def test_message_to_no_events_causes_none(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    chats.post(text(number("004"), reference="silent"))
    chats.post(text(reference="other"))
    wait_for(meta_receiver, "sent", "delivered", reference="other")
    wait_for(meta_receiver, reference="silent")


REFUSALS = [
    ("026", 400, 131026),
    ("047", 400, 131047),
    ("056", 400, 131056),
    ("429", 429, 130429),
    ("428", 400, 130429),
    ("427", 429, 130429),
    ("807", 400, 80007),
    ("104", 400, 4),
    ("048", 400, 131048),
    ("500", 500, 131000),
    ("501", 500, 131000),
    ("016", 500, 131016),
    ("101", 400, 1),
    ("102", 503, 2),
    ("057", 500, 131057),
    ("100", 401, 0),
    ("103", 500, 3),
    ("110", 403, 10),
    ("033", 400, 33),
    ("200", 403, 200),
    ("190", 401, 190),
    ("368", 403, 368),
    ("105", 403, 131005),
    ("031", 403, 131031),
    ("037", 400, 131037),
    ("042", 400, 131042),
    ("045", 500, 131045),
    ("310", 400, 133010),
    ("021", 400, 131021),
    ("030", 400, 131030),
    ("050", 400, 131050),
    ("049", 400, 131049),
    ("472", 400, 130472),
    ("497", 403, 130497),
    ("009", 400, 131009),
    ("008", 400, 131008),
    ("051", 400, 131051),
    ("416", 400, None),
    ("417", 400, 139999),
    ("403", 403, 139999),
]


@each_case("last, status, code", REFUSALS)
def test_refusal_has_its_status_and_code(
    chats: WhatsAppClient, last: str, status: int, code: int | None
) -> None:
    answer = chats.send(number(last))
    assert (answer.status, error(answer).get("code")) == (status, code)
    recorded = chats.box.requests()[0]
    assert (recorded["status"], recorded["accepted"]) == (status, False)
    assert recorded["outcome"] == OUTCOME_BY_SUFFIX[last]
    assert recorded["references"] == ["ref-1"]


def test_error_has_the_graph_apis_envelope(chats: WhatsAppClient) -> None:
    found = error(chats.send(number("026")))
    assert found.pop("fbtrace_id")
    assert found == {
        "message": "(#131026) Message undeliverable",
        "type": "OAuthException",
        "code": 131026,
        "error_data": {"messaging_product": "whatsapp", "details": "Message Undeliverable."},
    }


def test_closed_window_refuses_texts_and_accepts_templates(chats: WhatsAppClient) -> None:
    hello = {"name": "hello_world", "language": {"code": "en_US"}, "components": []}
    assert error(chats.send(number("047")))["code"] == 131047
    assert chats.post(template(number("047"), **hello)).status == 200


def test_held_template_is_delivered_later(chats: WhatsAppClient, meta_receiver: Receiver) -> None:
    hello = {"name": "hello_world", "language": {"code": "en_US"}, "components": []}
    answer = chats.post(template(number("107"), **hello))
    assert answer.json()["messages"][0]["message_status"] == "held_for_quality_assessment"
    wait_for(meta_receiver, "sent", "delivered")


def test_rate_limit_has_retry_after_only_with_429(chats: WhatsAppClient) -> None:
    assert chats.send(number("429")).headers["Retry-After"] == str(QUICK.rate_limit)
    assert "Retry-After" not in chats.send(number("428")).headers


def test_script_matches_with_and_without_a_plus_sign(chats: WhatsAppClient) -> None:
    for match in ("+447700900999", "447700900999"):
        chats.box.control("PUT", f"/behaviours/{match}", {"outcome": "unavailable", "times": 2})
        assert [chats.send(ADA).status for _ in range(3)] == [500, 500, 200]


@pytest.mark.parametrize(("last", "body"), [("414", b"{}"), ("415", b"<html></html>")])
def test_odd_acceptance_has_its_body(chats: WhatsAppClient, last: str, body: bytes) -> None:
    answer = chats.send(number(last))
    assert (answer.status, answer.data) == (200, body)
    assert chats.box.requests()[0]["accepted"]


def test_unanswered_message_causes_statuses_later(
    chats: WhatsAppClient, meta_receiver: Receiver
) -> None:
    with ending(after=QUICK.late):
        with pytest.raises(ReadTimeoutError):
            chats.send(number("408"), timeout=0.2)
        wait_for(meta_receiver, "sent", "delivered")


def test_script_of_a_provider_requires_its_name_and_outcome(chats: WhatsAppClient) -> None:
    chats.box.control("PUT", "/behaviours/whatsapp:*", {"outcome": "payment"})
    assert error(chats.send())["code"] == 131042
    refused: Any = chats.box.refused("PUT", "/behaviours/fcm:*", {"outcome": "payment"})
    assert (refused.status, "There is no outcome" in refused.json()["detail"]) == (400, True)
    refused = chats.box.refused("PUT", "/behaviours/sms:*", {"outcome": "delivered"})
    assert (refused.status, "There is no such provider" in refused.json()["detail"]) == (400, True)
    until(lambda: chats.box.control("GET", "/counters")["outcomes"] == {"payment": 1})
