"""Which channels a notification takes."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import Channel, DeliveryStatus
from notifications.catalog.types import Fallback
from notifications.intake.preparation import choose_channels
from notifications.store import NewDelivery
from notifications.validation import ProblemCollector
from recipients.queries import RegisteredRecipient
from tests.support.factories.records import SHIPPED, request

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
EVERYTHING = Recipient(email="ada@example.com", phone="+351912345678", device_ids=("d",))


def person(**preferences: Any) -> RegisteredRecipient:
    return RegisteredRecipient(user_id="ada", preferences=preferences)


def chosen(
    channels: list[str] | None = None,
    *,
    recipient: Recipient = EVERYTHING,
    known: RegisteredRecipient | None = None,
    kind: str = "order_shipped",
    user_id: str | None = "ada",
) -> tuple[list[NewDelivery], list[tuple[str, str]]]:
    problems = ProblemCollector()
    deliveries = choose_channels(
        request(type=kind, channels=channels, user_id=user_id),
        type_config=SHIPPED[kind],
        recipient=recipient,
        registered=known,
        problems=problems,
    )
    return deliveries, [(p.pointer, p.code) for p in problems.problems]


def names(deliveries: list[NewDelivery]) -> list[Channel]:
    return [delivery.channel for delivery in deliveries if delivery.status is S.PENDING]


def test_the_type_names_the_channels_when_nobody_else_does() -> None:
    deliveries, problems = chosen()
    assert names(deliveries) == [EMAIL, PUSH, IN_APP]
    assert problems == []


def test_the_person_goes_before_the_type() -> None:
    deliveries, _ = chosen(known=person(order_shipped={"channels": ["whatsapp"]}))
    assert names(deliveries) == [WHATSAPP]


def test_a_preference_for_the_type_goes_before_one_for_its_category() -> None:
    known = person(order_shipped={"channels": ["in_app"]}, transactional={"channels": ["whatsapp"]})
    assert names(chosen(known=known)[0]) == [IN_APP]
    assert names(chosen(known=known, kind="payment_confirmed")[0]) == [WHATSAPP]


def test_the_caller_goes_before_the_person() -> None:
    deliveries, _ = chosen(["email"], known=person(order_shipped={"channels": ["whatsapp"]}))
    assert names(deliveries) == [EMAIL]


def test_the_callers_order_is_kept() -> None:
    assert names(chosen(["in_app", "email", "whatsapp"])[0]) == [IN_APP, EMAIL, WHATSAPP]


@pytest.mark.parametrize(
    ("name", "channel"),
    [("in_app", IN_APP), ("in-app", IN_APP), *[(c.value, c) for c in Channel]],
)
def test_a_channel_is_known_by_its_names(name: str, channel: Channel) -> None:
    assert names(chosen([name])[0]) == [channel]


@pytest.mark.parametrize(
    ("recipient", "expected"),
    [
        (EVERYTHING, [EMAIL, PUSH, WHATSAPP, IN_APP]),
        (Recipient(email="ada@example.com"), [EMAIL, PUSH, IN_APP]),
        (Recipient(), [PUSH, IN_APP]),
    ],
)
def test_all_means_every_channel_there_is_a_way_on(
    recipient: Recipient, expected: list[Channel]
) -> None:
    deliveries, problems = chosen(["all"], recipient=recipient)
    assert names(deliveries) == expected
    assert problems == []
    assert len(deliveries) == len(Channel)


@pytest.mark.parametrize(
    ("channels", "problems"),
    [
        ([], [("/channels", "no_channel")]),
        (["sms"], [("/channels/0", "unknown_channel")]),
        (["EMAIL"], [("/channels/0", "unknown_channel")]),
        ([""], [("/channels/0", "unknown_channel")]),
        (["email", "all"], [("/channels/1", "unknown_channel")]),
        (["email", "email"], [("/channels/1", "duplicate_channel")]),
        (["in_app", "in-app"], [("/channels/1", "duplicate_channel")]),
        (
            ["sms", "email", "fax", "email"],
            [
                ("/channels/0", "unknown_channel"),
                ("/channels/2", "unknown_channel"),
                ("/channels/3", "duplicate_channel"),
            ],
        ),
    ],
)
def test_channels_that_cannot_be_are_problems(
    channels: list[str], problems: list[tuple[str, str]]
) -> None:
    assert chosen(channels)[1] == problems


@pytest.mark.parametrize(
    ("channel", "user_id", "pointer"),
    [
        ("email", "ada", "/recipient/email"),
        ("whatsapp", "ada", "/recipient/phone"),
        ("push", None, "/user_id"),
        ("in_app", None, "/user_id"),
    ],
)
def test_a_channel_the_caller_names_needs_a_way(
    channel: str, user_id: str | None, pointer: str
) -> None:
    _, problems = chosen([channel], recipient=Recipient(), user_id=user_id)
    assert problems == [(pointer, "no_address")]


def test_one_missing_way_is_told_once() -> None:
    _, problems = chosen(["push", "in_app"], recipient=Recipient(), user_id=None)
    assert problems == [("/user_id", "no_address")]


def test_a_channel_nobody_named_is_skipped_with_the_reason() -> None:
    deliveries, problems = chosen(recipient=Recipient())
    (email,) = [d for d in deliveries if d.channel is EMAIL]
    assert problems == []
    assert (email.status, email.failure_code) == (S.SUPPRESSED, FailureCode.NO_ADDRESS)
    assert email.failure_reason == "Skipped: No email address."
    assert names(deliveries) == [PUSH, IN_APP]


def test_push_reaches_devices_without_a_user() -> None:
    deliveries, problems = chosen(["push"], recipient=Recipient(device_ids=("d",)), user_id=None)
    assert names(deliveries) == [PUSH]
    assert problems == []


@pytest.mark.parametrize("kind", ["payment_confirmed", "order_shipped", "alert"])
def test_somebody_nothing_reaches_is_a_problem(kind: str) -> None:
    _, problems = chosen(kind=kind, recipient=Recipient(), user_id=None)
    assert problems == [("/recipient", "no_address")]


def test_no_way_at_all_is_not_told_on_top_of_other_problems() -> None:
    _, problems = chosen(["sms"], recipient=Recipient(), user_id=None)
    assert problems == [("/channels/0", "unknown_channel")]


@pytest.mark.parametrize("channels", [None, ["email", "in_app"], ["all"]])
@pytest.mark.parametrize("name", ["order_shipped", "transactional"])
def test_who_does_not_want_it_gets_it_on_no_channel(channels: list[str] | None, name: str) -> None:
    deliveries, problems = chosen(channels, known=person(**{name: {"muted": True}}))
    assert problems == []
    assert deliveries
    assert {d.status for d in deliveries} == {S.SUPPRESSED}
    assert {d.failure_code for d in deliveries} == {FailureCode.OPTED_OUT}


def test_a_muted_category_says_nothing_about_others() -> None:
    deliveries, _ = chosen(known=person(marketing={"muted": True}))
    assert names(deliveries) == [EMAIL, PUSH, IN_APP]


def test_a_channel_that_a_person_chose_twice_is_taken_once() -> None:
    for chosen_twice in (["email", "email"], ["in-app", "email", "in_app"]):
        deliveries, problems = chosen(known=person(order_shipped={"channels": chosen_twice}))
        assert len(names(deliveries)) == len(set(names(deliveries)))
        assert problems == []


@pytest.mark.parametrize("stored", [True, "email", 7, ["muted"], {"channels": "email"}, {"x": 1}])
def test_a_stored_preference_that_is_none_is_passed_over(stored: Any) -> None:
    deliveries, problems = chosen(known=person(order_shipped=stored))
    assert names(deliveries) == [EMAIL, PUSH, IN_APP]
    assert problems == []


def test_a_stored_preference_for_a_channel_that_is_no_more_does_not_fail_the_request() -> None:
    deliveries, problems = chosen(known=person(order_shipped={"channels": ["sms", "email"]}))
    assert names(deliveries) == [EMAIL]
    assert problems == []


# What the person does not want.


def suppressed(deliveries: list[NewDelivery]) -> dict[Channel, FailureCode | None]:
    return {d.channel: d.failure_code for d in deliveries if d.status is S.SUPPRESSED}


def test_a_muted_channel_is_passed_over_whoever_names_it() -> None:
    known = person(order_shipped={"muted_channels": ["email"]})
    for channels in (None, ["email", "push"], ["all"]):
        deliveries, problems = chosen(channels, known=known)
        assert suppressed(deliveries) == {EMAIL: FailureCode.OPTED_OUT}
        assert PUSH in names(deliveries)
        assert problems == []


def test_muting_every_channel_is_no_problem_of_the_caller() -> None:
    known = person(order_shipped={"muted_channels": ["email", "push", "in_app"]})
    deliveries, problems = chosen(known=known)
    assert (names(deliveries), problems) == ([], [])


@pytest.mark.parametrize("name", ["mfa_code", "transactional"])
def test_nobody_mutes_what_is_critical(name: str) -> None:
    known = person(**{name: {"muted": True, "muted_channels": ["email"], "channels": ["email"]}})
    assert names(chosen(known=known, kind="mfa_code")[0]) == [EMAIL]


def test_a_stand_in_does_not_wait_for_a_channel_that_is_muted() -> None:
    kind = replace(
        SHIPPED["order_shipped"], fallback=Fallback(channel=PUSH, after=timedelta(minutes=10))
    )
    for muted, instead_of in (([], EMAIL), (["email"], None)):
        deliveries = choose_channels(
            request(type="order_shipped"),
            type_config=kind,
            recipient=EVERYTHING,
            registered=person(order_shipped={"muted_channels": muted}),
            problems=ProblemCollector(),
        )
        (push,) = [one for one in deliveries if one.channel is PUSH]
        assert (push.status, push.fallback_for) == (S.PENDING, instead_of)
