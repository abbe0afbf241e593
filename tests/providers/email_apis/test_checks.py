"""Checks of the settings of each kind."""

from typing import Any

import pytest

from providers import email_library
from providers.accounts import account_of
from providers.discovery import SPECS, checks_of
from tests.providers.email_apis.cases import EVERY
from tests.providers.email_apis.kinds import KindCase
from tests.providers.email_apis.test_imports import VARIABLES

SECRETS = {
    "postmark": ["POSTMARK_WEBHOOK_SECRET"],
    "resend": ["RESEND_WEBHOOK_SECRET"],
    "mailgun": ["MAILGUN_WEBHOOK_SECRET", "MAILGUN_SIGNING_KEY"],
    "brevo": ["BREVO_WEBHOOK_SECRET"],
    "mailjet": ["MAILJET_WEBHOOK_SECRET"],
    "sparkpost": ["SPARKPOST_WEBHOOK_SECRET"],
    "mailtrap": ["MAILTRAP_WEBHOOK_SECRET"],
}


def ids(name: str, *functions: str) -> list[str]:
    module, account = checks_of(name), account_of(name)
    return [f.id[-4:] for function in functions for f in getattr(module, function)(account)]


BOTH = ("check_settings", "check_server")


@EVERY
def test_account_that_sends_is_complete(case: KindCase, settings: Any) -> None:
    assert ids(case.name, *BOTH) == []
    settings.EMAIL_PROVIDERS = (case.name,)
    assert ids(case.name, *BOTH) == ["E031", "W010"]
    for name, value in VARIABLES[case.name].items():
        setattr(settings, name, value)
    assert ids(case.name, *BOTH) == ["W010"]
    for name in SECRETS[case.name]:
        setattr(settings, name, "a-secret-of-webhooks")
    assert ids(case.name, *BOTH) == []
    setattr(settings, f"{case.name.upper()}_URL", "api.example.com")
    assert ids(case.name, *BOTH) == ["E030"]


@EVERY
def test_missing_library_is_named(
    case: KindCase, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMAIL_PROVIDERS = (case.name,)
    monkeypatch.setattr(email_library, "LIBRARY", "no_such_library")
    assert "E032" in ids(case.name, "check_settings")


@EVERY
def test_account_without_one_of_its_credentials_sends_nothing(
    case: KindCase, settings: Any
) -> None:
    settings.EMAIL_PROVIDERS = (case.name,)
    for missing in VARIABLES[case.name]:
        for name, value in VARIABLES[case.name].items():
            setattr(settings, name, "" if name == missing else value)
        account = account_of(case.name)
        assert not SPECS[case.name].is_configured(account), missing
        assert "E031" in ids(case.name, "check_settings"), missing
