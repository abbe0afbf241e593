"""The limit of codes by SMS: how many a number gets, whoever asks for them."""

from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from bson import ObjectId

from delivery import pipeline
from delivery.runtime import SendingRuntime
from domain.channels import Channel
from domain.content import Content, Recipient
from domain.states import Category, Priority
from notifications.catalog import limits
from notifications.catalog.limits import CODES, LimitRequest
from notifications.store import acceptance
from notifications.store.new_notifications import NewDelivery
from notifications.validation import InvalidRequestError
from notifyproject.db.collections import collection
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import ScriptedProvider, accepted, provider_error, refused
from tests.support.tables import each_case
from tests.support.threads import at_once

pytestmark = pytest.mark.usefixtures("db", "broker")

ADA, BEN = "+447700900123", "+447700900124"
CODE = {"type": "mfa_code", "priority": Priority.CRITICAL, "category": Category.ALERT}
OTHER_CLIENT = ObjectId("d" * 24)


@pytest.fixture(autouse=True)
def most(settings: Any) -> None:
    settings.SMS_COUNTRIES = ("GB",)
    settings.SMS_CODES_PER_NUMBER = 2


def code(number: str = ADA, *, channel: Channel = Channel.SMS, **fields: Any) -> ObjectId:
    notification = factories.new(
        **{
            **CODE,
            "content": Content(subject="Code", body="Your code is 1."),
            "recipient": Recipient(phone=number, email="ada@example.com"),
            "deliveries": (NewDelivery(channel=channel),),
            **fields,
        }
    )
    acceptance.accept([notification], now=NOON)
    return notification.id


def deliver(*ids: ObjectId, after: int = 0, channel: Channel = Channel.SMS) -> list[str]:
    """Send what is due so many seconds after noon. Return the statuses."""
    at = NOON + timedelta(seconds=after)
    pipeline.dispatch(SendingRuntime(), ids, channel=channel, clock=lambda: at)
    return [state(notification_id)["status"] for notification_id in ids]


def state(notification_id: ObjectId) -> dict[str, Any]:
    (delivery,) = factories.read(notification_id)["delivery"]
    return delivery


def test_number_gets_its_codes_and_no_more_whoever_asks(fcm: ScriptedProvider) -> None:
    first = code(user_id="ada")
    second = code(user_id="another", client_id=OTHER_CLIENT)
    third, other = code(), code(BEN)
    assert deliver(first, second, third, other) == ["sent", "sent", "suppressed", "sent"]
    failed = state(third)
    assert failed["failure_code"] == "over_limit"
    assert failed["failure_reason"] == "2 of 2 in 10 minutes (limit sms_codes:mfa_code)."


def test_codes_go_again_after_ten_minutes(fcm: ScriptedProvider) -> None:
    deliver(code(), code())
    assert deliver(code(), after=599) == ["suppressed"]
    assert deliver(code(), after=600) == ["sent"]


def test_codes_that_are_sent_at_once_are_no_more(fcm: ScriptedProvider) -> None:
    ids = [code() for _ in range(6)]
    at_once(*(partial(deliver, notification_id) for notification_id in ids))
    deliver(*ids, after=10)
    statuses = [state(notification_id)["status"] for notification_id in ids]
    assert (statuses.count("sent"), statuses.count("suppressed")) == (2, 4)


def test_certain_refusal_gives_the_use_back(fcm: ScriptedProvider) -> None:
    fcm.always(refused)
    assert deliver(code(), code()) == ["failed", "failed"]
    fcm.always(accepted)
    assert deliver(code(), code()) == ["sent", "sent"]


def test_codes_that_wait_for_another_try_do_not_drop_a_newer_one(fcm: ScriptedProvider) -> None:
    fcm.always(provider_error)
    older = [code(), code()]
    assert deliver(*older) == ["pending", "pending"]
    fcm.always(accepted)
    assert deliver(code(), code(), after=5) == ["sent", "sent"]
    assert deliver(*older, after=60) == ["suppressed", "suppressed"]


def test_each_type_has_codes_of_its_own(fcm: ScriptedProvider) -> None:
    deliver(code(), code())
    other = [code(type="user_activation") for _ in range(3)]
    assert deliver(*other) == ["sent", "sent", "suppressed"]
    assert deliver(code()) == ["suppressed"]


@each_case(
    "fields",
    [
        {"type": "system_alert", "category": Category.ALERT},
        {"type": "system_alert", "category": Category.ALERT, "priority": Priority.NORMAL},
        {"is_test": True},
    ],
)
def test_messages_without_a_code_and_tests_do_not_count(
    fcm: ScriptedProvider, fields: dict[str, Any]
) -> None:
    ids = [code(BEN, **fields) for _ in range(3)]
    assert "suppressed" not in deliver(*ids)
    assert collection("limit_uses").count_documents({}) == 0


def test_codes_by_another_channel_cost_nothing(fcm: ScriptedProvider) -> None:
    assert not limits.may_apply(Channel.EMAIL)
    ids = [code(channel=Channel.EMAIL) for _ in range(3)]
    assert deliver(*ids, channel=Channel.EMAIL) == ["sent"] * 3


def test_code_that_ignores_limits_is_sent(fcm: ScriptedProvider) -> None:
    deliver(code(), code())
    assert deliver(code(ignores_limits=True)) == ["sent"]


def test_zero_is_no_limit(fcm: ScriptedProvider, settings: Any) -> None:
    settings.SMS_CODES_PER_NUMBER = 0
    assert deliver(*(code() for _ in range(7))) == ["sent"] * 7
    assert not limits.may_apply(Channel.SMS)


def test_no_stored_limit_has_the_name() -> None:
    with pytest.raises(InvalidRequestError, match="reserved"):
        limits.validate_limit(CODES, LimitRequest(max=1, period_seconds=60))
