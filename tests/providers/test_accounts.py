"""Accounts of one kind: each sends, and is watched and called, by its own name."""

import json
from typing import Any

import pytest
from django.core.checks import run_checks

from domain.channels import Channel
from notifications import checks
from providers import email_library
from providers.accounts import account_of, channel_of, every_account, spec_of
from providers.labels import PROVIDERS, provider_name
from providers.registry import get_provider, providers_for, webhook_provider
from tests.support.accounts import declare
from tests.support.subprocess import python
from tests.support.tables import each_case

KEY = "A" * 80
EU = {
    "PROVIDER_EU_KIND": "sendgrid",
    "PROVIDER_EU_API_KEY": "SG.of-the-eu",
    "PROVIDER_EU_WEBHOOK_PUBLIC_KEY": KEY,
}
US = {"PROVIDER_US_KIND": "sendgrid", "PROVIDER_US_API_KEY": "SG.of-the-us"}
A = {"PROVIDER_RELAY_A_KIND": "smtp", "PROVIDER_RELAY_A_HOST": "a.example.com"}
B = {"PROVIDER_RELAY_B_KIND": "smtp", "PROVIDER_RELAY_B_HOST": "b.example.com"}
HOME = {
    "PROVIDER_HOME_KIND": "twilio",
    "PROVIDER_HOME_ACCOUNT_SID": "AC1",
    "PROVIDER_HOME_AUTH_TOKEN": "9f2c7be1d04a86c35e7f10b2a8d4936c",
    "PROVIDER_HOME_FROM": "Shop",
}
ABROAD = {name.replace("HOME", "ABROAD"): value for name, value in HOME.items()} | {
    "PROVIDER_ABROAD_ACCOUNT_SID": "AC2"
}


def names(channel: Channel) -> list[str]:
    return [provider.name for provider in providers_for(channel)]


@each_case(
    "given, channel, expected",
    [
        (EU | US | {"EMAIL_PROVIDER": "eu,us"}, Channel.EMAIL, ["eu", "us"]),
        (EU | {"EMAIL_PROVIDER": "smtp,eu,sendgrid"}, Channel.EMAIL, ["smtp", "eu", "sendgrid"]),
        (A | B | {"EMAIL_PROVIDER": "relay_b,relay_a"}, Channel.EMAIL, ["relay_b", "relay_a"]),
        (HOME | ABROAD | {"SMS_PROVIDER": "abroad,home"}, Channel.SMS, ["abroad", "home"]),
        # Nothing is sent by an account that no list has.
        (EU | US | {"EMAIL_PROVIDER": "us"}, Channel.EMAIL, ["us"]),
        (HOME, Channel.SMS, []),
    ],
)
def test_accounts_send_in_the_order_of_their_list(
    settings: Any, given: dict[str, str], channel: Channel, expected: list[str]
) -> None:
    settings.SENDGRID_URL = "https://sendgrid.test"
    declare(settings, **given)
    assert names(channel) == expected


def test_account_whose_library_is_missing_sends_nothing(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(email_library, "is_installed", lambda: False)
    token = {"PROVIDER_PM_KIND": "postmark", "PROVIDER_PM_SERVER_TOKEN": "a-token-of-postmark"}
    declare(settings, **token, EMAIL_PROVIDER="pm,smtp")
    assert names(Channel.EMAIL) == ["smtp"]


def test_accounts_of_one_kind_share_nothing(settings: Any) -> None:
    given = EU | US | A | B | HOME | ABROAD
    declare(settings, **given, EMAIL_PROVIDER="eu,us,relay_a,relay_b", SMS_PROVIDER="home,abroad")
    mail: Any = providers_for(Channel.EMAIL)
    texts: Any = providers_for(Channel.SMS)
    assert [provider.api_key for provider in mail[:2]] == ["SG.of-the-eu", "SG.of-the-us"]
    assert [p.options["host"] for p in mail[2:]] == ["a.example.com", "b.example.com"]
    assert [provider.account_sid for provider in texts] == ["AC1", "AC2"]
    assert len({provider.account for provider in (*mail, *texts)}) == 6
    assert all(p.account.startswith(f"{p.name}:") for p in (*mail, *texts))


def test_equal_credentials_are_two_accounts(settings: Any) -> None:
    """Staff pause one of two relays, though both have one host and user."""
    same = B | {"PROVIDER_RELAY_B_HOST": "a.example.com"}
    declare(settings, **A, **same, EMAIL_PROVIDER="relay_a,relay_b")
    first, second = providers_for(Channel.EMAIL)
    assert first.account != second.account


def test_twilio_reports_to_the_account_that_sent(settings: Any) -> None:
    settings.PUBLIC_URL = "https://notify.example.com"
    declare(settings, **HOME, **ABROAD, SMS_PROVIDER="home")
    provider: Any = get_provider("abroad")
    assert provider.callback_url == "https://notify.example.com/webhooks/twilio/abroad"


def test_account_that_sends_nothing_still_reads_its_webhooks(settings: Any) -> None:
    declare(settings, **EU, **US, EMAIL_PROVIDER="us")
    provider: Any = webhook_provider("eu")
    assert (provider.name, provider.webhook_public_key) == ("eu", KEY)
    assert channel_of("eu") is Channel.EMAIL
    assert account_of("eu").webhook_path == "/webhooks/sendgrid/eu"
    assert account_of("sendgrid").webhook_path == "/webhooks/sendgrid"


@each_case("name", ["uk", "", "sandbox-uk", "sandbox-eu", "uk:12345678", "EU"])
def test_unknown_name_is_text_and_no_account(settings: Any, name: str) -> None:
    declare(settings, **EU)
    assert channel_of(name) is None
    assert provider_name(name) == name
    assert name not in PROVIDERS
    for find in (account_of, spec_of, get_provider, webhook_provider):
        with pytest.raises(LookupError):
            find(name)


def test_label_has_the_name_and_the_kind(settings: Any) -> None:
    declare(settings, **EU)
    assert provider_name("eu") == "eu (SendGrid)"
    assert provider_name("sendgrid") == "SendGrid"
    assert {"eu", "sendgrid", "sandbox-sendgrid"} <= {*PROVIDERS}
    assert len(PROVIDERS) == len([*PROVIDERS])
    assert "eu" in {account.name for account in every_account()}


def test_checks_speak_of_the_variables_of_the_account(settings: Any) -> None:
    settings.SENDGRID_API_KEY = settings.SENDGRID_WEBHOOK_PUBLIC_KEY = "a-key"
    no_sender = {name: value for name, value in HOME.items() if "FROM" not in name}
    secret = {
        "PROVIDER_RELAY_A_HOST": "mail.example.com",
        "PROVIDER_RELAY_A_USER": "ada",
        "PROVIDER_RELAY_A_PASSWORD": "a-password",
    }
    declare(settings, **{**US, **no_sender, **A, **secret}, EMAIL_PROVIDER="us,relay_a")
    found = {str(message.id): message.msg for message in run_checks(include_deployment_checks=True)}
    assert found["notifications.E019"] == (
        "PROVIDER_HOME_ACCOUNT_SID requires PROVIDER_HOME_MESSAGING_SERVICE_SID or "
        "PROVIDER_HOME_FROM."
    )
    assert "PROVIDER_US_WEBHOOK_PUBLIC_KEY is not set" in found["notifications.W002"]
    assert found["notifyproject.E009"] == (
        "PROVIDER_RELAY_A_PASSWORD is sent without TLS: PROVIDER_RELAY_A_SECURITY is none."
    )


def test_secret_and_url_of_an_account_are_safe_on_a_server(settings: Any) -> None:
    declare(
        settings,
        **US | {"PROVIDER_US_API_KEY": "SG.1", "PROVIDER_US_URL": "http://api.example.com"},
        **HOME | {"PROVIDER_HOME_AUTH_TOKEN": "a" * 32},
    )
    found = [message.msg for message in run_checks(include_deployment_checks=True)]
    for start in ("PROVIDER_US_API_KEY ", "PROVIDER_US_URL ", "PROVIDER_HOME_AUTH_TOKEN "):
        assert any(text.startswith(start) for text in found), start


def test_two_senders_of_one_account_at_twilio_share_its_token(settings: Any) -> None:
    declare(settings, **HOME, **ABROAD)
    assert not [m for m in run_checks(include_deployment_checks=True) if "too." in m.msg]
    settings.METRICS_TOKEN = HOME["PROVIDER_HOME_AUTH_TOKEN"]
    assert [m for m in run_checks(include_deployment_checks=True) if "too." in m.msg]


def test_what_has_no_effect_is_told(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    declare(settings, **EU, **US, EMAIL_PROVIDER="us,sendgrid")
    monkeypatch.setenv("PROVIDER_UK_API_KEY", "SG.12345")
    assert [(str(found.id), found.msg) for found in checks.provider_accounts()] == [
        ("notifications.W007", "PROVIDER_UK_API_KEY is no variable of a declared account."),
        (
            "notifications.I001",
            "The account eu isn't in EMAIL_PROVIDER: it sends only for brands that name it.",
        ),
    ]


PROGRAM = """
import json

import django

django.setup()
from django.urls import reverse

from console.notifications.filters import ProviderFilter
from console.texts.labels import SOURCE_LABELS
from console.webhook_log import ProviderFilter as WebhookFilter
from domain.channels import Channel
from providers.registry import providers_for

print(json.dumps({
    "sends": [provider.name for provider in providers_for(Channel("email"))],
    "webhooks": [reverse(f"webhook-{name}") for name in ("eu", "us", "sendgrid")],
    "filter": [name for name, _ in ProviderFilter.options],
    "webhook filter": [name for name, _ in WebhookFilter.options],
    "source": SOURCE_LABELS["eu"],
}))
"""


def test_process_has_the_accounts_of_its_environment() -> None:
    found = json.loads(python("-c", PROGRAM, **EU, **US, **A, EMAIL_PROVIDER="us,relay_a"))
    assert found["sends"] == ["us", "relay_a"]
    assert found["webhooks"] == [
        "/webhooks/sendgrid/eu",
        "/webhooks/sendgrid/us",
        "/webhooks/sendgrid",
    ]
    assert {"eu", "us", "relay_a"} <= {*found["filter"]}
    assert {"eu", "us"} <= {*found["webhook filter"]}
    assert "relay_a" not in found["webhook filter"]
    assert found["source"] == "eu (SendGrid)"
