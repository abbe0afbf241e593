"""The set-up wizard tries each account by calls that send nothing."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import msgspec
import pytest
import urllib3

from notifyproject.settings.environment import read
from providers import email_setup
from providers.discovery import SPECS
from providers.http import Request, Response
from providers.setup_check import RejectedError
from sandbox.config import Config
from sandbox.server import run_in_thread
from tests.support.clients.sandbox import QUICK, Box
from tests.support.tables import each_case

GOOD: Mapping[str, Mapping[str, str]] = {
    "postmark": {"POSTMARK_SERVER_TOKEN": "a-token-of-tests", "POSTMARK_URL": "{}/postmark"},
    "resend": {"RESEND_API_KEY": "a-key-of-tests", "RESEND_URL": "{}/resend"},
    "mailgun": {"MAILGUN_API_KEY": "a-key-of-tests", "MAILGUN_URL": "{}/mailgun"},
}
WRONG: Mapping[str, Mapping[str, str]] = {
    "postmark": {"POSTMARK_SERVER_TOKEN": "revoked-key"},
    "resend": {"RESEND_API_KEY": "revoked-key"},
    "mailgun": {"MAILGUN_API_KEY": "revoked-key"},
}
EVERY = pytest.mark.parametrize("name", list(GOOD))


@pytest.fixture
def box(tmp_path: Any) -> Iterator[Box]:
    config = Config(data=tmp_path / "sandbox", timings=QUICK)
    with run_in_thread(config) as sandbox, urllib3.PoolManager(retries=False) as http:
        yield Box(sandbox=sandbox, http=http)


def check(name: str, box: Box, **wrong: str) -> None:
    values = {key: value.format(box.sandbox.url) for key, value in GOOD[name].items()}
    environment = read({"EMAIL_FROM": "Shop <shop@example.com>", **values, **wrong})
    found = SPECS[name].check
    assert found is not None
    found(environment)


@EVERY
def test_good_account_is_accepted_and_nothing_is_sent(name: str, box: Box) -> None:
    check(name, box)
    assert box.requests(f"?provider={name}")
    assert box.requests("?accepted=true") == []


@EVERY
def test_wrong_key_is_rejected_without_being_quoted(name: str, box: Box) -> None:
    with pytest.raises(RejectedError) as found:
        check(name, box, **WRONG[name])
    assert str(found.value).startswith(f"{SPECS[name].label} responded with ")
    assert not any(value in str(found.value) for value in WRONG[name].values())


def test_test_token_of_postmark_is_accepted(box: Box) -> None:
    check("postmark", box, POSTMARK_SERVER_TOKEN="POSTMARK_API_TEST")


def test_sender_that_postmark_refuses_is_rejected(box: Box) -> None:
    with pytest.raises(RejectedError, match="422: check the sender"):
        check("postmark", box, POSTMARK_MESSAGE_STREAM="unknown")


def test_key_of_resend_that_may_only_send_is_accepted(box: Box) -> None:
    check("resend", box, RESEND_API_KEY="sending-only-key")


@pytest.mark.parametrize(
    "wrong", [{"MAILGUN_DOMAIN": "unknown.example.com"}, {"MAILGUN_URL": "{}/mailgun/v3"}]
)
def test_wrong_domain_or_url_of_mailgun_is_rejected(wrong: dict[str, str], box: Box) -> None:
    with pytest.raises(RejectedError, match="check the key, the domain"):
        check("mailgun", box, **{n: v.format(box.sandbox.url) for n, v in wrong.items()})


SAMPLES: Mapping[str, tuple[Mapping[str, str], Callable[[Any], object]]] = {
    "brevo": (
        {"BREVO_API_KEY": "xkeysib-of-tests"},
        lambda mail: mail["headers"]["X-Sib-Sandbox"] == "drop",
    ),
    "mailjet": (
        {"MAILJET_API_KEY": "k" * 32, "MAILJET_SECRET_KEY": "s" * 32},
        lambda mail: mail["SandboxMode"] is True,
    ),
    "sparkpost": (
        {"SPARKPOST_API_KEY": "k" * 40},
        lambda mail: (
            [r["address"]["email"] for r in mail["recipients"]]
            == ["shop@example.com.sink.sparkpostmail.com"]
        ),
    ),
}


@each_case("name", SAMPLES)
def test_mail_of_the_wizard_says_that_it_is_a_test(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As these providers document it: they have no call that examines a mail without sending it."""
    sent: list[Request] = []

    def fetch(_label: str, request: Request) -> Response:
        sent.append(request)
        return Response(status=400 if len(sent) > 1 else 200, headers={}, body=b"{}")

    monkeypatch.setattr(email_setup, "fetch", fetch)
    values, is_test = SAMPLES[name]
    found = SPECS[name].check
    assert found is not None
    environment = read({"EMAIL_FROM": "Shop <shop@example.com>", **values})
    found(environment)
    assert is_test(msgspec.json.decode(sent[0].body))
    with pytest.raises(RejectedError, match="responded with 400: check the key and the sender"):
        found(environment)
