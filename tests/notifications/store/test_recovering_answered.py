"""A worker lost between its two writes of an outcome: the attempt's record knows it already."""

from dataclasses import replace
from datetime import timedelta

import pytest
from bson import ObjectId

from domain.errors import FailureCode
from domain.retry import GiveUp, RetryAt
from domain.states import AttemptStatus, Channel, DeliveryStatus
from notifications import store
from notifications.store import (
    LEASE,
    ClaimedDelivery,
    ProviderAnswer,
    Settlement,
    TargetAttempt,
    leases,
)
from tests.support.factories import notifications as factories
from tests.support.factories.notifications import NOON, delivery, device, read, settlement, tries
from tests.support.factories.push import deliver, fate, state, tokens
from tests.support.fakes.provider import Scripted, accepted

pytestmark = pytest.mark.usefixtures("db")

EMAIL, PUSH, WHATSAPP, IN_APP = Channel
S = DeliveryStatus
SECOND = timedelta(seconds=1)
OVER = NOON + LEASE


class Killed(BaseException):
    """The process ends here."""


def lose(outcome: Settlement, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lose the worker when it has written the record and not the delivery."""

    def die(*_args: object, **_options: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(leases, "_write", die)
        with pytest.raises(Killed):
            store.settle([outcome], now=outcome.finished_at)


def attempt(one: ClaimedDelivery, **outcomes: AttemptStatus) -> Settlement:
    """Return what became of a push at each device."""
    outcome = settlement(one, S.PENDING, at=NOON + SECOND)
    have = tuple(d for d, status in outcomes.items() if status is AttemptStatus.SENT)
    each = [
        TargetAttempt(
            device_id=device_id,
            status=status,
            finished_at=NOON + SECOND,
            duration_ms=1,
            answer=ProviderAnswer(provider="fcm"),
            code=None if status is AttemptStatus.SENT else FailureCode.PROVIDER_ERROR,
        )
        for device_id, status in outcomes.items()
    ]
    return replace(outcome, target_attempts=tuple(each), accepted_targets=have)


def pushed(**outcomes: AttemptStatus) -> Settlement:
    one = factories.claimed(channel=PUSH)
    begun = factories.start(replace(one, device_ids=tuple(outcomes)), provider="fcm")
    return attempt(begun, **outcomes)


SENT, FAILED = AttemptStatus.SENT, AttemptStatus.FAILED


def test_a_mail_that_the_provider_took_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    one = factories.started()
    lose(settlement(one, S.SENT, at=NOON + SECOND), monkeypatch)
    assert store.expire_leases(now=OVER) == 1
    document = read(one.notification_id)
    rescued = delivery(document)
    assert (rescued["status"], document["status"]) == ("sent", "sent")
    assert (rescued["sent_at"], rescued["provider_message_id"]) == (NOON + SECOND, "sg-1")
    assert (rescued["claim"], rescued["next_attempt_at"]) == (None, None)
    assert (document["error_history"], "due_at" in document) == ([], False)


def test_a_message_in_the_inbox_is_delivered(monkeypatch: pytest.MonkeyPatch) -> None:
    later = NOON + 60 * SECOND
    one = factories.started(channel=IN_APP, at=later, send_at=later)
    lose(settlement(one, S.DELIVERED, at=later), monkeypatch)
    store.expire_leases(now=later + LEASE)
    rescued = delivery(read(one.notification_id), IN_APP)
    assert (rescued["status"], rescued["delivered_at"]) == ("delivered", later)


@pytest.mark.parametrize("status", [S.FAILED, S.PENDING, S.UNKNOWN])
def test_a_mail_that_the_provider_did_not_take_is_in_doubt(
    status: DeliveryStatus, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = factories.started()
    lose(settlement(one, status), monkeypatch)
    store.expire_leases(now=OVER)
    assert delivery(read(one.notification_id))["status"] == "unknown"


def test_a_push_that_all_devices_have_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = pushed(phone=SENT, tablet=SENT)
    lose(outcome, monkeypatch)
    store.expire_leases(now=OVER)
    one = outcome.claimed.notification_id
    assert fate(one) == ("sent", None)
    assert set(state(one)["accepted_targets"]) == {"phone", "tablet"}


def doubtful_push(monkeypatch: pytest.MonkeyPatch) -> tuple[ObjectId, str, str]:
    """Return a push in doubt, the device that has it and the one that has not."""
    phone, tablet = device("phone"), device("tablet")
    outcome = pushed(**{phone: SENT, tablet: FAILED})
    lose(outcome, monkeypatch)
    store.expire_leases(now=OVER)
    return outcome.claimed.notification_id, phone, tablet


def test_a_push_that_some_devices_have_is_in_doubt_and_they_are_known(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, phone, tablet = doubtful_push(monkeypatch)
    assert (fate(one), state(one)["accepted_targets"]) == (("unknown", "worker_lost"), [phone])
    assert tries(one) == {(1, phone): ("sent", None), (1, tablet): ("failed", "provider_error")}


def test_a_doubt_that_nothing_dispels_ends_as_sent_if_one_device_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one, *_ = doubtful_push(monkeypatch)
    later = OVER + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, GiveUp(FailureCode.OUTCOME_UNKNOWN))], now=later)
    assert fate(one) == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_who_has_it_gets_no_second_copy_if_its_type_says_to_send_again(
    monkeypatch: pytest.MonkeyPatch, fcm: Scripted
) -> None:
    one, _, tablet = doubtful_push(monkeypatch)
    later = OVER + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, RetryAt(later))], now=later)
    fcm.always(accepted)
    assert deliver(one, at=later).counts == {"sent": 1}
    assert tokens(fcm) == ["tablet"]
    assert tries(one)[2, tablet] == ("sent", None)


@pytest.mark.usefixtures("broker")
def test_a_device_in_doubt_gets_no_second_copy_if_another_has_it(fcm: Scripted) -> None:
    """The second attempt's worker was lost; the first had reached another device."""
    phone, tablet = device("phone"), device("tablet")
    first = pushed(**{phone: SENT, tablet: FAILED})
    store.settle([first], now=NOON)
    one = first.claimed.notification_id
    at = NOON + timedelta(minutes=6)
    again = factories.claim(one, at=at, channel=PUSH)
    factories.start(replace(again, device_ids=(tablet,)), at=at, provider="fcm")
    store.expire_leases(now=at + LEASE)
    assert fate(one)[0] == "unknown"
    later = at + timedelta(hours=1)
    (doubt,) = store.unknown_outcomes(now=later)
    store.resolve_unknown([(doubt, RetryAt(later))], now=later)
    assert deliver(one, at=later).counts == {"sent": 1}
    assert tokens(fcm) == []
