"""Repeats of a request whose answer was lost: one message, by the same key and bytes."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
import urllib3

from domain.errors import TransientError
from domain.time import utc_now
from notifyproject.platform.event_loop import run
from providers.contract import IdempotentProvider, SendRequest, SendResult
from providers.mail import AttachmentFile
from sandbox.config import Config
from sandbox.server import run_in_thread
from tests.providers.email_apis.brevo import BREVO
from tests.providers.email_apis.cases import EVERY
from tests.providers.email_apis.kinds import REFERENCE, KindCase
from tests.providers.email_apis.resend import RESEND
from tests.support.clients.sandbox import QUICK, Box
from tests.support.factories.notifications import outbound
from tests.support.fakes import socket_server
from tests.support.waiting import LIMIT, SHORT

WINDOWS = {"resend": timedelta(hours=24), "brevo": timedelta(minutes=15)}
FILE = AttachmentFile(filename="bill.pdf", content_type="application/pdf", content=b"%PDF")


def attempt_after(first: SendRequest) -> SendRequest:
    """Return the repeat of an ambiguous attempt, which has a reference of its own."""
    return replace(first, reference=first.reference[:-1] + "2")


@EVERY
def test_window_is_that_of_the_provider(case: KindCase) -> None:
    account = case.account()
    assert isinstance(account, IdempotentProvider) == (case.name in WINDOWS)
    assert getattr(account, "idempotency", None) == WINDOWS.get(case.name)


@EVERY
def test_repeat_has_the_same_bytes_where_the_provider_remembers_keys(case: KindCase) -> None:
    account = case.account()
    first = outbound(reference=REFERENCE, idempotency_key=REFERENCE, attempted_at=utc_now())
    requests = [account.build(r, files=(FILE,)).request for r in (first, attempt_after(first))]
    same = (requests[0].body, requests[0].headers) == (requests[1].body, requests[1].headers)
    assert same == isinstance(account, IdempotentProvider)


@pytest.fixture
def box(tmp_path: Any) -> Iterator[Box]:
    config = Config(data=tmp_path / "sandbox", timings=QUICK)
    with run_in_thread(config) as sandbox, urllib3.PoolManager(retries=False) as http:
        yield Box(sandbox=sandbox, http=http)


def send(box: Box, request: SendRequest, *, timeout: float = LIMIT) -> SendResult:
    account = RESEND.account(options={"api_url": f"{box.sandbox.url}/resend"}, clock=utc_now)
    return run(account.send(request, timeout=timeout))


def test_resend_sends_a_repeat_of_a_lost_answer_once(box: Box) -> None:
    first = outbound(recipient="timeout@example.com", reference=REFERENCE)
    first = replace(first, idempotency_key=REFERENCE)
    with pytest.raises(TransientError) as lost:
        send(box, first, timeout=SHORT)
    assert lost.value.is_ambiguous
    result = send(box, attempt_after(first))
    (accepted,) = box.requests("?accepted=true")
    assert result.provider_id == accepted["message_id"]


def test_resend_refuses_another_content_for_a_key_as_ambiguous(box: Box) -> None:
    first = outbound(reference=REFERENCE, idempotency_key=REFERENCE)
    send(box, first)
    other = replace(first, message=replace(first.message, text="Another text"))
    with pytest.raises(TransientError) as refused:
        send(box, other)
    assert refused.value.is_ambiguous
    assert len(box.requests("?accepted=true")) == 1


def test_repeat_that_brevo_knows_is_accepted_and_not_repeated_again() -> None:
    """Brevo answers it with an error, and ignores it."""
    body = json.dumps({"code": "duplicate_parameter", "message": "used before"}).encode()
    answer = socket_server.response(400, body)
    handler = socket_server.KeepAlive(answer)
    first = outbound(reference=REFERENCE, idempotency_key=REFERENCE)
    with socket_server.serving(handler) as server:
        account = BREVO.account(options={"api_url": server.url}, clock=utc_now)
        with pytest.raises(TransientError) as unsure:
            run(account.send(first, timeout=LIMIT))
        result = run(account.send(attempt_after(first), timeout=LIMIT))
    assert unsure.value.is_ambiguous
    assert (result.provider_id, result.response.code) == (None, "duplicate_parameter")
