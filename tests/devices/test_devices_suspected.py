"""Tokens that a provider calls malformed: three times in a row, and the device is off."""

import pytest

from devices import status
from devices.models import DeactivationReason
from devices.status import MAX_SUSPICIONS, Evidence
from tests.support.factories.devices import ID, accept, at, device, register, suspect
from tests.support.factories.notifications import NOON

pytestmark = pytest.mark.usefixtures("db")


def test_three_suspicions_in_a_row_switch_a_device_off() -> None:
    register()
    for minute in range(1, MAX_SUSPICIONS):
        assert suspect(began=minute) == 1
        assert (device()["is_active"], device()["suspicions"]) == (True, minute)
    assert "deactivated_at" not in device()
    assert suspect(began=MAX_SUSPICIONS) == 1
    document = device()
    assert (document["is_active"], document["deactivation_reason"]) == (False, "suspect")
    assert document["deactivated_at"] == at(MAX_SUSPICIONS)
    assert document["deactivation_evidence"]["code"] == "INVALID_ARGUMENT"
    assert suspect(began=9) == 0


def test_what_the_provider_accepted_in_between_ends_the_row() -> None:
    register()
    suspect(began=1)
    suspect(began=2)
    accept(answered=3)
    assert device()["suspicions"] == 0
    suspect(began=4)
    assert (device()["is_active"], device()["suspicions"]) == (True, 1)


def test_an_acceptance_from_before_the_suspicion_does_not_end_the_row() -> None:
    register()
    suspect(began=5)
    accept(answered=4)
    assert device()["suspicions"] == 1


def test_a_receipt_does_not_end_the_row() -> None:
    """It may be of an old message, opened long after the token was replaced."""
    register()
    suspect(began=1)
    status.record_success(accepted={}, receipts={ID: at(2)})
    assert device()["suspicions"] == 1


def test_sends_that_began_together_or_earlier_count_once() -> None:
    register()
    assert suspect(began=5) == 1
    assert suspect(began=5) == 0
    assert suspect(began=4) == 0
    assert device()["suspicions"] == 1


def test_suspicions_from_before_the_registration_do_not_count() -> None:
    register(minute=5)
    assert suspect(began=5) == 0
    assert device()["suspicions"] == 0


# Tokens that are another sender's.


def mismatch(*, began: float) -> int:
    evidence = Evidence(at=at(began), source="fcm", code="SENDER_ID_MISMATCH")
    return status.record_suspicion(
        device_ids=[ID],
        reason=DeactivationReason.SENDER_MISMATCH,
        evidence=evidence,
        now=at(began),
    )


def test_a_token_that_is_another_senders_is_off_when_three_sends_in_a_row_say_so() -> None:
    register()
    for minute in (1, 1, 2):
        mismatch(began=minute)
        assert device()["is_active"]
    assert mismatch(began=3) == 1
    assert (device()["is_active"], device()["deactivation_reason"]) == (False, "sender_mismatch")
    assert device()["deactivation_evidence"]["code"] == "SENDER_ID_MISMATCH"
    assert mismatch(began=4) == 0


def test_a_token_that_was_accepted_once_is_no_other_senders() -> None:
    """A token belongs to one project for as long as it lives: the service account is another."""
    register()
    accept(answered=0.5)
    assert [mismatch(began=minute) for minute in range(1, 9)] == [0] * 8
    assert (device()["is_active"], device()["suspicions"]) == (True, 0)


def test_what_is_accepted_after_all_was_never_another_senders() -> None:
    register()
    for minute in (1, 2, 3):
        mismatch(began=minute)
    accept(answered=4)
    assert (device()["is_active"], device()["suspicions"]) == (True, 0)


def test_nobody_is_suspected_of_nothing() -> None:
    evidence = Evidence(at=NOON, source="fcm")
    assert status.record_suspicion(device_ids=[], evidence=evidence, now=NOON) == 0
