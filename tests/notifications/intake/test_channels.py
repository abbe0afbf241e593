"""The choice of channels for a notification."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.channels import Channel
from domain.content import Recipient
from domain.errors import FailureCode
from domain.states import DeliveryStatus
from notifications.catalog.plans import fallback_plan
from notifications.intake.preparation import choose_channels
from notifications.store.new_notifications import NewDelivery
from notifications.validation import ChannelNames, ProblemCollector
from providers import registry
from recipients.models import SuppressionReason
from recipients.queries import ActiveSuppression, RecipientSnapshot, RegisteredRecipient
from tests.support.factories.notifications import SHIPPED, request
from tests.support.tables import each_case

# What locks a type is read from the database when no copy is in memory.
pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = map(Channel, ("email", "push", "whatsapp", "in_app"))
S = DeliveryStatus
TEN_MINUTES = timedelta(minutes=10)
REACHABLE = Recipient(email="ada@example.com", phone="+351912345678", device_ids=("d",), room="ops")


def registered(**preferences: Any) -> RegisteredRecipient:
    return RegisteredRecipient(user_id="ada", preferences=preferences)


def snapshot(known: RegisteredRecipient | None, *suppressed: tuple[str, str]) -> RecipientSnapshot:
    bounced = ActiveSuppression(reason=SuppressionReason.HARD_BOUNCE, marketing_only=False)
    return RecipientSnapshot(
        registered={known.user_id: known} if known else {},
        suppressed=dict.fromkeys(suppressed, bounced),
    )


def choose(
    channels: ChannelNames | None = None,
    *,
    recipient: Recipient = REACHABLE,
    known: RegisteredRecipient | None = None,
    kind: str = "order_shipped",
    user_id: str | None = "ada",
) -> tuple[list[NewDelivery], list[tuple[str, str]]]:
    problems = ProblemCollector()
    deliveries, _ = choose_channels(
        request(type=kind, channels=channels, user_id=user_id),
        type_config=SHIPPED[kind],
        recipient=recipient,
        snapshot=snapshot(known),
        problems=problems,
    )
    return deliveries, [(p.pointer, p.code) for p in problems.problems]


def names(deliveries: list[NewDelivery]) -> list[Channel]:
    return [delivery.channel for delivery in deliveries if delivery.status is S.PENDING]


def test_type_channels_are_the_default() -> None:
    deliveries, problems = choose()
    assert names(deliveries) == [EMAIL, PUSH, IN_APP]
    assert problems == []


def test_recipient_preference_wins_over_the_type() -> None:
    deliveries, _ = choose(known=registered(order_shipped={"channels": ["whatsapp"]}))
    assert names(deliveries) == [WHATSAPP]


def test_preference_for_the_type_wins_over_its_category() -> None:
    known = registered(
        order_shipped={"channels": ["in_app"]}, transactional={"channels": ["whatsapp"]}
    )
    assert names(choose(known=known)[0]) == [IN_APP]
    assert names(choose(known=known, kind="payment_confirmed")[0]) == [WHATSAPP]


def test_requested_channels_win_over_preferences() -> None:
    deliveries, _ = choose(["email"], known=registered(order_shipped={"channels": ["whatsapp"]}))
    assert names(deliveries) == [EMAIL]


def test_requested_order_is_kept() -> None:
    assert names(choose(["in_app", "email", "whatsapp"])[0]) == [IN_APP, EMAIL, WHATSAPP]


@each_case(
    "name, channel", [("in_app", IN_APP), ("in-app", IN_APP), *[(c.value, c) for c in Channel]]
)
def test_channel_is_found_by_its_names(name: str, channel: Channel) -> None:
    assert names(choose([name])[0]) == [channel]


@each_case(
    "recipient, expected",
    [
        (REACHABLE, [EMAIL, PUSH, WHATSAPP, IN_APP]),
        (Recipient(email="ada@example.com"), [EMAIL, PUSH, IN_APP]),
        (Recipient(), [PUSH, IN_APP]),
    ],
)
@each_case("channels", ["all", ["all"]])
def test_all_selects_every_reachable_channel(
    channels: ChannelNames, recipient: Recipient, expected: list[Channel]
) -> None:
    deliveries, problems = choose(channels, recipient=recipient)
    assert names(deliveries) == expected
    assert problems == []
    assert {delivery.channel for delivery in deliveries} == {*Channel} - {Channel.SMS, Channel.ROOM}


def test_all_names_an_optional_channel_only_with_a_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(registry, "is_configured", lambda channel, *, test: not test)
    recipient = Recipient(phone="+351912345678")
    assert names(choose("all", recipient=recipient)[0]) == [PUSH, WHATSAPP, Channel.SMS, IN_APP]
    assert names(choose(["sms"], recipient=recipient)[0]) == [Channel.SMS]


@each_case(
    "channels, problems",
    [
        ([], [("/channels", "no_channel")]),
        (["fax"], [("/channels/0", "unknown_channel")]),
        (["EMAIL"], [("/channels/0", "unknown_channel")]),
        ([""], [("/channels/0", "unknown_channel")]),
        (["email", "all"], [("/channels/1", "unknown_channel")]),
        (["email", "email"], [("/channels/1", "duplicate_channel")]),
        (["in_app", "in-app"], [("/channels/1", "duplicate_channel")]),
        (
            ["telex", "email", "fax", "email"],
            [
                ("/channels/0", "unknown_channel"),
                ("/channels/2", "unknown_channel"),
                ("/channels/3", "duplicate_channel"),
            ],
        ),
    ],
)
def test_invalid_channels_are_problems(
    channels: list[str], problems: list[tuple[str, str]]
) -> None:
    assert choose(channels)[1] == problems


@each_case(
    "channel, user_id, pointer",
    [
        ("email", "ada", "/recipient/email"),
        ("whatsapp", "ada", "/recipient/phone"),
        ("push", None, "/user_id"),
        ("in_app", None, "/user_id"),
    ],
)
def test_requested_channel_needs_an_address(
    channel: str, user_id: str | None, pointer: str
) -> None:
    _, problems = choose([channel], recipient=Recipient(), user_id=user_id)
    assert problems == [(pointer, "no_address")]


def test_missing_user_id_is_reported_once() -> None:
    _, problems = choose(["push", "in_app"], recipient=Recipient(), user_id=None)
    assert problems == [("/user_id", "no_address")]


def test_default_channel_without_an_address_is_skipped() -> None:
    deliveries, problems = choose(recipient=Recipient())
    (email,) = [d for d in deliveries if d.channel is EMAIL]
    assert problems == []
    assert (email.status, email.failure_code) == (S.SUPPRESSED, FailureCode.NO_ADDRESS)
    assert email.failure_reason == "Skipped: No email address."
    assert names(deliveries) == [PUSH, IN_APP]


def test_push_reaches_devices_without_a_user() -> None:
    deliveries, problems = choose(["push"], recipient=Recipient(device_ids=("d",)), user_id=None)
    assert names(deliveries) == [PUSH]
    assert problems == []


@each_case("kind", ["payment_confirmed", "order_shipped", "alert"])
def test_unreachable_recipient_is_a_problem(kind: str) -> None:
    _, problems = choose(kind=kind, recipient=Recipient(), user_id=None)
    assert problems == [("/recipient", "no_address")]


def test_missing_address_is_not_reported_beside_other_problems() -> None:
    _, problems = choose(["fax"], recipient=Recipient(), user_id=None)
    assert problems == [("/channels/0", "unknown_channel")]


@each_case("channels", [None, ["email", "in_app"], ["all"]])
@each_case("name", ["order_shipped", "transactional"])
def test_opted_out_recipient_gets_no_channel(channels: list[str] | None, name: str) -> None:
    deliveries, problems = choose(channels, known=registered(**{name: {"muted": True}}))
    assert problems == []
    assert deliveries
    assert {d.status for d in deliveries} == {S.SUPPRESSED}
    assert {d.failure_code for d in deliveries} == {FailureCode.OPTED_OUT}


def test_muted_category_does_not_affect_others() -> None:
    deliveries, _ = choose(known=registered(marketing={"muted": True}))
    assert names(deliveries) == [EMAIL, PUSH, IN_APP]


def test_preferred_channel_is_used_once() -> None:
    for preferred in (["email", "email"], ["in-app", "email", "in_app"]):
        deliveries, problems = choose(known=registered(order_shipped={"channels": preferred}))
        assert len(names(deliveries)) == len(set(names(deliveries)))
        assert problems == []


def test_stored_preference_for_an_unknown_channel_is_ignored() -> None:
    deliveries, problems = choose(known=registered(order_shipped={"channels": ["fax", "email"]}))
    assert names(deliveries) == [EMAIL]
    assert problems == []


def test_muted_channel_is_skipped_however_it_is_named() -> None:
    known = registered(order_shipped={"muted_channels": ["email"]})
    for channels in (None, ["email", "push"], ["all"]):
        deliveries, problems = choose(channels, known=known)
        suppressed = {d.channel: d.failure_code for d in deliveries if d.status is S.SUPPRESSED}
        assert suppressed == {EMAIL: FailureCode.OPTED_OUT}
        assert PUSH in names(deliveries)
        assert problems == []


def test_muting_every_channel_is_no_problem() -> None:
    known = registered(order_shipped={"muted_channels": ["email", "push", "in_app"]})
    deliveries, problems = choose(known=known)
    assert (names(deliveries), problems) == ([], [])


@each_case("name", ["mfa_code", "transactional"])
def test_critical_types_cannot_be_muted(name: str) -> None:
    known = registered(
        **{name: {"muted": True, "muted_channels": ["email"], "channels": ["email"]}}
    )
    assert names(choose(known=known, kind="mfa_code")[0]) == [EMAIL]


def test_later_step_does_not_wait_for_a_muted_channel() -> None:
    kind = replace(SHIPPED["order_shipped"], plan=fallback_plan(PUSH, after=TEN_MINUTES))
    for muted, step, delay in (([], 2, TEN_MINUTES), (["email"], None, timedelta())):
        deliveries, _ = choose_channels(
            request(type="order_shipped"),
            type_config=kind,
            recipient=REACHABLE,
            snapshot=snapshot(registered(order_shipped={"muted_channels": muted})),
            problems=ProblemCollector(),
        )
        (push,) = [delivery for delivery in deliveries if delivery.channel is PUSH]
        assert (push.status, push.step, push.delay) == (S.PENDING, step, delay)


def test_later_step_does_not_wait_for_a_suppressed_channel() -> None:
    kind = replace(SHIPPED["order_shipped"], plan=fallback_plan(PUSH, after=TEN_MINUTES))
    deliveries, plan = choose_channels(
        request(type="order_shipped"),
        type_config=kind,
        recipient=REACHABLE,
        snapshot=snapshot(None, ("email", "ada@example.com")),
        problems=ProblemCollector(),
    )
    by_channel = {delivery.channel: delivery for delivery in deliveries}
    assert by_channel[EMAIL].failure_code is FailureCode.SUPPRESSED
    push = by_channel[PUSH]
    assert (push.status, push.step, push.delay) == (S.PENDING, None, timedelta())
    assert plan is None
