"""Preparation of a notification from a request: fields, defaults, recipients."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.retry import MAX_RETRIES
from domain.states import Category, DeliveryStatus, Priority
from notifications.intake.preparation import addresses_of, resolve_recipient
from notifications.intake.requests import ContentRequest, NotificationRecipientRequest
from notifications.validation import InvalidRequestError, ProblemCollector
from recipients.queries import ActiveSuppression, RegisteredRecipient
from tests.support.factories.notifications import FIXED_NOON as NOON
from tests.support.factories.notifications import SHIPPED, request
from tests.support.factories.requests import ADA, CALLER, ID, prepared, problems
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("shipped_types")


S = DeliveryStatus


def test_defaults_come_from_type_recipient_and_client() -> None:
    result = prepared()
    new = result.notification
    assert not result.is_time_adjusted
    assert (new.id, new.client_id) == (ID, CALLER.client_id)
    assert (new.request_id, new.idempotency_key) == ("request-1", "key-1")
    assert (new.type, new.category, new.priority) == ("alert", Category.ALERT, Priority.HIGH)
    assert [d.channel for d in new.deliveries] == [Channel.EMAIL, Channel.IN_APP]
    assert new.recipient.email == "ada@example.com"
    assert (new.send_at, new.created_at, new.scheduled_at) == (NOON, NOON, None)
    assert new.expires_at is None
    assert new.purge_at == NOON + timedelta(days=90)
    assert new.max_attempts == 4


PERSONAL = sorted(
    slug for slug, kind in SHIPPED.items() if any(item.is_personal for item in kind.channels)
)


@each_case("slug", PERSONAL)
def test_shipped_types_supply_defaults(slug: str) -> None:
    kind = SHIPPED[slug]
    new = prepared(type=slug).notification
    assert (new.type, new.category, new.priority) == (slug, kind.category, kind.priority)
    assert new.max_attempts == 1 + kind.max_retries
    expected = None if kind.ttl_seconds is None else NOON + timedelta(seconds=kind.ttl_seconds)
    assert new.expires_at == expected


def test_unknown_type_suggests_similar_names() -> None:
    with pytest.raises(InvalidRequestError) as invalid:
        prepared(type="order_shiped")
    (problem,) = invalid.value.problems
    assert (problem.pointer, problem.code) == ("/type", "unknown_type")
    assert "order_shipped" in problem.detail
    assert "order_shiped?" not in problem.detail


def test_type_without_similar_names_suggests_none() -> None:
    with pytest.raises(InvalidRequestError) as invalid:
        prepared(type="qqqqqqq")
    assert invalid.value.problems[0].detail == "Unknown type."


@each_case("given, priority", [("medium", Priority.NORMAL), *[(p.value, p) for p in Priority]])
def test_request_can_set_the_priority(given: str, priority: Priority) -> None:
    assert prepared(priority=given).notification.priority is priority


@each_case("given", ["", "HIGH", "urgent", "1"])
def test_unknown_priority_is_refused(given: str) -> None:
    assert problems(priority=given) == [("/priority", "unknown_priority")]


@each_case("max_retries", [0, 1, 3, MAX_RETRIES])
def test_max_retries_excludes_the_first_attempt(max_retries: int) -> None:
    assert prepared(max_retries=max_retries).notification.max_attempts == 1 + max_retries


@each_case(
    "user_id, code",
    [(" ", "blank"), ("\t\n", "control_characters"), ("a\x00b", "nul_character"), ("a/b", "slash")],
)
def test_invalid_user_id_is_refused(user_id: str, code: str) -> None:
    assert ("/user_id", code) in problems(
        user_id=user_id, recipient=NotificationRecipientRequest(email="ada@example.com")
    )


@each_case("user_id", ["507f1f77bcf86cd799439011", "$ne", "a.b", "\u00e9", "x" * 128])
def test_any_other_user_id_is_accepted(user_id: str) -> None:
    assert prepared(user_id=user_id, channels=["in_app"]).notification.user_id == user_id


def test_unregistered_recipient_needs_an_address() -> None:
    assert problems(person=None, type="mfa_code", data={"code": "1"}) == [
        ("/recipient", "no_address")
    ]
    assert problems(user_id=None) == [("/recipient", "no_address")]


BOUNCED = ActiveSuppression(reason="hard_bounce", marketing_only=False)
UNSUBSCRIBED = ActiveSuppression(reason="unsubscribed", marketing_only=True)


def test_suppressed_address_is_accepted_and_not_sent_to() -> None:
    new = prepared(suppressed={("email", "ada@example.com"): BOUNCED}).notification
    email, in_app = new.deliveries
    assert (email.status, email.failure_code) == (S.SUPPRESSED, FailureCode.SUPPRESSED)
    assert email.failure_reason == "The address is suppressed: hard bounce."
    assert in_app.status is S.PENDING


@each_case(
    "kind, status",
    [("marketing", S.SUPPRESSED), ("transactional", S.PENDING), ("alert", S.PENDING)],
)
def test_unsubscribed_recipient_gets_no_marketing(kind: str, status: DeliveryStatus) -> None:
    new = prepared(
        type=kind, channels=["email"], suppressed={("email", "ada@example.com"): UNSUBSCRIBED}
    ).notification
    assert new.deliveries[0].status is status


@each_case("key", [("whatsapp", "ada@example.com"), ("email", "eve@example.com"), ("email", "")])
def test_unrelated_suppression_has_no_effect(key: tuple[str, str]) -> None:
    new = prepared(channels=["email"], suppressed={key: BOUNCED}).notification
    assert new.deliveries[0].status is S.PENDING


def test_opted_out_delivery_stays_opted_out() -> None:
    muted = RegisteredRecipient(
        user_id="ada", email="ada@example.com", preferences={"alert": {"muted": True}}
    )
    new = prepared(
        person=muted, channels=["email"], suppressed={("email", "ada@example.com"): BOUNCED}
    ).notification
    assert new.deliveries[0].failure_code is FailureCode.OPTED_OUT


ADAS_PHONE = "+351912345678"


@each_case(
    "given, person, addresses",
    [
        ({}, ADA, [("email", "ada@example.com"), ("whatsapp", ADAS_PHONE), ("sms", ADAS_PHONE)]),
        ({}, None, []),
        ({"email": "x@example.com"}, None, [("email", "x@example.com")]),
        (
            {"email": "x@example.com"},
            ADA,
            [("email", "x@example.com"), ("whatsapp", ADAS_PHONE), ("sms", ADAS_PHONE)],
        ),
        ({"phone": " +351912345678 "}, None, [("whatsapp", ADAS_PHONE), ("sms", ADAS_PHONE)]),
        ({"phone": "+1"}, None, []),
    ],
)
def test_suppressions_are_looked_up_for_the_addresses_in_use(
    given: dict[str, Any], person: RegisteredRecipient | None, addresses: list[tuple[str, str]]
) -> None:
    assert (
        addresses_of(request(recipient=NotificationRecipientRequest(**given)), person) == addresses
    )


def test_international_address_is_looked_up_in_normal_form() -> None:
    """Suppressions hold the normal form."""
    given = NotificationRecipientRequest(email="ada@xn--bcher-kva.example.com")
    normal = "ada@b\u00fccher.example.com"
    new = prepared(
        person=None, channels=["email"], recipient=given, suppressed={("email", normal): BOUNCED}
    ).notification
    assert new.recipient.email == normal
    assert new.deliveries[0].status is S.SUPPRESSED
    assert addresses_of(request(recipient=given), None) == [("email", normal)]


def test_all_problems_of_a_request_are_reported() -> None:
    found = problems(
        user_id=" ",
        recipient=NotificationRecipientRequest(email="x", phone="x", name="\n", timezone="x"),
        channels=["fax"],
        priority="nope",
        content=ContentRequest(subject="\n", body=" ", image_url="x", deep_link="x"),
        scheduled_at="nope",
        ttl=0,
    )
    assert {pointer for pointer, _ in found} == {
        "/recipient/email",
        "/recipient/phone",
        "/recipient/name",
        "/recipient/timezone",
        "/user_id",
        "/scheduled_at",
        "/ttl",
        "/priority",
        "/channels/0",
        "/content/subject",
        "/content/body",
        "/content/image_url",
        "/content/deep_link",
    }


def test_problems_repeat_no_value_of_the_request() -> None:
    with pytest.raises(InvalidRequestError) as invalid:
        prepared(
            recipient=NotificationRecipientRequest(
                email="canary-1", phone="canary-2", timezone="canary-3"
            ),
            channels=["canary-4"],
            priority="canary-5",
            scheduled_at="canary-6",
            content=ContentRequest(template_id="canary-7", image_url="canary-8"),
        )
    assert len(invalid.value.problems) >= 7
    assert not any("canary" in f"{p.pointer}{p.detail}" for p in invalid.value.problems)


def test_preparation_is_deterministic() -> None:
    assert prepared() == prepared()


KNOWN_ADA = replace(ADA, name="Ada", locale="pt")


def resolved(
    person: RegisteredRecipient | None = None, **given: Any
) -> tuple[Recipient, list[tuple[str, str]]]:
    problems = ProblemCollector()
    recipient = resolve_recipient(NotificationRecipientRequest(**given), person, problems)
    return recipient, [(p.pointer, p.code) for p in problems.problems]


def test_registered_recipient_needs_no_fields() -> None:
    recipient, problems = resolved(KNOWN_ADA)
    assert problems == []
    assert recipient == Recipient(
        email="ada@example.com",
        phone="+351912345678",
        name="Ada",
        locale="pt",
        timezone="Europe/Lisbon",
    )


@each_case(
    "field, value",
    [
        ("email", "other@example.com"),
        ("phone", "+14155552671"),
        ("name", "Augusta"),
        ("locale", "en-GB"),
        ("timezone", "Europe/London"),
    ],
)
def test_request_fields_win_over_registered_fields(field: str, value: str) -> None:
    recipient, problems = resolved(KNOWN_ADA, **{field: value})
    assert problems == []
    assert getattr(recipient, field) == value
    others = {"email", "phone", "name", "locale", "timezone"} - {field}
    assert all(getattr(recipient, name) == getattr(KNOWN_ADA, name) for name in others)


def test_unregistered_recipient_has_the_request_fields() -> None:
    recipient, problems = resolved(email="Ada@Example.COM", device_ids=["d1"])
    assert problems == []
    assert recipient == Recipient(email="Ada@example.com", device_ids=("d1",))


def test_empty_recipient_stays_empty() -> None:
    assert resolved() == (Recipient(), [])


def test_device_ids_are_deduplicated() -> None:
    recipient, _ = resolved(device_ids=["b", "a", "b", "c", "a"])
    assert recipient.device_ids == ("b", "a", "c")


@each_case(
    "given, problem",
    [
        ({"email": "nope"}, ("/recipient/email", "invalid_email")),
        ({"email": ""}, ("/recipient/email", "invalid_email")),
        ({"phone": "0912"}, ("/recipient/phone", "invalid_phone")),
        ({"phone": ""}, ("/recipient/phone", "invalid_phone")),
        ({"name": "Ada\r\nBcc: eve@example.com"}, ("/recipient/name", "control_characters")),
        ({"name": "Ada\x00"}, ("/recipient/name", "control_characters")),
        ({"timezone": "Mars/Olympus"}, ("/recipient/timezone", "unknown_timezone")),
        ({"timezone": ""}, ("/recipient/timezone", "unknown_timezone")),
    ],
)
def test_invalid_field_has_a_pointer(given: dict[str, Any], problem: tuple[str, str]) -> None:
    assert resolved(**given)[1] == [problem]
