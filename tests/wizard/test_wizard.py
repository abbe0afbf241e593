"""``manage.py setup``: a complete .env from an empty folder, after each provider was tried."""

import io
import json
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from access.checks import check_inbox_signing_key
from notifyproject.checks import check_allowed_hosts, check_secrets
from notifyproject.settings.accounts import KINDS
from notifyproject.settings.base import configure
from notifyproject.settings.environment import BASE_DIR, read
from notifyproject.settings.variables import Environment
from notifyproject.stack.servers import free_port
from providers import smtp
from providers.discovery import SPECS
from providers.setup_check import RejectedError, TimedOutError, UnreachableError
from sandbox.assembly import Sandbox
from sandbox.config import Config
from sandbox.credentials import (
    AWS_ACCESS_KEY_ID,
    AWS_CONFIGURATION_SET,
    AWS_POOL,
    AWS_SECRET_ACCESS_KEY,
    AWS_TOPIC,
    TWILIO_ACCOUNT_SID,
    TWILIO_API_KEY,
    TWILIO_API_SECRET,
    TWILIO_MESSAGING_SERVICE_SID,
)
from sandbox.server import run_in_thread
from tests.support.fakes.smtp_server import MailServer
from tests.support.fakes.socket_server import serving, unreading
from tests.support.tables import each_case
from tests.support.waiting import LIMIT
from wizard import wizard

GENERAL = {"PUBLIC_URL": "https://notify.example.com", "EMAIL_FROM": "Shop <shop@example.com>"}


@pytest.fixture
def provider(tmp_path: Path, google_account_file: Path) -> Iterator[Sandbox]:
    shutil.copy(google_account_file, tmp_path)
    with run_in_thread(Config(data=tmp_path)) as sandbox:
        yield sandbox


def good(url: str, account: str) -> dict[str, str]:
    return GENERAL | {
        "SENDGRID_API_KEY": "SG.sandbox",
        "SENDGRID_URL": url,
        "FCM_CREDENTIALS": account,
        "FCM_URL": url,
        "WHATSAPP_TOKEN": "EAAsandbox",
        "WHATSAPP_PHONE_NUMBER_ID": "100000000000001",
        "WHATSAPP_BUSINESS_ACCOUNT_ID": "200000000000002",
        "WHATSAPP_URL": url,
        "SES_ACCESS_KEY_ID": AWS_ACCESS_KEY_ID,
        "SES_SECRET_ACCESS_KEY": AWS_SECRET_ACCESS_KEY,
        "SES_CONFIGURATION_SET": AWS_CONFIGURATION_SET,
        "SES_URL": url,
        "AWS_SMS_ACCESS_KEY_ID": AWS_ACCESS_KEY_ID,
        "AWS_SMS_SECRET_ACCESS_KEY": AWS_SECRET_ACCESS_KEY,
        "AWS_SMS_SENDER": AWS_POOL,
        "AWS_SMS_CONFIGURATION_SET": AWS_CONFIGURATION_SET,
        "AWS_SMS_TOPICS": AWS_TOPIC,
        "AWS_SMS_URL": f"{url}/sms-voice",
        "TWILIO_ACCOUNT_SID": TWILIO_ACCOUNT_SID,
        "TWILIO_API_KEY_SID": TWILIO_API_KEY,
        "TWILIO_API_KEY_SECRET": TWILIO_API_SECRET,
        "TWILIO_MESSAGING_SERVICE_SID": TWILIO_MESSAGING_SERVICE_SID,
        "TWILIO_URL": url,
        "POSTMARK_SERVER_TOKEN": "a-token-of-tests",
        "POSTMARK_WEBHOOK_SECRET": "a-password-of-webhooks",
        "POSTMARK_URL": f"{url}/postmark",
        "RESEND_API_KEY": "a-key-of-tests",
        "RESEND_URL": f"{url}/resend",
        "MAILGUN_API_KEY": "a-key-of-tests",
        "MAILGUN_URL": f"{url}/mailgun",
        **{f"{name}_API_KEY": "a-key-of-tests" for name in ("BREVO", "MAILJET", "SPARKPOST")},
        "MAILJET_SECRET_KEY": "a-key-of-tests",
        **{f"{name}_URL": url for name in ("BREVO", "MAILJET", "SPARKPOST")},
    }


def account_of(google_account_file: Path, url: str) -> str:
    account = json.loads(google_account_file.read_text())
    return json.dumps(account | {"token_uri": f"{url}/token"})


def run(path: Path, environ: dict[str, str], *words: str) -> tuple[str | None, str]:
    """Run without questions. Return the problem and the output."""
    out = io.StringIO()
    terminal = wizard.Terminal(out=out)
    arguments = ["--file", str(path), "--non-interactive", *words]
    return wizard.main(arguments, environ=environ, terminal=terminal), out.getvalue()


def test_written_file_is_complete_and_accepted_by_production(
    tmp_path: Path, provider: Sandbox, google_account_file: Path, settings: Any
) -> None:
    path = tmp_path / "empty" / ".env"
    path.parent.mkdir()
    given = good(provider.url, account_of(google_account_file, provider.url))
    problem, out = run(path, given)
    assert problem is None
    assert path.stat().st_mode & 0o777 == 0o600
    assert [file.name for file in path.parent.iterdir()] == [".env"]
    assert "INBOX_ORIGINS: no page can show the inbox" in out
    values = wizard.read_file(path)
    assert all(values[name] == value for name, value in given.items() if name != "FCM_CREDENTIALS")
    assert len({values["SECRET_KEY"], values["INBOX_SIGNING_KEY"], values["MONGODB_PASSWORD"]}) == 3
    for name, value in configure(read(values)).items():
        if name in ("SECRET_KEY", "INBOX_SIGNING_KEY", "FIELD_ENCRYPTION_KEYS", "ALLOWED_HOSTS"):
            setattr(settings, name, value)
    checks = (check_secrets, check_allowed_hosts, check_inbox_signing_key)
    assert [found for check in checks for found in check()] == []


def test_offline_writes_values_that_no_provider_was_asked_about(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    given = GENERAL | {"SENDGRID_API_KEY": "SG.new", "SENDGRID_URL": "http://127.0.0.1:1"}
    assert "No connection to SendGrid" in str(run(path, given)[0])
    assert not path.exists()
    problem, out = run(path, given, "--offline")
    assert problem is None
    assert "sendgrid wasn't tried." in out
    assert wizard.read_file(path)["SENDGRID_API_KEY"] == "SG.new"
    for name, text in (("SMTP_PORT", "x"), ("FCM_CREDENTIALS", "{}")):
        assert name in str(run(path, given | {name: text}, "--offline", "--replace")[0])


def test_existing_file_is_kept_without_a_yes_and_its_keys_with_one(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("SECRET_KEY=old\n")
    with serving(MailServer()) as mail:
        given = GENERAL | {"EMAIL_PROVIDER": "smtp", "SMTP_PORT": str(mail.port)}
        assert "give --replace" in str(run(path, given)[0])
        assert path.read_text() == "SECRET_KEY=old\n"
        assert run(path, given, "--replace")[0] is None
    assert wizard.read_file(path)["SECRET_KEY"] == "old"


def test_secret_on_the_command_line_is_refused(tmp_path: Path) -> None:
    problem, _ = run(tmp_path / ".env", dict(GENERAL), "--set", "SENDGRID_API_KEY=SG.x")
    assert "--secrets-file" in str(problem)
    assert "SG.x" not in str(problem)


@each_case("name", [name for name, variable in wizard.ALL.items() if variable.is_secret])
def test_every_secret_is_refused_on_the_command_line(tmp_path: Path, name: str) -> None:
    problem, _ = run(tmp_path / ".env", dict(GENERAL), "--set", f"{name}=s3cret")
    assert "--secrets-file" in str(problem)
    assert "s3cret" not in str(problem)


@each_case(
    "changes, expected",
    [
        ({"SENDGRID_URL": "http://api.example.com"}, "SENDGRID_URL is not https"),
        ({"WHATSAPP_URL": "http://graph.example.com"}, "WHATSAPP_URL is not https"),
        ({"INBOX_ORIGINS": "https://a.example.com,http://b.example.com"}, "INBOX_ORIGINS is not"),
        (
            {"EMAIL_PROVIDER": "smtp", "SMTP_HOST": "smtp.example.com", "SMTP_PASSWORD": "pw-1"},
            "SMTP_PASSWORD is sent without TLS",
        ),
    ],
)
def test_no_key_is_tried_at_a_host_without_tls(
    tmp_path: Path, changes: dict[str, str], expected: str
) -> None:
    given = {**GENERAL, "SENDGRID_API_KEY": "SG.a-real-key", **changes}
    problem, out = run(tmp_path / ".env", given)
    assert expected in str(problem)
    assert "SG.a-real-key" not in str(problem) + out
    assert not (tmp_path / ".env").exists()


@each_case("mode, is_warned", [(0o644, True), (0o640, True), (0o600, False)])
def test_secrets_file_that_others_may_read_is_named(
    tmp_path: Path, mode: int, is_warned: bool
) -> None:
    secrets = tmp_path / "secrets"
    secrets.write_text("METRICS_TOKEN=0123\n")
    secrets.chmod(mode)
    _, out = run(tmp_path / ".env", {}, "--secrets-file", str(secrets))
    assert ("chmod 600" in out) is is_warned


def test_wizard_asks_again_after_a_rejection(tmp_path: Path, provider: Sandbox) -> None:
    answers = iter(
        [
            GENERAL["PUBLIC_URL"],
            "https://app.example.com",
            "sendgrid",
            GENERAL["EMAIL_FROM"],
            "",
            "y",
            "",
        ]
    )
    keys = iter(["SG.revoked", "SG.sandbox"])
    out = io.StringIO()
    terminal = wizard.Terminal(
        # All other providers are refused.
        ask=lambda _: next(answers, "n"),
        ask_secret=lambda _: next(keys),
        out=out,
    )
    path = tmp_path / ".env"
    environ = {"SENDGRID_URL": provider.url}
    assert wizard.main(["--file", str(path)], environ=environ, terminal=terminal) is None
    assert wizard.read_file(path)["SENDGRID_API_KEY"] == "SG.sandbox"
    assert "SendGrid responded with 401" in out.getvalue()


EU = {"PROVIDER_EU_KIND": "sendgrid", "PROVIDER_EU_API_KEY": "SG.sandbox"}


def test_account_is_tried_by_its_own_values(tmp_path: Path, provider: Sandbox) -> None:
    path = tmp_path / ".env"
    given = GENERAL | EU | {"EMAIL_PROVIDER": "eu", "PROVIDER_EU_URL": provider.url}
    problem, out = run(path, given)
    assert problem is None
    assert "eu accepted the values." in out
    assert "PROVIDER_EU_WEBHOOK_PUBLIC_KEY: SendGrid's receipts are rejected" in out
    assert wizard.read_file(path).items() >= given.items()
    problem, _ = run(path, given | {"PROVIDER_EU_API_KEY": "SG.revoked"}, "--replace")
    assert str(problem).startswith("eu: SendGrid responded with 401")


@each_case(
    "wrong, named",
    [
        ({"EMAIL_PROVIDER": "uk"}, "EMAIL_PROVIDER"),
        ({"PROVIDER_EU_API_KEY": ""}, "PROVIDER_EU_API_KEY"),
        ({"PROVIDER_EU_URL": "http://api.example.com"}, "PROVIDER_EU_URL"),
        (
            {
                "PROVIDER_RELAY_KIND": "smtp",
                "PROVIDER_RELAY_HOST": "mail.example.com",
                "PROVIDER_RELAY_PASSWORD": "a-password",
            },
            "PROVIDER_RELAY_PASSWORD is sent without TLS: PROVIDER_RELAY_SECURITY is none.",
        ),
    ],
)
def test_wrong_account_is_named_by_its_variable(
    tmp_path: Path, wrong: dict[str, str], named: str
) -> None:
    problem, _ = run(tmp_path / ".env", GENERAL | EU | {"EMAIL_PROVIDER": "eu"} | wrong)
    assert named in str(problem)


def test_values_of_an_account_may_be_set_and_its_secret_may_not(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    options = ["--offline", "--set", "PROVIDER_EU_URL=http://127.0.0.1:1"]
    problem, _ = run(path, GENERAL | EU, *options, "--set", "PROVIDER_RELAY_HOST=mail.test")
    assert problem == "--set PROVIDER_RELAY_HOST: there is no such variable."
    problem, _ = run(path, GENERAL | EU, *options, "--set", "PROVIDER_EU_API_KEY=SG.new12345")
    assert str(problem).startswith("--set PROVIDER_EU_API_KEY: use the environment")
    assert run(path, GENERAL | EU, *options)[0] is None
    assert wizard.read_file(path)["PROVIDER_EU_URL"] == "http://127.0.0.1:1"


def test_wizard_asks_for_the_kind_and_the_values_of_an_account(
    tmp_path: Path, provider: Sandbox
) -> None:
    """Its key is refused, and it is left out."""
    asked: list[str] = []
    answers = {
        "Mail provider": "eu,sendgrid",
        "Kind of the account eu": "sendgrid",
        "Try again": "n",
    }

    def ask(question: str) -> str:
        asked.append(question)
        return next((a for q, a in answers.items() if question.startswith(q)), "")

    terminal = wizard.Terminal(
        ask=ask,
        ask_secret=lambda q: "SG.revoked" if "EU" in q else "SG.sandbox",
        out=io.StringIO(),
    )
    path = tmp_path / ".env"
    environ = GENERAL | {"SENDGRID_URL": provider.url, "PROVIDER_EU_URL": provider.url}
    assert wizard.main(["--file", str(path)], environ=environ, terminal=terminal) is None
    values = wizard.read_file(path)
    assert values["EMAIL_PROVIDER"] == "sendgrid"
    assert not any(name.startswith("PROVIDER_EU") for name in values)
    assert f"Kind of the account eu, {' or '.join(KINDS)}: " in asked


CHECKS = {spec.name: spec.check for spec in SPECS.values() if spec.check}


def values_for(port: int, account: str) -> Environment:
    url = f"http://127.0.0.1:{port}"
    values = good(url, account) | {"SMTP_PORT": str(port), "SMTP_HOST": "127.0.0.1"}
    return read(values)


@each_case("name", CHECKS)
def test_unreachable_provider_and_timeout_are_told_apart(
    name: str, google_account_file: Path
) -> None:
    port = free_port()
    account = account_of(google_account_file, f"http://127.0.0.1:{port}")
    with pytest.raises(UnreachableError):
        CHECKS[name](values_for(port, account), timeout=LIMIT)
    with serving(unreading) as silent:
        account = account_of(google_account_file, silent.url)
        values = values_for(silent.port, account)
        with pytest.raises(TimedOutError):
            CHECKS[name](values, timeout=0.05)


@each_case(
    "name, wrong",
    [
        ("sendgrid", {"SENDGRID_API_KEY": "SG.revoked"}),
        ("ses", {"EMAIL_PROVIDER": "ses", "SES_SECRET_ACCESS_KEY": "another"}),
        ("ses", {"EMAIL_PROVIDER": "ses", "SES_REGION": "us-east-1"}),
        ("ses", {"EMAIL_PROVIDER": "ses", "SES_CONFIGURATION_SET": "another"}),
        ("ses", {"EMAIL_PROVIDER": "ses", "EMAIL_FROM": "shop@unverified.example"}),
        ("whatsapp", {"WHATSAPP_TOKEN": "EAArevoked"}),
        ("twilio", {"TWILIO_ACCOUNT_SID": "ACrevoked"}),
        ("twilio", {"TWILIO_API_KEY_SECRET": "Sanother"}),
        ("twilio", {"TWILIO_MESSAGING_SERVICE_SID": ""}),
        ("aws_sms", {"AWS_SMS_SECRET_ACCESS_KEY": "another"}),
        ("aws_sms", {"AWS_SMS_REGION": "us-east-1"}),
        ("aws_sms", {"AWS_SMS_SENDER": "pool-another"}),
        ("aws_sms", {"AWS_SMS_CONFIGURATION_SET": "another"}),
        ("aws_sms", {"AWS_SMS_TOPICS": f"{AWS_TOPIC}-another"}),
        ("postmark", {"EMAIL_PROVIDER": "postmark", "POSTMARK_SERVER_TOKEN": "revoked-key"}),
        ("fcm", {"FCM_PROJECT_ID": "another"}),
        ("fcm", {"FCM_CREDENTIALS": "{}"}),
        ("fcm", {"FCM_CREDENTIALS": "/nowhere.json"}),
    ],
)
def test_wrong_values_are_rejected_and_nothing_is_written(
    name: str, wrong: dict[str, str], tmp_path: Path, provider: Sandbox, google_account_file: Path
) -> None:
    given = good(provider.url, account_of(google_account_file, provider.url)) | wrong
    path = tmp_path / ".env"
    problem, _ = run(path, given)
    assert str(problem).startswith(f"{name}: ")
    assert not path.exists()
    assert not any(
        value in str(problem) for value in wrong.values() if value.startswith(("SG", "E"))
    )


def test_wrong_mail_password_is_rejected() -> None:
    server = MailServer({"EHLO": "250-mail\r\n250 AUTH PLAIN", "AUTH": "535 No"})
    with serving(server) as mail, pytest.raises(RejectedError, match="535"):
        smtp.check(read({"SMTP_PORT": str(mail.port), "SMTP_USER": "ada", "SMTP_PASSWORD": "x"}))


def test_command_runs_without_any_setting(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), "setup", "--non-interactive"],
        cwd=tmp_path,
        env={"PATH": ""},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "PUBLIC_URL: give the web's address, beginning with https://.\n"
