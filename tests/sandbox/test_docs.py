"""The tables in docs/reference/sandbox.md match the outcomes in the code."""

import re
from pathlib import Path
from typing import Any

import pytest

from sandbox import credentials
from sandbox.credentials import WEBHOOK_PUBLIC_KEY_FILE
from sandbox.outcomes import Outcome, Outcomes
from sandbox.providers.aws_sms import outcomes as aws_sms
from sandbox.providers.fcm.outcomes import OUTCOMES as FCM
from sandbox.providers.google_oauth.outcomes import OUTCOMES as GOOGLE
from sandbox.providers.mail_apis import mailgun, postmark, resend
from sandbox.providers.rooms import discord, receiver, slack, teams
from sandbox.providers.sendgrid.events import DETAILS
from sandbox.providers.sendgrid.outcomes import OUTCOMES as SENDGRID
from sandbox.providers.sendgrid.provider import REFUSED_KEYS
from sandbox.providers.twilio import answers as twilio_answers
from sandbox.providers.twilio import outcomes as twilio
from sandbox.providers.twilio.errors import KINDS as TWILIO_ERRORS
from sandbox.providers.webpush.outcomes import OUTCOMES as WEB_PUSH
from sandbox.providers.whatsapp import answers, templates
from sandbox.providers.whatsapp import events as whatsapp
from sandbox.providers.whatsapp.outcomes import OUTCOMES as WHATSAPP
from sandbox.providers.whatsapp.outcomes import magic_suffix

TEXT = (Path(__file__).parents[2] / "docs" / "reference" / "sandbox.md").read_text()


def rows(heading: str) -> list[tuple[str, str]]:
    """Return the rows of the table whose first column has this heading."""
    section = TEXT.partition(f"| {heading} |")[2].partition("\n\n")[0]
    found = re.findall(r"^\| (.+?) \| (.+?) \|$", section, re.MULTILINE)
    assert found
    return found


def names(row: Outcome, pattern: str) -> str:
    """Return the names of an outcome in the format of the tables."""
    return ", ".join(f"`{pattern.format(name)}`" for name in (row.name, *row.aliases))


@pytest.mark.parametrize(
    ("heading", "outcomes", "pattern"),
    [
        ("address", SENDGRID, "{}@"),
        ("token or topic", FCM, "{}-…"),
        ("outcome", GOOGLE, "{}"),
        ("name", WEB_PUSH, "{}-…"),
        ("webhook of Slack", slack.WEBHOOK_OUTCOMES, "{}-…"),
        ("channel of Slack", slack.API_OUTCOMES, "{}-…"),
        ("workflow", teams.OUTCOMES, "{}-…"),
        ("webhook of Discord", discord.OUTCOMES, "{}-…"),
        ("receiver", receiver.OUTCOMES, "{}-…"),
        ("address at Postmark", postmark.OUTCOMES, "{}@"),
        ("address at Resend", resend.OUTCOMES, "{}@"),
        ("address at Mailgun", mailgun.OUTCOMES, "{}@"),
    ],
)
def test_magic_recipients_are_documented(heading: str, outcomes: Outcomes, pattern: str) -> None:
    assert rows(heading) == [(names(row, pattern), row.description) for row in outcomes.table]


def test_magic_numbers_are_documented() -> None:
    assert rows("number") == [
        (f"`…{magic_suffix(row.name)}`, {names(row, '{}')}", row.description)
        for row in WHATSAPP.table
    ]


@pytest.mark.parametrize(
    ("heading", "module"), [("number for SMS", twilio), ("number for AWS SMS", aws_sms)]
)
def test_magic_numbers_for_sms_are_documented(heading: str, module: Any) -> None:
    assert rows(heading) == [
        (f"`…{module.magic_suffix(row.name)}`, {names(row, '{}')}", row.description)
        for row in module.OUTCOMES.table
    ]


def test_refused_accounts_are_documented() -> None:
    documented = {sid.strip("`"): answer for sid, answer in rows("account")}
    refused = {**twilio_answers.REFUSED_ACCOUNTS, twilio_answers.TRIAL_ACCOUNT: 21608}
    assert set(documented) == set(refused)
    for sid, code in refused.items():
        assert documented[sid].startswith(f"{TWILIO_ERRORS[code].status}: code {code}")
    assert twilio_answers.VERIFIED_NUMBER.replace("7700", " 7700 ") in TEXT


def test_refused_keys_are_documented() -> None:
    documented = {key.strip("`"): answer for key, answer in rows("key")}
    assert set(documented) == set(REFUSED_KEYS)
    for key, refusal in REFUSED_KEYS.items():
        assert documented[key].startswith(f"{refusal.status}:")


def test_refused_bot_tokens_and_the_secret_of_receivers_are_documented() -> None:
    for text in (*slack.TOKENS, receiver.SECRET):
        assert f"`{text}`" in TEXT


def test_refused_access_tokens_are_documented() -> None:
    documented = {key.strip("`"): answer for key, answer in rows("access token")}
    assert set(documented) == set(answers.REFUSED_TOKENS)
    for key, error in answers.REFUSED_TOKENS.items():
        assert documented[key].startswith(f"{error.status}: code {error.code}")


def test_kinds_of_events_are_documented() -> None:
    assert [kind for kind in (*DETAILS, *whatsapp.KINDS) if f"`{kind}`" not in TEXT] == []


def test_files_and_ids_are_documented() -> None:
    for name in (
        WEBHOOK_PUBLIC_KEY_FILE,
        credentials.SERVICE_ACCOUNT_FILE,
        credentials.WHATSAPP_ACCOUNT_FILE,
        credentials.TWILIO_ACCOUNT_FILE,
        credentials.MAIL_ACCOUNTS_FILE,
        templates.FILE,
    ):
        assert f"| `{name}` |" in TEXT
    for text in (
        credentials.FCM_PROJECT_ID,
        credentials.SERVICE_ACCOUNT_EMAIL,
        credentials.BUSINESS_ACCOUNT_ID,
        credentials.WHATSAPP_ACCESS_TOKEN,
        credentials.TWILIO_ACCOUNT_SID,
        credentials.TWILIO_API_KEY,
        credentials.TWILIO_MESSAGING_SERVICE_SID,
    ):
        assert text in TEXT
