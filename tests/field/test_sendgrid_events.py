"""Events of SendGrid as users met them: foreign, odd, without IDs, and about innocent addresses."""

import base64
import json
import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from typing import Any

import pytest
from bson import ObjectId
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from django.test import Client

from domain.content import Recipient
from domain.states import DeliveryStatus
from domain.time import utc_now
from notifications.receipts import processor, webhook_log
from notifications.store import leases
from notifyproject.db.collections import collection
from providers.contract import AddressEffect, InvalidSignatureError, ReceiptKind
from providers.json_items import split_array
from providers.sendgrid.webhooks import parse_webhook, verify
from sandbox.providers.sendgrid import events
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, outbound, settlement, started
from tests.support.fakes.mongo_failpoints import fail_commands
from tests.support.mongo.written_collections import reads
from tests.support.providers import sendgrid
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("db")

KEY = ec.generate_private_key(ec.SECP256R1())
PUBLIC_KEY = base64.b64encode(
    KEY.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
).decode()
S, K, E = DeliveryStatus, ReceiptKind, AddressEffect


@pytest.fixture(autouse=True)
def _public_key(settings: Any) -> None:
    settings.SENDGRID_WEBHOOK_PUBLIC_KEY = PUBLIC_KEY


def call(events: Any) -> Any:
    raw = events if isinstance(events, bytes) else json.dumps(events).encode()
    timestamp = str(int(time.time()))
    signature = KEY.sign(timestamp.encode() + raw, ec.ECDSA(hashes.SHA256()))
    return Client(raise_request_exception=False).post(
        "/webhooks/sendgrid",
        raw,
        content_type="application/json",
        headers={
            "X-Twilio-Email-Event-Webhook-Signature": base64.b64encode(signature).decode(),
            "X-Twilio-Email-Event-Webhook-Timestamp": timestamp,
        },
    )


def event(kind: str, address: str = "ada@example.com", **fields: Any) -> dict[str, Any]:
    return {
        "event": kind,
        "email": address,
        "timestamp": int(time.time()),
        "sg_event_id": f"{kind}-{ObjectId()}",
    } | fields


def of(document: Any, kind: str, **fields: Any) -> dict[str, Any]:
    return event(kind, reference=f"{document['_id']}.email.1", **fields)


def sent_to(address: str, *, message_id: str = "sg-1", is_test: bool = False) -> ObjectId:
    begun = started(recipient=Recipient(email=address), is_test=is_test)
    leases.settle([settlement(begun, S.SENT, provider_message_id=message_id)], now=NOON)
    return begun.notification_id


def status_of(notification_id: ObjectId) -> str:
    return str(factories.delivery(factories.read(notification_id))["status"])


def suppressed(address: str = "ada@example.com") -> list[tuple[str, bool]]:
    found = collection("suppressions").find({"address": address})
    return sorted((event["reason"], event["marketing_only"]) for event in found)


def log_entry() -> Mapping[str, Any]:
    found: Mapping[str, Any] = collection("webhook_log").find_one({}, sort=[("_id", -1)])
    return found


WITHOUT_IDS = {"sg_message_id": ""}
# https://github.com/sendgrid/docs/issues/5177
ASYNCHRONOUS_BOUNCE = {
    **WITHOUT_IDS,
    "status": "5.1.10",
    "reason": "550 5.1.10 RESOLVER.ADR.RecipientNotFound; Recipient not found by address lookup",
    "type": "bounce",
}


class TestWithoutIDs:
    """Events that name no message take effect on the address."""

    @each_case(
        "fields, expected",
        [
            ({"kind": "bounce", **ASYNCHRONOUS_BOUNCE}, ("hard_bounce", False)),
            # https://github.com/mirajavora/sendgrid-webhooks/pull/4
            (
                {"kind": "bounce", **ASYNCHRONOUS_BOUNCE, "sg_message_id": None},
                ("hard_bounce", False),
            ),
            ({"kind": "bounce", "sg_message_id": "unknown.filter1"}, ("hard_bounce", False)),
            ({"kind": "bounce", "reference": "order-106"}, ("hard_bounce", False)),
            ({"kind": "bounce", "reference": 106}, ("hard_bounce", False)),
            ({"kind": "spamreport"}, ("complaint", False)),
            ({"kind": "spamreport", **WITHOUT_IDS}, ("complaint", False)),
            ({"kind": "unsubscribe", **WITHOUT_IDS}, ("unsubscribed", True)),
            ({"kind": "group_unsubscribe", "asm_group_id": 7}, ("unsubscribed", True)),
            ({"kind": "dropped", "reason": "Bounced Address"}, ("hard_bounce", False)),
            ({"kind": "dropped", "reason": "Spam Reporting Address"}, ("complaint", False)),
            ({"kind": "dropped", "reason": "Unsubscribed Address"}, ("unsubscribed", True)),
        ],
    )
    def test_event_takes_effect_on_its_address(
        self, fields: dict[str, Any], expected: tuple[str, bool]
    ) -> None:
        notification_id = sent_to("ada@example.com")
        assert call([event(**fields)]).status_code == 200
        assert suppressed() == [expected]
        assert status_of(notification_id) == "sent"
        assert log_entry()["unmatched_count"] == 1
        collection("suppressions").delete_many({})

    def test_address_that_nobody_wrote_to_counts_too(self) -> None:
        call([event("bounce", "eve@example.net", **ASYNCHRONOUS_BOUNCE)])
        assert suppressed("eve@example.net") == [("hard_bounce", False)]

    def test_address_may_stand_in_brackets(self) -> None:
        for name, address in (("ada", "<ada@example.com>"), ("bob", "Bob <bob@example.com>")):
            call([event("bounce", address, **ASYNCHRONOUS_BOUNCE)])
            assert suppressed(f"{name}@example.com") == [("hard_bounce", False)]

    def test_two_addresses_are_none(self) -> None:
        call([event("bounce", "ada@example.com,bob@example.com", **ASYNCHRONOUS_BOUNCE)])
        assert collection("suppressions").count_documents({}) == 0

    def test_address_of_a_test_client_is_not_suppressed(self) -> None:
        sent_to("test@example.com", is_test=True)
        call([event("bounce", "Test@example.com", **ASYNCHRONOUS_BOUNCE)])
        assert collection("suppressions").count_documents({}) == 0
        sent_to("test@example.com")
        call([event("spamreport", "test@example.com")])
        assert suppressed("test@example.com") == [("complaint", False)]

    def test_replay_and_repetition_keep_what_staff_lifted(self) -> None:
        events = [event("bounce", **ASYNCHRONOUS_BOUNCE)]
        call(events)
        collection("suppressions").delete_many({})
        call(events)
        webhook_log.replay(log_entry()["_id"], now=utc_now())
        assert suppressed() == []

    def test_event_that_comes_before_its_message_is_stored_counts_once(self) -> None:
        call([event("unsubscribe", sg_message_id="sg-9.filter0001")])
        assert suppressed() == [("unsubscribed", True)]
        collection("suppressions").delete_many({})
        assert processor.apply_early_receipts(now=utc_now()) == 0
        assert suppressed() == []

    @each_case(
        "fields",
        [
            {"kind": "delivered"},
            {"kind": "open"},
            {"kind": "deferred"},
            {"kind": "group_resubscribe"},
            {"kind": "bounce", "type": "blocked"},
            {"kind": "bounce", "email": None},
            {"kind": "bounce", "email": "no address"},
            {"kind": "spamreport", "email": ["ada@example.com"]},
        ],
    )
    def test_other_event_suppresses_nobody(self, fields: dict[str, Any]) -> None:
        assert call([event(**fields)]).status_code == 200
        assert collection("suppressions").count_documents({}) == 0


class TestMessageIDs:
    """Events without a reference name their message by SendGrid's ID."""

    @pytest.mark.parametrize(
        ("message_id", "sg_message_id"),
        [
            ("evEK_IhZSlKus235aGfxIQ", "evEK_IhZSlKus235aGfxIQ.filter0361p1las1-11880-597.0"),
            ("14c5d75ce93.dfd.64b469", "14c5d75ce93.dfd.64b469.filter0001.16648.5515E0B88.0"),
            ("14c5d75ce93.dfd.64b469", "14c5d75ce93.dfd.64b469"),
            ("14c5d75ce93.dfd.64b469", "14c5d75ce93.dfd.64b469.recvd-5f54b5d587-pczjm-1-67.0"),
            ("euo2iKxdSayPF4YE4--I7A", "euo2iKxdSayPF4YE4--I7A.recvd-5f54b5d587-1-67BADEEA-6.0"),
            ("a.b", "a.b.somewhere-new.0"),
            ("a", "a.somewhere-new.0"),
            ("a", "a"),
        ],
    )
    def test_id_with_dots_names_its_message(self, message_id: str, sg_message_id: str) -> None:
        notification_id = sent_to("ada@example.com", message_id=message_id)
        call([event("delivered", sg_message_id=sg_message_id)])
        assert status_of(notification_id) == "delivered"

    def test_message_of_a_batch_is_found_by_its_address(self) -> None:
        addresses = ("ada@example.com", "Bob@Example.com", "eve@example.com")
        ids = [sent_to(address, message_id="shared") for address in addresses]
        call([event("delivered", "bob@example.com", sg_message_id="shared.filter1")])
        assert [status_of(notification_id) for notification_id in ids] == [
            "sent",
            "delivered",
            "sent",
        ]

    def test_message_of_a_batch_without_an_address_is_none(self) -> None:
        ids = [sent_to(f"{name}@example.com", message_id="shared") for name in ("ada", "bob")]
        call([event("delivered", sg_message_id="shared.filter1", email=None)])
        assert [status_of(notification_id) for notification_id in ids] == ["sent", "sent"]

    def test_foreign_reference_does_not_hide_the_message_id(self) -> None:
        notification_id = sent_to("ada@example.com")
        call([event("delivered", reference="order-106", sg_message_id="sg-1.filter1")])
        assert status_of(notification_id) == "delivered"


def _bounce(reason: str, **fields: Any) -> dict[str, Any]:
    return {"kind": "bounce", "type": "bounce", "reason": reason, **fields}


INNOCENT = [
    {"kind": "bounce", "type": "blocked", "reason": "550 5.1.1 no such user"},
    {"kind": "bounce", "type": "blocked", "bounce_classification": "Invalid Address"},
    # https://github.com/discourse/discourse: the domain doesn't exist, and no status.
    {
        "kind": "bounce",
        "type": "blocked",
        "reason": "unable to get mx info: failed to get IPs from PTR record",
        "bounce_classification": "Unclassified",
    },
    # https://github.com/RyanBalfanz/django-sendgrid/issues/15: with a capital.
    {"kind": "bounce", "type": "Blocked", "reason": "550 5.1.1 no such user"},
    {"kind": "bounce", "type": "Expired", "reason": "421 4.4.2 Connection timed out"},
    # https://github.com/sendgrid/docs/issues/3675, without its type.
    _bounce("554 5.7.1 Service unavailable; Client host [192.0.2.1] blocked using x"),
    _bounce("552 5.2.2 This message was rejected: sender over quota"),
    _bounce("550 5.4.5 Daily sending quota exceeded", bounce_classification="Invalid Address"),
    _bounce("554 5.7.1 Message considered as SPAM"),
    _bounce("552 5.3.4 message too large"),
    _bounce("550 5.7.26 Unauthenticated email is not accepted due to DMARC"),
    _bounce("No", bounce_classification="Reputation"),
    _bounce("No", bounce_classification="Content"),
    _bounce("No", bounce_classification="Technical Failure"),
    _bounce("No", bounce_classification="Frequency or Volume Too High"),
    # https://github.com/sendgrid/docs/issues/69
    {"kind": "dropped", "reason": "Invalid SMTPAPI header"},
    {"kind": "dropped", "reason": "Spam Content"},
    {"kind": "dropped", "reason": "Recipient List over Package Quota"},
    {"kind": "dropped", "reason": "Maximum credits exceeded"},
    {"kind": "dropped"},
    {"kind": "dropped", "reason": {"code": 1}},
]


class TestEffects:
    """What a bounce or a drop says about the address."""

    @each_case(
        "fields",
        [
            _bounce("500 unknown recipient", status="5.0.0"),
            _bounce("550 5.1.1 The email account that you tried to reach does not exist."),
            _bounce("550 No Such User Here", status="550"),
            _bounce("", status="5.1.1"),
            _bounce("No", bounce_classification="Invalid Address"),
            _bounce("550-5.1.1 unknown", bounce_classification="Unclassified"),
            {"kind": "bounce"},
            {"kind": "bounce", "type": "bounce", "status": "5.0.0"},
        ],
    )
    def test_permanent_bounce_suppresses(self, fields: dict[str, Any]) -> None:
        call([event(**fields)])
        assert suppressed() == [("hard_bounce", False)]
        collection("suppressions").delete_many({})

    @pytest.mark.parametrize(
        "fields",
        [
            _bounce("552 5.2.2 mailbox full"),
            _bounce("452 4.2.2 The email account that you tried to reach is over quota"),
            _bounce("554 5.2.122 The recipient has exceeded their limit for the number of mails"),
            _bounce("Mailbox", bounce_classification="Mailbox Unavailable"),
            # https://github.com/mirajavora/sendgrid-webhooks/issues/16
            _bounce("550 Requested action not taken: mailbox unavailable ", status="550"),
            _bounce("550 5.7.1 Recipient address rejected: Access denied", status="5.7.1"),
            {"kind": "dropped", "reason": "Invalid"},
        ],
    )
    def test_soft_bounce_suppresses_at_the_third_in_a_row(self, fields: dict[str, Any]) -> None:
        for count in range(1, 4):
            assert suppressed() == []
            call([event(**fields, sg_message_id=f"sg-{count}.filter1")])
            assert (suppressed() == []) == (count < 3)

    def test_repeated_soft_bounce_with_another_id_counts_once(self) -> None:
        """https://github.com/sendgrid/sendgrid-nodejs/issues/1435"""
        for fields in ({"sg_message_id": "sg-1.filter1"}, {"timestamp": int(time.time()) - 60}):
            for _ in range(4):
                call([event(**_bounce("552 5.2.2 mailbox full"), **fields)])
        assert suppressed() == []

    def test_delivery_in_between_clears_the_soft_bounces(self) -> None:
        for kind in ("bounce", "bounce", "delivered", "bounce"):
            fields = _bounce("552 5.2.2 mailbox full") if kind == "bounce" else {"kind": kind}
            call([event(**fields, reference=f"{sent_to('ada@example.com')}.email.1")])
        assert suppressed() == []

    def test_innocent_address_is_not_suppressed(self) -> None:
        ids = [sent_to(f"{n}@example.com", message_id=f"sg-{n}") for n in range(len(INNOCENT))]
        named = [{"address": f"{n}@example.com", **fields} for n, fields in enumerate(INNOCENT)]
        for _ in range(4):
            call([event(**fields) for fields in named])
            call([of({"_id": ids[n]}, **fields) for n, fields in enumerate(named)])
        assert collection("suppressions").count_documents({}) == 0
        assert collection("soft_bounces").count_documents({}) == 0
        assert {status_of(notification_id) for notification_id in ids} == {"failed"}

    def test_event_about_one_address_touches_no_other(self) -> None:
        others = [sent_to(f"{name}@example.com", message_id="shared") for name in ("bob", "eve")]
        for kind in ("bounce", "spamreport", "unsubscribe", "dropped"):
            call([event(kind, sg_message_id="shared.filter1", reason="Bounced Address")])
        assert {suppression["address"] for suppression in collection("suppressions").find()} == {
            "ada@example.com"
        }
        assert [status_of(other) for other in others] == ["sent", "sent"]


# https://github.com/sendgrid/sendgrid-nodejs/issues/1193: a real webhook, without its line break
REAL_KEY = (
    "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEc1xJU2qhLFMxcOLdKWQIA2OZdmUTlNRT5xFEipLDnGkO0uhW8aJiIQxJ"
    "GglBRiKWxNqm3jjRbUpaAaDH9WHkng=="
)
REAL_HEADERS = {
    "x-twilio-email-event-webhook-signature": (
        "MEYCIQCxfnpzX3CftRSaaA4wHWHOKEyHbCf5jbwL/z/QQpncqQIhANu8Ug7FTuQhgGzhSVQvDSIS64rp+fXz2AloRnV5"
        "qcTL"
    ),
    "x-twilio-email-event-webhook-timestamp": "1599663888",
}
REAL_BODY = (
    b'[{"email":"arthur.sudre@stack-labs.com","event":"processed","send_at":0,'
    b'"sg_event_id":"cHJvY2Vzc2VkLTE4NDg3OTEyLVhldDZiWjdXUlRHMmZZRGEtcDdhcnctMA",'
    b'"sg_message_id":"Xet6bZ7WRTG2fYDa-p7arw.filterdrecv-p3iad2-865cf6bb5-jhhw2-19-5F58E73D-D2.0",'
    b'"smtp-id":"<Xet6bZ7WRTG2fYDa-p7arw@ismtpd0007p1lon1.sendgrid.net>",'
    b'"timestamp":1599661886}]'
)


@each_case(
    "after, is_genuine", [(b"\r\n", True), (b"", False), (b"\n", False), (b"\r\n\r\n", False)]
)
def test_real_signature_covers_the_line_break(after: bytes, is_genuine: bool) -> None:
    moment = datetime.fromtimestamp(1_599_663_888, UTC)
    expected = nullcontext() if is_genuine else pytest.raises(InvalidSignatureError)
    with expected:
        verify(REAL_HEADERS, REAL_BODY + after, public_key=REAL_KEY, now=moment)


NO_SUCH_USER = "550 5.1.1 The email account that you tried to reach does not exist"


class TestSequences:
    """What several events about one message leave, in the order in which they come."""

    @each_case(
        "kinds, status",
        [
            # https://github.com/TryGhost/Ghost/pull/15901: a delayed bounce, and one that overtakes
            (("delivered", "bounce"), "failed"),
            (("bounce", "delivered"), "failed"),
            (("deferred", "deferred", "delivered"), "delivered"),
            (("deferred", "bounce"), "failed"),
            (("delivered", "processed"), "delivered"),
            (("delivered", "deferred"), "delivered"),
            (("delivered", "spamreport"), "delivered"),
            (("open",), "sent"),
        ],
    )
    def test_last_word_about_a_message(self, kinds: Sequence[str], status: str) -> None:
        notification_id = sent_to("ada@example.com")
        fields = {"reason": NO_SUCH_USER, "attempt": "5", "response": "400 try again later"}
        for kind in kinds:
            call([of({"_id": notification_id}, kind, **fields)])
        assert status_of(notification_id) == status

    def test_events_with_one_id_count_both_if_they_differ_in_kind(self) -> None:
        """https://github.com/sendgrid/docs/issues/238: examples share an ID."""
        notification_id = sent_to("ada@example.com")
        kinds = ("delivered", "bounce")
        same = {"sg_event_id": "sg_event_id", "reason": NO_SUCH_USER}
        call([of({"_id": notification_id}, kind, **same) for kind in kinds])
        assert status_of(notification_id) == "failed"


@each_case(
    "fields, kinds",
    [
        # https://github.com/mirajavora/sendgrid-webhooks/pull/39: Apple's servers open all mail
        ({"event": "open", "sg_machine_open": True}, []),
        ({"event": "open", "sg_machine_open": False}, [K.OPENED]),
        ({"event": "open", "sg_machine_open": None}, [K.OPENED]),
        ({"event": "open"}, [K.OPENED]),
        # https://github.com/mirajavora/sendgrid-webhooks/pull/24
        ({"event": "processed", "send_at": 1481050260.03746}, [K.QUEUED]),
        # https://github.com/sendgrid/docs/issues/4096
        ({"event": "delivered", "category": ["order-confirmation"]}, [K.DELIVERED]),
        ({"event": "click", "url_offset": {"index": 0, "type": "html"}}, [K.CLICKED]),
        ({"event": "processed", "pool": {"name": "new", "id": 210}}, [K.QUEUED]),
        ({"event": "account_status_change", "type": "compliance_suspend"}, []),
    ],
)
def test_fields_of_newer_events(fields: dict[str, Any], kinds: Sequence[ReceiptKind]) -> None:
    item = {"email": "ada@example.com", "timestamp": 1_795_804_576, "sg_event_id": "a"} | fields
    parsed = parse_webhook(json.dumps([item]).encode())
    assert ([receipt.kind for receipt in parsed.receipts], parsed.unreadable_count) == (kinds, 0)


def _odd_items() -> Sequence[bytes]:
    """Return the JSON of odd events."""
    base = event("delivered")
    nested: Any = "x"
    for _ in range(200):
        nested = [nested]
    values: Sequence[Any] = (
        None, True, 3, -1, 1.5, 10**30, "", "x" * 100_000, "\u0000", "\ud83d", [], ["a"], {},
        {"$gt": ""}, nested,
    )  # fmt: skip
    names = (
        "event",
        "timestamp",
        "sg_event_id",
        "sg_message_id",
        "reference",
        "email",
        "reason",
        "type",
        "status",
        "bounce_classification",
        "category",
        "unique_args",
    )
    odd = [json.dumps(base | {name: value}) for name in names for value in values]
    odd += [json.dumps({k: v for k, v in base.items() if k != name}) for name in base]
    odd += ["null", "1", '"x"', "[]", "{}", "[[1, 2]]", "NaN", "-Infinity", "truth", '{"event"}']
    odd += [
        '{"event": "delivered", "timestamp": NaN, "sg_event_id": "a"}',
        '{"event": "bounce", "email": "x@example.com", "timestamp": Infinity}',
        '{"event": "delivered", "timestamp": "soon"}',
        '{"event": "delivered", "timestamp": 1e400}',
        '{"event": "delivered", "timestamp": ' + "9" * 5000 + "}",
        '{"event": "delivered", "more": ' + "[" * 20_000 + "]" * 20_000 + "}",
        '{"more": ' + '{"a": ' * 20_000 + "1" + "}" * 20_000 + "}",
        '{"event": "delivered", "text": "[{\\"]}, {\\\\"}',
        "{'event': 'delivered'}",
    ]
    return [event.encode("ascii", "surrogatepass") for event in odd]


ODD = _odd_items()


class TestOddEvents:
    """An event of another application, or of another form, stops no other."""

    @each_case(
        "odd",
        [
            # One account serves several applications, and custom arguments are fields.
            {"event": "processed", "email": "x@example.net", "timestamp": 1, "reference": 106},
            {"event": "processed", "sg_event_id": "a", "timestamp": 1, "reference": ["a"]},
            {"event": "bounce", "sg_event_id": "a", "timestamp": 1, "type": 3},
            {"event": "dropped", "sg_event_id": "a", "timestamp": 1, "reason": {"code": 1}},
            {"event": "delivered", "email": "x@example.net", "timestamp": 1},
            {"event": "delivered", "sg_event_id": "a", "timestamp": 1795804576.5},
            {"event": "delivered", "sg_event_id": "a", "timestamp": "1795804576"},
            # Its application cut an emoji.
            {"event": "open", "email": "x@example.net", "timestamp": 1, "note": "Hi \ud83d"},
        ],
    )
    def test_foreign_event_is_read(self, odd: dict[str, Any]) -> None:
        document = factories.settled(S.SENT)
        answer = call([odd, of(document, "bounce", **ASYNCHRONOUS_BOUNCE)])
        assert (answer.status_code, answer.json()) == (200, {"events": 2, "changed": 1})
        assert status_of(document["_id"]) == "failed"
        assert log_entry()["unreadable_count"] == 0

    def test_good_events_beside_odd_ones_apply(self) -> None:
        some = ODD[:: len(ODD) // 60]
        document = factories.settled(S.SENT)
        good = [of(document, "delivered"), of(document, "spamreport", address="bad@example.com")]
        first, last = (json.dumps(event).encode() for event in good)
        raw = b"[" + b",".join((first, *some, last)) + b"]\r\n"
        answer = call(raw)
        assert answer.status_code == 200
        assert status_of(document["_id"]) == "delivered"
        assert suppressed("bad@example.com") == [("complaint", False)]
        entry = log_entry()
        assert entry["body"] == raw.decode()
        assert entry["event_count"] + entry["unreadable_count"] <= len(some) + 2
        assert entry["unreadable_count"] > 0

    @each_case("number", range(0, len(ODD), 9))
    def test_odd_event_is_stored_and_answered(self, number: int) -> None:
        raw = b"[" + ODD[number] + b"]"
        assert call(raw).status_code == 200
        assert log_entry()["body"] == raw.decode()

    def test_every_odd_item_is_its_own(self) -> None:
        assert [item.strip() for item in split_array(b"[" + b" , ".join(ODD) + b"]")] == list(ODD)
        assert parse_webhook(b"[" + b",".join(ODD) + b"]").unreadable_count > 30

    @each_case(
        "raw",
        [b"", b"{}", b"null", b'"x"', b"[", b"[1", b"[1]]", b"[1] [2]", b"<xml>", b'{"a": [1]}'],
    )
    def test_body_that_is_no_list_is_refused(self, raw: bytes) -> None:
        assert call(raw).status_code == 400
        assert collection("webhook_log").count_documents({}) == 0

    def test_event_without_an_id_counts_once(self) -> None:
        bounce = event(**_bounce("552 5.2.2 full"))
        del bounce["sg_event_id"]
        for _ in range(4):
            call([bounce])
        assert suppressed() == []


@each_case(
    "kind, expected",
    [
        ("bounce", [("hard_bounce", False)]),
        ("bounce-by-mail", [("hard_bounce", False)]),
        ("dropped", [("hard_bounce", False)]),
        ("dropped-complaint", [("complaint", False)]),
        ("spamreport", [("complaint", False)]),
        ("unsubscribe", [("unsubscribed", True)]),
        *((kind, []) for kind in ("blocked", "full", "refused-sender", "dropped-quota")),
        *((kind, []) for kind in ("processed", "deferred", "delivered", "open", "click")),
        ("machine-open", []),
    ],
)
def test_event_of_the_sandbox_has_its_effect_beside_foreign_ones(
    kind: str, expected: list[tuple[str, bool]]
) -> None:
    notification_id = sent_to("ada@example.com")
    args = {"reference": f"{notification_id}.email.1"}
    posted = [
        events.payload(event, address="ada@example.com", message_id="sg-1", args=args)
        for event in ("foreign", kind, "unreadable")
    ]
    for payload in posted:
        payload["timestamp"] = payload["timestamp"] or int(time.time())
    assert call(posted).status_code == 200
    assert suppressed() == expected
    assert collection("suppressions").count_documents({}) == len(expected)
    assert log_entry()["unreadable_count"] == 1
    collection("suppressions").delete_many({})


@each_case(
    "name, sent",
    [
        # https://github.com/sendgrid/sendgrid-python/issues/291: the mail was dropped.
        ("Last, First", '"Last, First"'),
        ("Figma, Inc.", '"Figma, Inc."'),
        # https://github.com/sendgrid/sendgrid-java/issues/421
        ("Fat Fingers;;", '"Fat Fingers;;"'),
        ('Ada "x", Inc', '"Ada \\"x\\", Inc"'),
        ("\u00c1da, Lda", '"\u00c1da, Lda"'),
        ("Ada Lovelace", "Ada Lovelace"),
        # https://github.com/sendgrid/sendgrid-ruby/issues/394,
        # https://github.com/Gig-o-Matic/GO3/issues/549
        ("Howdy y'all :(", '"Howdy y\'all :("'),
        ("O'Brien (x)", '"O\'Brien (x)"'),
        ("Ada [Ops]", '"Ada [Ops]"'),
        ("ada@example.com", '"ada@example.com"'),
        ("<Ada>", '"<Ada>"'),
        ('Ada "Ace" King', '"Ada \\"Ace\\" King"'),
        ("Back\\slash", '"Back\\\\slash"'),
        ("O'Brien", "O'Brien"),
        ("J. R. Ünsal-Meyer & Co! #1", "J. R. Ünsal-Meyer & Co! #1"),
    ],
)
def test_name_with_special_characters_stays_one_name(name: str, sent: str) -> None:
    body = sendgrid.account(sender="Shop, Inc. <shop@example.com>").body(
        outbound(recipient_name=name)
    )
    assert body["personalizations"][0]["to"] == [{"name": sent, "email": "ada@example.com"}]
    assert body["from"]["name"] == "Shop, Inc."


def test_large_webhook_that_is_repeated_goes_on_where_it_ended(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(processor, "RECEIPTS_AT_ONCE", 10)
    ids = [sent_to(f"{n}@example.com", message_id=f"sg-{n}") for n in range(30)]
    receipts = [of({"_id": notification_id}, "delivered") for notification_id in ids]
    with fail_commands("insert", "provider_events", {"errorCode": 14031}):
        assert call(receipts).status_code == 503
    marked = collection("provider_events").count_documents({})
    assert marked < 30
    assert call(receipts).status_code == 200
    assert {status_of(notification_id) for notification_id in ids} == {"delivered"}
    assert collection("provider_events").count_documents({}) == 30


def test_unmatched_events_cost_few_requests() -> None:
    """A webhook of many foreign events ends within the time of a request."""
    before = reads.count
    events = [event("delivered", sg_message_id=f"foreign-{n}.filter1") for n in range(2000)]
    answer = call(events)
    assert (answer.status_code, answer.json()["events"]) == (200, 2000)
    assert 0 < reads.count - before < 100


def test_list_that_ends_within_a_text_is_refused_in_one_pass() -> None:
    """An escaped quotation mark was the beginning of another search through the rest."""
    raw = b'[{"a": "' + rb"\"" * 500_000 + b"]"
    before = time.process_time()
    with pytest.raises(ValueError, match="without an end"):
        split_array(raw)
    assert time.process_time() - before < 5
