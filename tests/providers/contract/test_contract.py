"""The contract of :mod:`providers.contract`, kept by every provider."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

import providers as package
from domain.time import utc_now
from providers.contract import NotAttemptedError, SendResult
from tests.providers.contract import checks
from tests.providers.contract.cases import EXPECTED, UNREACHED, Case
from tests.providers.contract.everybody import EVERY, SUBJECTS
from tests.providers.contract.runner import Observation, send
from tests.providers.contract.subjects import Subject
from tests.support.providers.fcm import Project

EVERY_CASE = pytest.mark.parametrize(
    ("subject", "case"),
    [(subject, case) for subject in SUBJECTS for case in Case if case not in subject.never],
    ids=lambda value: value.name if isinstance(value, Subject) else value.value,
)
_SEEN: dict[tuple[str, Case], Observation] = {}


def provider_classes() -> Iterator[Any]:
    """Yield every provider class of the service."""
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            is_own = found.__module__ == module.name and not getattr(found, "_is_protocol", False)
            if is_own and hasattr(found, "send") and hasattr(found, "parse_receipts"):
                yield found


def test_every_provider_is_under_contract() -> None:
    assert {subject.provider for subject in SUBJECTS} == set(provider_classes())


def test_every_case_has_an_expectation() -> None:
    assert EXPECTED.keys() == set(Case) - {Case.ACCEPTED}


@EVERY
def test_impossible_case_has_a_reason(subject: Subject) -> None:
    had = set(Case) - subject.never.keys()
    assert subject.desks.keys() == had - UNREACHED
    assert all(reason.endswith(".") for reason in subject.never.values())


@pytest.fixture
def seen(subject: Subject, case: Case, project: Project) -> Observation:
    """Return the observation of a case, shared by all tests."""
    if (subject.name, case) not in _SEEN:
        _SEEN[subject.name, case] = send(subject, case, project)
    return _SEEN[subject.name, case]


@EVERY_CASE
def test_outcome_is_as_expected(subject: Subject, case: Case, seen: Observation) -> None:
    checks.check_outcome(subject, case, seen)


@EVERY_CASE
def test_message_is_sent_once_and_nowhere_else(
    subject: Subject, case: Case, seen: Observation
) -> None:
    checks.check_once(subject, case, seen)


@EVERY_CASE
def test_time_limit_is_kept(subject: Subject, case: Case, seen: Observation) -> None:
    checks.check_time(case, seen)


@EVERY_CASE
def test_nothing_private_is_logged_or_stored(
    subject: Subject, case: Case, seen: Observation
) -> None:
    checks.check_silence(seen)


@EVERY
def test_request_contains_our_reference(subject: Subject, project: Project) -> None:
    seen = send(subject, Case.ACCEPTED, project)
    assert isinstance(seen.outcome, SendResult)
    assert [subject.outbound.reference.encode() in one for one in seen.received] == (
        [True] * subject.begun.get(Case.ACCEPTED, 1)
    )


@EVERY
def test_expired_message_is_not_sent(subject: Subject, project: Project) -> None:
    late = replace(subject.outbound, expires_at=utc_now())
    seen = send(replace(subject, outbound=late), Case.ACCEPTED, project)
    assert (seen.begun, list(seen.received)) == (0, [])
    assert isinstance(seen.outcome, NotAttemptedError) == bool(subject.begun.get(Case.ACCEPTED, 1))


@EVERY
def test_refusal_keeps_the_providers_response(subject: Subject, project: Project) -> None:
    for case in {Case.BUSY, Case.BAD_RECIPIENT, Case.REFUSED} - subject.never.keys():
        answer = send(subject, case, project).outcome.response
        assert answer is not None
        assert answer.status >= 400
        assert answer.excerpt
