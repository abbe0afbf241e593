"""Providers for sends in test mode: the sandbox only."""

from dataclasses import replace
from typing import Any

import pytest

from domain.channels import Channel
from providers import discovery, registry, twilio, whatsapp
from providers.discovery import SPECS
from providers.inbox.provider import InAppProvider
from providers.registry import providers_for
from providers.sendgrid.variables import SANDBOX_KEY as SENDGRID_KEY
from providers.whatsapp.variables import Settings
from sandbox import credentials
from sandbox.config import WHATSAPP_API_VERSION
from sandbox.providers.sendgrid.provider import KEY_PREFIX, REFUSED_KEYS
from sandbox.providers.whatsapp import answers

SANDBOX = "http://sandbox.test:8001"
SENT = [channel for channel in Channel if channel is not Channel.IN_APP]


@pytest.fixture(autouse=True)
def everything_is_set_up(settings: Any) -> None:
    """Configure every provider, and a sandbox."""
    settings.EMAIL_PROVIDERS = ("smtp", "sendgrid")
    settings.SENDGRID_API_KEY, settings.SENDGRID_URL = "SG.real", "https://sendgrid.test"
    settings.FCM_CREDENTIALS = settings.SANDBOX_FCM_CREDENTIALS = '{"client_email": "a@b.test"}'
    settings.WHATSAPP_TOKEN, settings.WHATSAPP_PHONE_NUMBER_ID = "EAAreal", "1"
    settings.WHATSAPP_API_VERSION = "v25.0"
    settings.TWILIO_ACCOUNT_SID, settings.TWILIO_AUTH_TOKEN = f"AC{'f' * 32}", "f" * 32
    settings.TWILIO_FROM = "Shop"
    settings.SANDBOX_URL = SANDBOX


@pytest.mark.parametrize("channel", SENT)
def test_test_send_goes_only_to_the_sandbox(channel: Channel) -> None:
    found: tuple[Any, ...] = providers_for(channel, test=True)
    assert {provider.base_url for provider in found} == {SANDBOX}


@pytest.mark.parametrize("channel", SENT)
def test_test_and_live_accounts_differ(channel: Channel) -> None:
    tests = providers_for(channel, test=True)
    real = providers_for(channel)
    assert not {provider.account for provider in tests} & {provider.account for provider in real}
    assert not {provider.name for provider in tests} & {provider.name for provider in real}


def test_test_account_differs_even_if_live_is_the_sandbox(settings: Any) -> None:
    """The local stack uses the same URL, keys, and numbers for both."""
    settings.EMAIL_PROVIDERS = ("sendgrid",)
    settings.SENDGRID_API_KEY, settings.SENDGRID_URL = SENDGRID_KEY, SANDBOX
    settings.WHATSAPP_TOKEN = whatsapp.SANDBOX_KEY
    settings.WHATSAPP_PHONE_NUMBER_ID = whatsapp.SANDBOX_NUMBER
    settings.TWILIO_ACCOUNT_SID = twilio.SANDBOX_ACCOUNT
    settings.TWILIO_API_KEY_SID, settings.TWILIO_API_KEY_SECRET = twilio.SANDBOX_KEY
    settings.TWILIO_MESSAGING_SERVICE_SID = twilio.SANDBOX_SERVICE
    settings.FCM_URL = settings.WHATSAPP_URL = settings.TWILIO_URL = SANDBOX
    for channel in SENT:
        tests, real = providers_for(channel, test=True), providers_for(channel)
        assert tests
        assert real
        assert {each.account for each in tests}.isdisjoint(each.account for each in real)


def test_live_rate_limits_do_not_apply_to_tests(settings: Any) -> None:
    names = {provider.name for channel in SENT for provider in providers_for(channel, test=True)}
    assert not names & settings.PROVIDER_RATES.keys()


@pytest.mark.parametrize("channel", SENT)
def test_test_send_has_no_provider_without_a_sandbox(settings: Any, channel: Channel) -> None:
    settings.SANDBOX_URL = ""
    assert providers_for(channel, test=True) == ()
    assert providers_for(channel) != ()


def test_test_push_needs_the_sandbox_service_account(settings: Any) -> None:
    settings.SANDBOX_FCM_CREDENTIALS = ""
    assert providers_for(Channel.PUSH, test=True) == ()
    assert providers_for(Channel.EMAIL, test=True) != ()


def test_inbox_needs_no_sandbox(settings: Any) -> None:
    settings.SANDBOX_URL = ""
    assert [type(provider) for provider in providers_for(Channel.IN_APP, test=True)] == [
        InAppProvider
    ]


def test_whatsapp_api_version_is_configurable() -> None:
    number: Any
    for test in (True, False):
        (number,) = providers_for(Channel.WHATSAPP, test=test)
        assert number.version == "v25.0"


def twilio_account() -> Any:
    (found,) = providers_for(Channel.SMS)
    return found


def test_auth_token_sends_unless_there_is_an_api_key(settings: Any) -> None:
    account = settings.TWILIO_ACCOUNT_SID
    assert (twilio_account().user, twilio_account().password) == (account, "f" * 32)
    settings.TWILIO_API_KEY_SID, settings.TWILIO_API_KEY_SECRET = f"SK{'f' * 32}", "a-secret"
    assert (twilio_account().user, twilio_account().password) == (f"SK{'f' * 32}", "a-secret")
    assert twilio_account().auth_tokens == ("f" * 32,)


def test_messaging_service_sends_before_a_number_and_two_tokens_verify(settings: Any) -> None:
    settings.TWILIO_SECONDARY_AUTH_TOKEN = "e" * 32
    assert (twilio_account().sender, len(twilio_account().auth_tokens)) == ("Shop", 2)
    settings.TWILIO_MESSAGING_SERVICE_SID = twilio.SANDBOX_SERVICE
    assert twilio_account().sender == twilio.SANDBOX_SERVICE


@pytest.mark.parametrize(
    ("public_url", "url", "callback"),
    [
        ("https://notify.example.com", "https://api.twilio.com", True),
        ("http://127.0.0.1:8000", "https://api.twilio.com", False),
        ("http://127.0.0.1:8000", SANDBOX, True),
    ],
)
def test_twilio_is_asked_for_receipts_where_it_can_send_them(
    settings: Any, public_url: str, url: str, callback: bool
) -> None:
    settings.PUBLIC_URL, settings.TWILIO_URL = public_url, url
    expected = f"{public_url}/webhooks/twilio" if callback else ""
    assert twilio_account().callback_url == expected


def test_providers_are_cached_until_a_setting_changes(settings: Any) -> None:
    first = providers_for(Channel.EMAIL, test=True)
    assert providers_for(Channel.EMAIL, test=True) is first
    settings.SANDBOX_URL = "http://elsewhere.test"
    changed: tuple[Any, ...] = providers_for(Channel.EMAIL, test=True)
    assert changed[0].base_url == "http://elsewhere.test"
    registry.clear()
    assert providers_for(Channel.EMAIL, test=True) is not changed


def test_sandbox_accepts_the_test_credentials() -> None:
    assert whatsapp.SANDBOX_KEY == credentials.WHATSAPP_ACCESS_TOKEN
    assert whatsapp.SANDBOX_KEY not in answers.REFUSED_TOKENS
    assert whatsapp.SANDBOX_NUMBER == credentials.PHONE_NUMBER_ID
    assert SENDGRID_KEY.startswith(KEY_PREFIX)
    assert SENDGRID_KEY not in REFUSED_KEYS
    assert twilio.SANDBOX_ACCOUNT == credentials.TWILIO_ACCOUNT_SID
    assert twilio.SANDBOX_KEY == (credentials.TWILIO_API_KEY, credentials.TWILIO_API_SECRET)
    assert twilio.SANDBOX_SERVICE == credentials.TWILIO_MESSAGING_SERVICE_SID
    assert Settings().WHATSAPP_API_VERSION == WHATSAPP_API_VERSION


def test_mail_has_no_provider_without_key_and_sandbox(settings: Any) -> None:
    settings.EMAIL_PROVIDERS, settings.SENDGRID_URL = ("sendgrid",), ""
    assert providers_for(Channel.EMAIL) == ()


def test_any_channel_may_have_an_order(settings: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    again = replace(SPECS["whatsapp"], name="again")
    monkeypatch.setitem(discovery.SPECS, "again", again)
    settings.WHATSAPP_TOKEN = "EAAsecret"
    assert len(providers_for(Channel.WHATSAPP)) == 2
    orders = {("again", "whatsapp"): 2, ("whatsapp",): 1, (): 0}
    for names, count in orders.items():
        settings.WHATSAPP_PROVIDERS = names
        assert len(providers_for(Channel.WHATSAPP)) == count
