"""The conditions of the contract that every send must meet."""

from collections.abc import Sequence
from functools import partial

from domain.errors import ProviderError, TransientError
from providers.contract import SendResult
from tests.providers.contract.cases import EXPECTED, GRACE, SLOW, UNREACHED, Case
from tests.providers.contract.runner import Observation, logged, send
from tests.providers.contract.subjects import PRIVATE, Subject
from tests.support.providers.fcm import Project
from tests.support.threads import at_once
from tests.support.waiting import SHORT


def check_every_case(subject: Subject, project: Project) -> None:
    """Send in all possible cases; those that end only by their time limit wait together."""
    cases = [case for case in Case if case not in subject.never]
    slow = [case for case in cases if case in SLOW]
    with logged():
        observed = (
            at_once(*(partial(send, subject, case, project) for case in slow)) if slow else []
        )
    for case, seen in zip(slow, observed, strict=True):
        check_all(subject, case, seen)
    for case in cases:
        if case not in SLOW:
            check_all(subject, case, send(subject, case, project))


def check_all(subject: Subject, case: Case, seen: Observation) -> None:
    """Check the outcome, the number of sends, the time, and that nothing private leaks."""
    check_outcome(subject, case, seen)
    check_once(subject, case, seen)
    if case in SLOW:
        assert seen.seconds < SHORT + GRACE
    check_no_leak(seen)


def check_outcome(subject: Subject, case: Case, seen: Observation) -> None:
    if case is Case.ACCEPTED:
        assert isinstance(seen.outcome, SendResult), seen.outcome
        assert bool(seen.outcome.provider_id) == subject.gives_id
        return
    expected, error = EXPECTED[case], seen.outcome
    assert type(error) is expected.error, repr(error)
    assert error.code in expected.codes
    assert getattr(error, "is_ambiguous", False) == expected.ambiguous
    if isinstance(error, TransientError):
        assert error.retry_after == (subject.pause if case is Case.TOO_MANY else None)


def check_once(subject: Subject, case: Case, seen: Observation) -> None:
    """Check that the message was sent once, on one connection, and nowhere else."""
    is_unreached = case in UNREACHED or not subject.begun.get(case, 1)
    assert seen.begun == (0 if is_unreached else subject.begun.get(case, 1))
    assert seen.connections <= 1
    assert seen.elsewhere == 0


def check_no_leak(seen: Observation) -> None:
    """Check that logs, representations, and errors contain nothing secret or private."""
    texts = [*seen.log, repr(seen.provider), repr(seen.outcome), repr(seen.outcome.response)]
    if isinstance(seen.outcome, ProviderError):
        texts += [str(seen.outcome), seen.outcome.reason]
    assert leaks(texts, [*PRIVATE, *seen.secrets]) == []


def leaks(texts: Sequence[str], hidden: Sequence[str]) -> list[tuple[str, str]]:
    return [(word, text) for text in texts for word in hidden if word in text]
