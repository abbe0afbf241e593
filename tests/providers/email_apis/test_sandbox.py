"""Each kind against the sandbox: every outcome, and every event."""

import re
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest
import urllib3

from domain.errors import (
    InvalidRecipientError,
    PermanentError,
    ProviderError,
    ProviderUnavailableError,
    TransientError,
)
from notifyproject.platform.event_loop import run
from providers import email_spec
from providers.contract import AddressEffect, Message, Receipt, ReceiptKind, SendResult
from providers.email_api import EmailApi
from providers.mail import AttachmentFile
from sandbox.assembly import MAIL_APIS, Sandbox
from sandbox.config import Config
from sandbox.outcomes import Outcome
from sandbox.server import run_in_thread
from tests.providers.email_apis.cases import KINDS
from tests.providers.email_apis.kinds import SENDER, KindCase
from tests.support.clients.sandbox import QUICK, SEPARATE_REPORTS, Box, Receiver, receiving
from tests.support.factories.notifications import outbound
from tests.support.providers.webhook_requests import webhook_request
from tests.support.waiting import LIMIT, SHORT, until

K, E = ReceiptKind, AddressEffect
AMBIGUOUS = {
    *("timeout", "timeout-lost", "reset", "truncated", "empty", "not-json"),
    "failed-later",
}
LATER = {"ratelimit", "ratelimit-once", "server-error", "flaky", "unavailable", "bad-gateway"}
"""Refused for now, by every kind."""
OWN: Mapping[str, Mapping[str, type[ProviderError]]] = {
    "postmark": {
        "maintenance": TransientError,
        "inactive": PermanentError,
        "invalid": InvalidRecipientError,
        "invalid-message": PermanentError,
        "too-large": PermanentError,
        **dict.fromkeys(
            ("invalid-sender", "no-credits", "pending", "firewall"), ProviderUnavailableError
        ),
    },
    "resend": {
        "concurrent": TransientError,
        "invalid": InvalidRecipientError,
        "invalid-message": PermanentError,
        "too-large": PermanentError,
        **dict.fromkeys(
            ("invalid-sender", "unverified", "test-recipients", "quota"), ProviderUnavailableError
        ),
    },
    "mailgun": {
        "limit": TransientError,
        "invalid": InvalidRecipientError,
        "invalid-message": PermanentError,
        "too-large": PermanentError,
        **dict.fromkeys(
            ("invalid-sender", "sandbox-domain", "unverified", "unpaid"), ProviderUnavailableError
        ),
    },
}
SENT = (K.SENT, None)
EVENTS: Mapping[str, Mapping[str, list[tuple[ReceiptKind, AddressEffect | None]]]] = {
    "postmark": {
        "bounce": [(K.BOUNCED, E.HARD_BOUNCE)],
        "soft-bounce": [(K.BOUNCED, E.SOFT_BOUNCE)],
        "transient": [(K.DEFERRED, None), (K.DELIVERED, None)],
        "blocked": [(K.BLOCKED, None)],
        "new-type": [(K.BOUNCED, E.SOFT_BOUNCE)],
        "auto-reply": [(K.DELIVERED, None)],
        "spam": [(K.DELIVERED, None), (K.COMPLAINED, E.COMPLAINT)],
        "unsubscribed": [(K.DELIVERED, None), (K.UNSUBSCRIBED, E.UNSUBSCRIBED)],
    },
    "resend": {
        "bounce": [SENT, (K.BOUNCED, E.HARD_BOUNCE)],
        "soft-bounce": [SENT, (K.BOUNCED, E.SOFT_BOUNCE)],
        "content-bounce": [SENT, (K.BLOCKED, None)],
        "new-type": [SENT, (K.BOUNCED, E.SOFT_BOUNCE)],
        "delayed": [SENT, (K.DEFERRED, None), (K.DELIVERED, None)],
        "suppressed": [(K.REJECTED, E.HARD_BOUNCE)],
        "spam": [SENT, (K.DELIVERED, None), (K.COMPLAINED, E.COMPLAINT)],
    },
    "mailgun": {
        "bounce": [(K.BOUNCED, E.HARD_BOUNCE)],
        "full": [(K.BOUNCED, E.SOFT_BOUNCE)],
        "refused-sender": [(K.BLOCKED, None)],
        "transient": [(K.DEFERRED, None), (K.DELIVERED, None)],
        "old": [(K.FAILED, None)],
        "suppressed": [(K.REJECTED, E.HARD_BOUNCE)],
        "rejected": [(K.REJECTED, None)],
        "spam": [(K.DELIVERED, None), (K.COMPLAINED, E.COMPLAINT)],
        "unsubscribed": [(K.DELIVERED, None), (K.UNSUBSCRIBED, E.UNSUBSCRIBED)],
    },
}
DELIVERED: Mapping[str, list[tuple[ReceiptKind, AddressEffect | None]]] = {
    "resend": [SENT, (K.DELIVERED, None)],
}
"""What the events of an accepted mail mean, if they aren't just a delivery."""
OUTCOMES = {api.name: api.outcomes for api, _ in MAIL_APIS}
ALL = [
    pytest.param(case, outcome, id=f"{case.name}-{outcome.name}")
    for case in KINDS
    if case.name in OUTCOMES
    for outcome in OUTCOMES[case.name].table
]
IN_SANDBOX = pytest.mark.parametrize(
    "case", [case for case in KINDS if case.name in OUTCOMES], ids=lambda case: case.name
)


@dataclass(frozen=True, kw_only=True)
class Running:
    """The sandbox, and what its webhooks call."""

    sandbox: Sandbox
    receiver: Receiver
    box: Box

    def account(self, case: KindCase, **options: str) -> EmailApi:
        mail = self.sandbox.mail
        secrets = {"password": mail.webhook_secret, "signing_key": signing_key(case, self.sandbox)}
        return email_spec.provider_of(
            case.name,
            kind=case.name,
            options={
                **case.options,
                "api_url": f"{self.sandbox.url}/{case.name}{case.api_path}",
                **options,
            },
            secrets={name: secrets[name] for name in case.secrets},
            mail={"sender": SENDER},
        )

    def receipts(self, case: KindCase, reference: str) -> list[Receipt]:
        account, found = self.account(case), list[Receipt]()
        for post in self.receiver.posts:
            headers = {name.lower(): value for name, value in post.headers.items()}
            if post.path.endswith(f"/{case.name}") and reference.encode() in post.raw:
                found += account.parse_webhook(webhook_request(post.raw, headers)).receipts
        return found


def signing_key(case: KindCase, sandbox: Sandbox) -> str:
    return getattr(sandbox.mail, f"{case.name}_signing_{case.key_word}", "")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with receiving() as receiver, urllib3.PoolManager(retries=False) as http:
        config = Config(
            data=tmp_path_factory.mktemp("sandbox"),
            mail_webhooks_url=receiver.url,
            timings=SEPARATE_REPORTS,
        )
        with run_in_thread(config) as sandbox:
            box = Box(sandbox=sandbox, http=http)
            yield Running(sandbox=sandbox, receiver=receiver, box=box)


def new_reference() -> str:
    return f"{uuid.uuid4().hex[:24]}.email.1"


def attempt(account: EmailApi, *, timeout: float = LIMIT, **fields: Any) -> Any:
    try:
        return run(account.send(outbound(**fields), timeout=timeout))
    except ProviderError as error:
        return error


def expected(case: KindCase, outcome: Outcome) -> type[ProviderError] | None:
    if outcome.name in AMBIGUOUS | LATER:
        return TransientError
    own = OWN[case.name] | {"redirect": ProviderUnavailableError}
    return None if outcome.accepted else own[outcome.name]


@pytest.mark.parametrize(("case", "outcome"), ALL)
def test_each_outcome_has_its_class(case: KindCase, outcome: Outcome, running: Running) -> None:
    is_silent = outcome.name.startswith("timeout")
    reference = new_reference()
    result = attempt(
        running.account(case),
        timeout=SHORT if is_silent else LIMIT,
        recipient=f"{outcome.name}@example.com",
        reference=reference,
    )
    error = expected(case, outcome)
    if error is None:
        assert isinstance(result, SendResult), result
        assert result.provider_id
    else:
        assert type(result) is error, result
        assert getattr(result, "is_ambiguous", False) == (outcome.name in AMBIGUOUS)
    if outcome.name in ("ratelimit", "ratelimit-once"):
        assert result.retry_after == QUICK.rate_limit
    if outcome.accepted and outcome.steps and not outcome.has_late_events:
        wanted = EVENTS[case.name].get(
            outcome.name, DELIVERED.get(case.name, [(K.DELIVERED, None)])
        )
        until(lambda: len(running.receipts(case, reference)) >= len(wanted))
        found = running.receipts(case, reference)
        assert [(receipt.kind, receipt.address_effect) for receipt in found] == wanted
        ids = {receipt.provider_id for receipt in found}
        assert error is not None or ids == {result.provider_id}


@IN_SANDBOX
def test_every_kind_of_event_can_be_asked_for(case: KindCase, running: Running) -> None:
    reference = new_reference()
    attempt(running.account(case), recipient="no-events@example.com", reference=reference)
    kinds = next(api.event_kinds for api, _ in MAIL_APIS if api.name == case.name)
    for kind in sorted(kinds):
        running.box.control("POST", "/events", {"reference": reference, "kind": kind})
    sent = re.escape(reference).encode()
    until(lambda: sum(bool(re.search(sent, p.raw)) for p in running.receiver.posts) >= len(kinds))
    for post in running.receiver.posts:
        headers = {name.lower(): value for name, value in post.headers.items()}
        if post.path.endswith(f"/{case.name}"):
            running.account(case).parse_webhook(webhook_request(post.raw, headers))


@IN_SANDBOX
def test_outbox_shows_a_mail_with_all_its_parts(case: KindCase, running: Running) -> None:
    reference = new_reference()
    file = AttachmentFile(filename="bill.pdf", content_type="application/pdf", content=b"%PDF")
    message = Message(
        subject="Zażółć",
        text="Your bill",
        html="<p>Bill</p>",
        unsubscribe_url="https://notify.example.com/u/x",
        reply_to="help@example.com",
    )
    account = running.account(case)
    request = outbound(
        reference=reference, recipient="ada@example.com", recipient_name='"A", B', message=message
    )
    built = account.build(request, files=(file,)).request
    with urllib3.PoolManager(retries=False) as http:
        answer = http.request("POST", built.url, body=built.body, headers=dict(built.headers))
    assert answer.status == case.success, answer.data
    (shown,) = running.box.control("GET", f"/messages?reference={reference}")["results"]
    assert (shown["subject"], shown["text"]) == ("Zażółć", "Your bill")
    assert (shown["html"], shown["to"]) == ("<p>Bill</p>", ["ada@example.com"])
    assert "Shop, Inc." in shown["from"]
    headers = {name.lower(): value for name, value in shown["headers"].items()}
    assert headers["reply-to"] == "help@example.com"
    assert headers["list-unsubscribe"] == "<https://notify.example.com/u/x>"
    (attachment,) = shown["attachments"]
    assert (attachment["name"], attachment["size"]) == ("bill.pdf", 4)


@IN_SANDBOX
def test_wrong_key_is_refused_and_logged_nowhere(case: KindCase, running: Running) -> None:
    account = running.account(case, **{case.credential: case.refused_key})
    assert type(attempt(account)) is ProviderUnavailableError
    log = "".join(path.read_text() for path in running.sandbox.data.glob("*.jsonl"))
    assert case.refused_key not in log
    assert case.options[case.credential] not in log
