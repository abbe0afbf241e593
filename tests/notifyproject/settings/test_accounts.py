"""Accounts of providers in the environment: their names, kinds, variables, and mistakes."""

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured

from notifyproject.settings.accounts import KINDS, unused
from notifyproject.settings.base import configure
from notifyproject.settings.declarations import variables
from notifyproject.settings.environment import read
from notifyproject.settings.provider_groups import names_of
from notifyproject.settings.variables import PROVIDER_GROUPS
from tests.support.tables import each_case

EU = {"PROVIDER_EU_KIND": "sendgrid", "PROVIDER_EU_API_KEY": "SG.of-the-eu"}
US = {"PROVIDER_US_KIND": "sendgrid", "PROVIDER_US_API_KEY": "SG.of-the-us"}
RELAY = {"PROVIDER_RELAY_B_KIND": "smtp", "PROVIDER_RELAY_B_HOST": "b.example.com"}
ALL_KINDS, OF_EMAIL = " | ".join(KINDS), ", ".join(names_of("email"))
TWILIO = {"PROVIDER_ABROAD_KIND": "twilio", "PROVIDER_ABROAD_ACCOUNT_SID": "AC1"}


def problems(given: dict[str, str]) -> list[str]:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(given)
    return [line.removeprefix("environment variable ") for line in str(refused.value).split("\n")]


def test_accounts_of_one_kind_have_variables_of_their_own() -> None:
    given = {**EU, **US, **RELAY, "EMAIL_PROVIDER": "us,eu,relay_b,smtp"}
    found = configure(read({**given, "SENDGRID_API_KEY": "SG.of-the-kind", "SMTP_HOST": "a"}))
    accounts = found["PROVIDER_ACCOUNTS"]
    assert found["EMAIL_PROVIDERS"] == ("us", "eu", "relay_b", "smtp")
    assert accounts["eu"].values.SENDGRID_API_KEY == "SG.of-the-eu"
    assert accounts["us"].values.SENDGRID_API_KEY == "SG.of-the-us"
    assert accounts["us"].values.SENDGRID_URL == "https://api.sendgrid.com"
    assert accounts["relay_b"].values.EMAIL_HOST == "b.example.com"
    assert (found["SENDGRID_API_KEY"], found["EMAIL_HOST"]) == ("SG.of-the-kind", "a")


def test_without_accounts_the_variables_mean_what_they_did() -> None:
    found = configure(read({"EMAIL_PROVIDER": "sendgrid,smtp"}))
    assert found["EMAIL_PROVIDERS"] == ("sendgrid", "smtp")
    assert found["SMS_PROVIDERS"] is None
    assert found["PROVIDER_ACCOUNTS"] == {}


def test_account_has_the_rate_and_the_threads_of_its_kind() -> None:
    given = {**TWILIO, **RELAY, "WORKER_THREADS": "7"}
    found = configure(read(given))
    assert found["PROVIDER_RATES"]["abroad"] == (1.0, 1)
    assert found["MAX_IN_FLIGHT"]["relay_b"] == 7
    found = configure(read(given | {"PROVIDER_MAX_PER_SECOND": "abroad:30,twilio:2"}))
    assert found["PROVIDER_RATES"]["abroad"] == (30.0, 3)
    assert found["PROVIDER_RATES"]["twilio"] == (2.0, 1)


def test_value_of_an_account_is_read_as_that_of_its_kind() -> None:
    given = EU | {"PROVIDER_EU_URL": "eu.example.com", "PROVIDER_EU_API_KEY": " key"}
    assert problems(given) == [
        "PROVIDER_EU_API_KEY: begins with a space.",
        "PROVIDER_EU_URL: doesn't begin with https:// or http://.",
    ]


EXPECTED = "a letter, then letters, digits, and _, all in capitals and 40 at most."
LONG = "X" * 41


@each_case(
    "given, expected",
    [
        (
            {"PROVIDER_EU_KIND": "mandrill"},
            [f"PROVIDER_EU_KIND: expected one of {ALL_KINDS}."],
        ),
        # A device's token belongs to its project.
        (
            {"PROVIDER_APP_KIND": "fcm"},
            [f"PROVIDER_APP_KIND: expected one of {ALL_KINDS}."],
        ),
        (
            {"PROVIDER_EU_KIND": "sendgrid"},
            ["PROVIDER_EU_API_KEY: an account of sendgrid needs it."],
        ),
        (
            {"PROVIDER_SMTP_KIND": "sendgrid", "PROVIDER_SMTP_API_KEY": "SG.12345"},
            ["PROVIDER_SMTP_KIND: a kind of provider has this name, so no account may have it."],
        ),
        (
            {"PROVIDER_TEAMS_KIND": "smtp"},
            ["PROVIDER_TEAMS_KIND: a kind of provider has this name, so no account may have it."],
        ),
        *[
            (
                {f"PROVIDER_{name}_KIND": "smtp"},
                [f"PROVIDER_{name}_KIND: expected in place of {name!r} {EXPECTED}"],
            )
            for name in ("eu", "1A", "_A", "A-B", LONG)
        ],
        (
            TWILIO | {"EMAIL_PROVIDER": "abroad,smtp"},
            ["EMAIL_PROVIDER: the account abroad is of twilio, which is for sms."],
        ),
        (
            {"EMAIL_PROVIDER": "sendgrid,eu"},
            [f"EMAIL_PROVIDER: expected some of {OF_EMAIL}, or accounts, in order."],
        ),
        (
            EU | {"EMAIL_PROVIDER": "eu,eu"},
            [f"EMAIL_PROVIDER: expected some of {OF_EMAIL}, eu, or accounts, in order."],
        ),
        # The account x has the variable PROVIDER_X_API_KEY_SID, too.
        (
            {
                "PROVIDER_X_KIND": "twilio",
                "PROVIDER_X_ACCOUNT_SID": "AC1",
                "PROVIDER_X_API_KIND": "key",
            },
            [f"PROVIDER_X_API_KIND: expected one of {ALL_KINDS}."],
        ),
    ],
)
def test_mistake_is_named_with_what_is_expected(given: dict[str, str], expected: list[str]) -> None:
    assert problems(given) == expected


def test_variable_of_two_accounts_is_refused() -> None:
    given = {
        f"PROVIDER_{name}_{setting}": value
        for name in ("SHOP", "SHOP_SECONDARY")
        for setting, value in (("KIND", "twilio"), ("ACCOUNT_SID", "AC1"))
    }
    (problem,) = problems(given)
    assert problem == (
        "PROVIDER_SHOP_SECONDARY_AUTH_TOKEN: a variable of the account shop and of the account "
        "shop_secondary. Rename an account."
    )


def test_no_mistake_shows_a_value() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read(EU | {"PROVIDER_EU_API_KEY": "Hidden1 ", "EMAIL_PROVIDER": "Hidden1"})
    assert "Hidden1" not in str(refused.value)


def test_variable_without_an_account_is_known_as_unused() -> None:
    other = {"PROVIDER_UK_API_KEY": "SG.12345", "PROVIDER_EU_APIKEY": "x", "PROVIDER_EU_FROM": "x"}
    assert unused({**EU, **other, "PROVIDER_MAX_PER_SECOND": "eu:1"}) == sorted(other)
    assert unused(EU | dict.fromkeys(other, "")) == []


def test_kind_with_accounts_says_what_they_need() -> None:
    for kind, group in KINDS.items():
        own = group.of_an_account()
        assert any(variable.is_needed for variable in own), kind
        assert {v.name for v in own} == {v.name for v in variables(group)}, kind
    ordered = {group.provider for group in PROVIDER_GROUPS if group.channel in ("email", "sms")}
    assert KINDS.keys() == ordered


def test_message_about_a_kind_has_the_names_of_the_account() -> None:
    account: Any = read(EU).PROVIDER_ACCOUNTS["eu"]
    text = "SENDGRID_URL is not set; SENDGRID_API_KEY, MY_SENDGRID_URL, and SENDGRID are."
    assert account.own_names(text) == (
        "PROVIDER_EU_URL is not set; PROVIDER_EU_API_KEY, MY_SENDGRID_URL, and SENDGRID are."
    )
