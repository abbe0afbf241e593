"""The checks find a provider that violates the contract."""

import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from domain.errors import (
    InvalidRecipientError,
    ProviderError,
    ProviderUnavailableError,
    RecipientAction,
    TransientError,
)
from providers.contract import Provider, SendRequest, SendResult
from providers.sendgrid.provider import SendGrid
from tests.providers.contract import checks
from tests.providers.contract.cases import Case
from tests.providers.contract.mail import SENDGRID
from tests.providers.contract.runner import Observation, send
from tests.providers.contract.subjects import Place, Subject
from tests.support.providers.fcm import Project
from tests.support.waiting import SILENT_FOR, ticks

# Not one of its own: whatever configures logging anew switches those off that it does not know.
log = logging.getLogger()
Send = Callable[[SendGrid, SendRequest, float], SendResult]


def broken(how: Send) -> Subject:
    """Return SendGrid with another ``send``."""

    class Broken(SendGrid):
        def send(self, request: SendRequest, *, timeout: float) -> SendResult:
            return how(self, request, timeout)

    def make(place: Place, account: str) -> Provider:
        good: Any = SENDGRID.make(place, account)
        names = ("api_key", "base_url", "sender", "webhook_public_key", "clock")
        return Broken(**{name: getattr(good, name) for name in names})

    return replace(SENDGRID, provider=Broken, make=make)


def as_it_should(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    return SendGrid.send(one, outbound, timeout=timeout)


def again(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    with suppress(TransientError):
        return as_it_should(one, outbound, timeout)
    return as_it_should(one, outbound, timeout)


def blaming(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    try:
        return as_it_should(one, outbound, timeout)
    except ProviderUnavailableError as error:
        raise InvalidRecipientError("No.", action=RecipientAction.SUPPRESS) from error


def sure(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    try:
        return as_it_should(one, outbound, timeout)
    except TransientError as error:
        raise TransientError("It did not go.", code=error.code) from error


def patient(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    watch.is_late = True
    return as_it_should(one, outbound, timeout)


class Watch:
    """A clock that can show a long duration."""

    is_late = False

    def __call__(self) -> float:
        return ticks() + (SILENT_FOR if self.is_late else 0.0)


watch = Watch()


def chatty(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    log.debug("mail to %s", outbound.recipient)
    return as_it_should(one, outbound, timeout)


def indiscreet(one: SendGrid, outbound: SendRequest, timeout: float) -> SendResult:
    try:
        return as_it_should(one, outbound, timeout)
    except ProviderError as error:
        error.reason += f" The key was {one.api_key}."
        raise


def check_all(subject: Subject, case: Case, seen: Observation) -> None:
    checks.check_outcome(subject, case, seen)
    checks.check_once(subject, case, seen)
    checks.check_time(case, seen)
    checks.check_silence(seen)


@pytest.mark.parametrize(
    ("how", "case"),
    [
        (again, Case.BUSY),
        (again, Case.RESET),
        (blaming, Case.NO_CREDENTIALS),
        (sure, Case.HUNG_UP),
        (patient, Case.DRIPPING),
        (chatty, Case.ACCEPTED),
        (indiscreet, Case.REFUSED),
    ],
    ids=lambda value: value.value if isinstance(value, Case) else value.__name__,
)
def test_contract_violation_is_found(how: Send, case: Case, project: Project) -> None:
    check_all(good := broken(as_it_should), case, send(good, case, project))
    bad = broken(how)
    watch.is_late = False
    seen = send(bad, case, project, clock=watch)
    with pytest.raises(AssertionError):
        check_all(bad, case, seen)
