"""Push by FCM: a token of another sender, and whether the device or our project is wrong."""

from datetime import timedelta

import pytest

from notifications.channels import fcm_sender
from notifications.channels.fcm_sender import PROVEN_FOR, STRANGERS, Blame, Sender
from notifications.channels.push_fcm import FCM
from notifications.errors import (
    ChannelUnavailable,
    InvalidRecipient,
    ProviderError,
    RecipientAction,
)
from tests.waiting import LIMIT

from ..unit.building import NOON
from .fcm_project import Project, push

SECOND = timedelta(seconds=1)


def refusal(fcm: FCM, token: str = "wrong-sender-1") -> ProviderError:
    with pytest.raises(ProviderError) as error:
        fcm.send(push(token), timeout=LIMIT)
    return error.value


# What FCM is told, and what a send becomes.


def test_a_project_that_has_taken_nothing_may_be_the_wrong_one(project: Project) -> None:
    error = refusal(project.fcm())
    assert type(error) is ChannelUnavailable
    assert error.scope == fcm_sender.SCOPE, "one device holds up nobody else"
    assert error.answer is not None
    assert (error.answer.status, error.answer.code) == (403, "SENDER_ID_MISMATCH")


def test_a_token_is_suspect_at_a_project_that_takes_others(project: Project) -> None:
    fcm = project.fcm()
    fcm.send(push("device-1"), timeout=LIMIT)
    error = refusal(fcm)
    assert isinstance(error, InvalidRecipient)
    assert error.action is RecipientAction.SUSPECT
    assert error.reason == "Device token belongs to another Firebase project"


def test_so_many_devices_in_a_row_are_no_coincidence(project: Project) -> None:
    fcm = project.fcm()
    fcm.send(push("device-1"), timeout=LIMIT)
    errors = [refusal(fcm, f"wrong-sender-{n}") for n in range(STRANGERS)]
    assert [type(e) for e in errors] == [InvalidRecipient] * (STRANGERS - 1) + [ChannelUnavailable]
    (*_, last) = errors
    assert isinstance(last, ChannelUnavailable)
    assert last.scope is None
    fcm.send(push("device-1"), timeout=LIMIT)
    assert isinstance(refusal(fcm), InvalidRecipient)


@pytest.mark.parametrize("token", ["unregistered-1", "invalid-1", "ratelimit-1", "bad-field-1"])
def test_another_refusal_proves_nothing(project: Project, token: str) -> None:
    fcm = project.fcm()
    refusal(fcm, token)
    assert isinstance(refusal(fcm), ChannelUnavailable)


# What is known of a project.


def test_a_proof_is_good_for_an_hour() -> None:
    assert timedelta(hours=1) == PROVEN_FOR
    sender = Sender()
    sender.accepted(now=NOON)
    assert sender.refused("a", now=NOON + PROVEN_FOR) is Blame.DEVICE
    assert sender.refused("a", now=NOON + PROVEN_FOR + SECOND) is Blame.NOBODY


def test_proofs_may_come_out_of_order() -> None:
    sender = Sender()
    sender.accepted(now=NOON + PROVEN_FOR)
    sender.accepted(now=NOON)
    assert sender.refused("a", now=NOON + 2 * PROVEN_FOR) is Blame.DEVICE


def test_one_device_however_often_is_one() -> None:
    sender = Sender()
    assert {sender.refused("a", now=NOON) for _ in range(10 * STRANGERS)} == {Blame.NOBODY}


def test_without_any_proof_too_so_many_devices_are_no_coincidence() -> None:
    sender = Sender()
    assert STRANGERS == 5
    blames = [sender.refused(str(n), now=NOON) for n in range(STRANGERS + 2)]
    assert blames == [Blame.NOBODY] * (STRANGERS - 1) + [Blame.PROJECT] * 3
    assert sender.refused("0", now=NOON) is Blame.PROJECT
    sender.accepted(now=NOON)
    assert sender.refused("0", now=NOON) is Blame.DEVICE


def test_nothing_of_a_token_is_kept() -> None:
    sender = Sender()
    sender.refused("secret-token", now=NOON)
    assert "secret-token" not in str(vars(sender))
