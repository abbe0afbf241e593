"""Several providers in an order: who is asked after a wait, and after a doubt."""

from datetime import timedelta

import pytest
from bson import ObjectId

from delivery import circuit_breaker, sweeper
from delivery.circuit_breaker import FIRST_WAIT
from domain.states import Channel
from notifications import store
from tests.support.factories import notifications as factories
from tests.support.factories.mail import Mail, deliver, fate, history, mails
from tests.support.factories.notifications import NOON
from tests.support.fakes.provider import accepted as taken
from tests.support.fakes.provider import refused, silent, unavailable, unreachable

pytestmark = pytest.mark.usefixtures("db", "broker")

MINUTE = timedelta(minutes=1)
AFTER = NOON + FIRST_WAIT
"""When a circuit that opened at noon wants a probe."""
LATER = NOON + 10 * MINUTE
"""When no report has come of a send without an answer."""


def test_what_has_waited_begins_with_the_first_again(mail: Mail) -> None:
    """Nobody could take it; then both can."""
    first, second = mail
    circuit_breaker.trip(second.account, now=NOON, retry_after=None)
    first.always(unavailable)
    (one,) = mails(1)
    deliver(one)
    assert fate(one) == ("pending", "channel_unavailable")
    first.always(taken)
    deliver(one, at=NOON + MINUTE)
    assert (history(one)[-1], second.seen) == (("sendgrid", "sent"), [])


def test_what_was_held_back_on_its_way_to_the_second_begins_with_the_first_again(
    mail: Mail,
) -> None:
    first, second = mail
    first.always(unreachable)
    (one,) = mails(1)
    deliver(one)
    for provider in mail:
        circuit_breaker.trip(provider.account, now=NOON, retry_after=None)
    assert deliver(one).counts == {"pending": 1}
    first.always(taken)
    deliver(one, at=AFTER)
    assert (history(one)[-1], second.seen) == (("sendgrid", "sent"), [])


def in_doubt_at_the_second(mail: Mail, *, lost: bool = False) -> ObjectId:
    """Return a mail that the second may have taken, as the first was away, and that goes again."""
    first, second = mail
    circuit_breaker.trip(first.account, now=NOON, retry_after=None)
    second.always(silent)
    (one,) = mails(1)
    if lost:
        begun = factories.start(factories.claim(one), provider="smtp")
        store.expire_leases(now=begun.lease_until)
    else:
        deliver(one)
    assert fate(one)[0] == "unknown"
    assert sweeper.resolve_unknown(now=LATER) == 1
    assert fate(one)[0] == "pending"
    return one


@pytest.mark.parametrize("lost", [False, True], ids=["no answer", "the worker was lost"])
def test_what_the_second_may_have_taken_is_never_given_to_the_first(mail: Mail, lost: bool) -> None:
    first, second = mail
    one = in_doubt_at_the_second(mail, lost=lost)
    second.always(unreachable)
    deliver(one, at=LATER)
    assert fate(one) == ("pending", "connection_failed")
    second.always(taken)
    deliver(one, at=LATER + 13 * MINUTE)
    assert (history(one)[-1], first.seen) == (("smtp", "sent"), [])


def test_what_an_operator_opens_again_goes_to_the_first_that_takes_it(mail: Mail) -> None:
    first, second = mail
    one = in_doubt_at_the_second(mail)
    second.always(refused)
    deliver(one, at=LATER)
    assert fate(one) == ("failed", "rejected")
    store.reopen(notification_id=one, channels=[Channel.EMAIL], extra_attempts=1, now=LATER)
    deliver(one, at=LATER)
    assert (history(one)[-1], len(first.seen)) == (("sendgrid", "sent"), 1)
