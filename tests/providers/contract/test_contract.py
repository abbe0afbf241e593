"""The contract of :mod:`providers.contract`, kept by every provider."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

import providers as package
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers.contract import (
    InvalidSignatureError,
    NotAttemptedError,
    SendResult,
    WebhookProvider,
)
from providers.discovery import SPECS
from tests.providers.contract import checks
from tests.providers.contract.cases import LONG, Case
from tests.providers.contract.checks import leaks
from tests.providers.contract.providers import EVERY, SUBJECTS
from tests.providers.contract.runner import FIRST, SECOND, send
from tests.providers.contract.subjects import PRIVATE, REFERENCE, Place, Reports, Subject
from tests.support.fakes import socket_server
from tests.support.providers.fcm import Project
from tests.support.providers.webhook_requests import receipts_of
from tests.support.tables import each_case

pytestmark = pytest.mark.usefixtures("opened")


def provider_classes() -> Iterator[Any]:
    for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            is_own = found.__module__ == module.name and not getattr(found, "_is_protocol", False)
            if is_own and hasattr(found, "send") and hasattr(found, "account"):
                yield found


def test_every_provider_is_under_contract() -> None:
    assert {subject.provider for subject in SUBJECTS} == set(provider_classes())


@EVERY
def test_contract_is_kept(subject: Subject, project: Project) -> None:
    checks.check_every_case(subject, project)


@EVERY
def test_request_contains_our_reference(subject: Subject, project: Project) -> None:
    seen = send(subject, Case.ACCEPTED, project)
    assert isinstance(seen.outcome, SendResult)
    reference = subject.spelled(subject.outbound.reference).encode()
    assert [reference in request for request in seen.received] == (
        [not subject.is_encrypted] * subject.begun.get(Case.ACCEPTED, 1)
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
        # Slack's Web API refuses with the status of success, and a code.
        assert answer.status >= 400 or answer.code
        assert answer.excerpt


THREADS, MESSAGES = 8, 40
WITH_WEBHOOKS = [(subject, subject.reports) for subject in SUBJECTS if subject.reports]
WEBHOOKS = pytest.mark.parametrize(
    ("subject", "reports"), WITH_WEBHOOKS, ids=[subject.name for subject, _ in WITH_WEBHOOKS]
)


@pytest.fixture
def nowhere(project: Project) -> Place:
    return Place(host="127.0.0.1", port=1, project=project)


@EVERY
def test_account_has_one_name(subject: Subject, nowhere: Place) -> None:
    first, again = (subject.make(nowhere, FIRST) for _ in range(2))
    assert first.account == again.account == first.account
    assert first.account.startswith(first.name)
    assert first.name == first.name.lower()


@EVERY
def test_other_account_has_another_name(subject: Subject, nowhere: Place) -> None:
    accounts = {subject.make(nowhere, name).account for name in (FIRST, SECOND)}
    assert len(accounts) == (2 if subject.has_accounts else 1)


@EVERY
def test_account_name_contains_no_secret(subject: Subject, nowhere: Place) -> None:
    provider = subject.make(nowhere, FIRST)
    shown = [provider.account, provider.name, repr(provider), str(provider)]
    assert leaks(shown, [*PRIVATE, *subject.secrets(nowhere)]) == []


@EVERY
def test_threads_share_a_provider(subject: Subject, project: Project) -> None:
    handler = subject.servers[Case.ACCEPTED]("")
    outbounds = [
        replace(subject.outbound, reference=f"{number:024x}.email.1") for number in range(MESSAGES)
    ]
    with socket_server.serving(handler) as running, ThreadPoolExecutor(THREADS) as pool:
        provider = subject.make(Place(host="127.0.0.1", port=running.port, project=project), FIRST)
        results = list(pool.map(lambda item: run(provider.send(item, timeout=LONG)), outbounds))
    assert all(isinstance(result, SendResult) for result in results)
    handed_over = MESSAGES * subject.begun.get(Case.ACCEPTED, 1)
    assert handler.begun == handed_over
    if not subject.is_encrypted:
        spelled = [subject.spelled(item.reference).encode() for item in outbounds]
        found = [one for one in spelled if any(one in request for request in handler.received)]
        assert len(found) == handed_over
    assert running.connections <= THREADS


def forged(reports: Reports) -> Iterator[tuple[str, dict[str, str], bytes]]:
    raw = reports.body(REFERENCE)
    genuine = dict(reports.sign(raw, True))
    yield "somebody else's signature", dict(reports.sign(raw, False)), raw
    yield "no header", {}, raw
    if reports.signs_body:
        yield "another body", genuine, raw.replace(b"delivered", b"bounced")
    if reports.signs_body and not reports.is_envelope:
        yield "a body that is longer", genuine, raw + b" "
    yield "no body", genuine, b""
    yield "a body that is no text", genuine, b"\xff" + raw
    for name in genuine:
        yield f"no {name}", {k: v for k, v in genuine.items() if k != name}, raw
        for value in ("", "0", "x" * 10_000, "\u00e9\u2028", genuine[name][:-1], "sha256="):
            yield f"{name}: {value[:10]}", {**genuine, name: value}, raw


@WEBHOOKS
def test_signed_webhook_has_its_reference(
    subject: Subject, reports: Reports, nowhere: Place
) -> None:
    raw = reports.body(REFERENCE)
    provider, url = subject.make(nowhere, FIRST), reports.url(REFERENCE)
    (receipt,) = receipts_of(provider, reports.sign(raw, True), raw, url=url)
    assert receipt.reference == REFERENCE
    assert receipt.event_id


@WEBHOOKS
def test_unsigned_webhook_is_refused(subject: Subject, reports: Reports, nowhere: Place) -> None:
    provider, accepted = subject.make(nowhere, FIRST), list[str]()
    for why, headers, raw in forged(reports):
        with suppress(InvalidSignatureError, ValueError):
            receipts_of(provider, headers, raw, url=reports.url(REFERENCE))
            accepted.append(why)
    assert accepted == []


@WEBHOOKS
@each_case("raw", [b"", b"{", b"null", b"7", b'"x"', b"[" * 10_000, b"\xff"])
def test_signed_nonsense_is_refused_without_a_crash(
    subject: Subject, reports: Reports, nowhere: Place, raw: bytes
) -> None:
    with pytest.raises((InvalidSignatureError, ValueError)):
        receipts_of(
            subject.make(nowhere, FIRST),
            reports.sign(raw, True),
            raw,
            url=reports.url(REFERENCE),
        )


@each_case("subject", SUBJECTS)
def test_provider_with_a_webhook_has_reports(subject: Subject, nowhere: Place) -> None:
    found = subject.make(nowhere, FIRST)
    has_webhook = SPECS[found.name].webhook is not None
    assert isinstance(found, WebhookProvider) == has_webhook == bool(subject.reports)
