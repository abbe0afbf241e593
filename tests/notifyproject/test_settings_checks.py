"""Unsafe settings prevent the start with an error that names them."""

import base64
import json
import random
import re
from pathlib import Path
from typing import Any

import pytest
from django.core.checks import run_checks
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import SystemCheckError
from django.test import override_settings

from notifyproject.celery import _refuse_unsafe_settings
from notifyproject.platform.process import refuse_unsafe_settings
from notifyproject.settings import environment, safety
from notifyproject.settings.base import configure
from notifyproject.settings.variables import SECRETS, URLS, VARIABLES
from sandbox import credentials
from tests.support.tables import each_case

TAGS = ["security"]


def problems() -> list[str]:
    return [f"{check.id}: {check.msg}" for check in run_checks(tags=TAGS)]


def test_test_settings_pass() -> None:
    assert problems() == []
    refuse_unsafe_settings()


@pytest.mark.parametrize("name", ["EMAIL_FROM", "EMAIL_REPLY_TO"])
@pytest.mark.parametrize(
    "text",
    [
        "ada@example.com",
        "Ada <ada@example.com>",
        "<ada@example.com>",
        "L\u00f3ja da Ada <ada@example.com>",
        '"Shop, Inc." <ada@example.com>',
        "The (big) shop <ada@example.com>",
        "Shop, Inc <ada@example.com>",
        "Ada <a@b\u00fccher.de>",
    ],
)
def test_sender_is_an_address_with_or_without_a_name(settings: Any, name: str, text: str) -> None:
    setattr(settings, name, text)
    assert problems() == []


@pytest.mark.parametrize(("name", "code"), [("EMAIL_FROM", "E003"), ("EMAIL_REPLY_TO", "E004")])
@pytest.mark.parametrize(
    "text",
    [
        "Ada",
        "ada@",
        "@example.com",
        "ada@localhost",
        "ada@exa mple.com",
        "Ada ada@example.com",
        "ada@example.com, bob@example.com",
        "Bob <bob@example.com>, Ada <ada@example.com>",
        "bob@example.com, Ada <ada@example.com>",
        "\u00e4da@example.com",
        "=?utf-8?q?Ada=0D=0ABcc:_x?= <ada@example.com>",
        "Ada <ada@example.com",
        "Ada <ada@example.com>\n",
        "Ada\r\nBcc: x <ada@example.com>",
        "Ada <ada@example.com> x",
        "Ada <bob@example.com> <ada@example.com>",
    ],
)
def test_invalid_sender_is_an_error(settings: Any, name: str, code: str, text: str) -> None:
    setattr(settings, name, text)
    assert problems() == [f"notifications.{code}: {name} is not an address: {text!r}."]


def test_missing_sender_is_an_error(settings: Any) -> None:
    settings.EMAIL_FROM = ""
    assert problems() == ["notifications.E003: EMAIL_FROM is not an address: ''."]


def test_public_attachment_hosts_pass(settings: Any) -> None:
    settings.ATTACHMENT_HOSTS = frozenset(["files.example.com", "cdn-1.example.co.uk"])
    assert problems() == []


@pytest.mark.parametrize(
    "host",
    [
        "https://files.example.com",
        "files.example.com/a",
        "files.example.com:443",
        "*.example.com",
        "files",
        "localhost",
        "10.0.0.1",
        "[::1]",
        "files.example.com.",
        "files.internal",
        "a b.example.com",
        "ada@files.example.com",
        "-x.example.com",
        "\u00e4.com",
    ],
)
def test_private_attachment_host_is_an_error(settings: Any, host: str) -> None:
    settings.ATTACHMENT_HOSTS = frozenset(["files.example.com", host])
    message = f"ATTACHMENT_HOSTS contains invalid public host names: {host}."
    assert problems() == [f"notifications.E005: {message}"]


BASE_URLS = ["PUBLIC_URL", "SENDGRID_URL", "FCM_URL", "WHATSAPP_URL", "SANDBOX_URL"]


@pytest.mark.parametrize(("number", "name"), [*enumerate(BASE_URLS, start=6)])
def test_invalid_base_url_is_an_error(settings: Any, name: str, number: int) -> None:
    for good in ("https://x.example.com", "http://127.0.0.1:8001", "https://example.com/below"):
        setattr(settings, name, good)
        assert problems() == []
    for bad in (
        "example.com",
        "ftp://example.com",
        "https://",
        "https:///u",
        "https://example.com:x",
        "https://ada:x@example.com",
        "https://example.com?a=1",
        "https://example.com#a",
        "https://exa mple.com",
        "https://example.com\n",
        "https://b\u00fccher.example",
        "/u",
    ):
        setattr(settings, name, bad)
        message = f"{name} is not a base URL: {bad!r}."
        assert problems() == [f"notifications.E{number:03}: {message}"]


@pytest.mark.parametrize("name", BASE_URLS)
def test_required_url_must_not_be_empty(settings: Any, name: str) -> None:
    setattr(settings, name, "")
    assert bool(problems()) is (name not in ("SENDGRID_URL", "SANDBOX_URL"))


@pytest.fixture(scope="module")
def account(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return credentials.ensure_service_account(
        tmp_path_factory.mktemp("google"), url="http://127.0.0.1:1"
    )


FCM = [("FCM_CREDENTIALS", "E012"), ("SANDBOX_FCM_CREDENTIALS", "E013")]
NONE = "The configured Firebase service account is invalid."
USE_THE_KEY = (
    "Use the key of a service account, neither the configuration of an app nor another kind of"
    " credentials."
)


@pytest.mark.parametrize(("name", "code"), FCM)
def test_service_account_is_a_file_or_its_content(
    settings: Any, name: str, code: str, account: Path
) -> None:
    for source in (str(account), account.read_text()):
        setattr(settings, name, source)
        assert problems() == []


@pytest.mark.parametrize(("name", "code"), FCM)
def test_invalid_service_account_is_an_error(
    settings: Any, name: str, code: str, account: Path, tmp_path: Path
) -> None:
    content = json.loads(account.read_text())
    (tmp_path / "other.json").write_text("[]")
    other = f"{NONE} The JSON has no client_email and no private_key. {USE_THE_KEY}"
    without_email = f"{NONE} The JSON has no client_email. {USE_THE_KEY}"
    cases = {
        str(tmp_path / "gone.json"): "The Firebase service account's file can't be read.",
        str(tmp_path): "The Firebase service account's file can't be read.",
        str(tmp_path / "other.json"): other,
        "{": NONE,
        "{}": other,
        json.dumps({**content, "private_key": "a secret that is no key"}): NONE,
        json.dumps({**content, "client_email": ""}): without_email,
    }
    for source, reason in cases.items():
        setattr(settings, name, source)
        assert problems() == [f"notifications.{code}: {name}: {reason}"]


def test_push_needs_a_project(settings: Any, account: Path) -> None:
    without = {**json.loads(account.read_text()), "project_id": ""}
    settings.FCM_CREDENTIALS = json.dumps(without)
    assert problems() == ["notifications.E012: FCM_CREDENTIALS names no project."]
    settings.FCM_PROJECT_ID = "my-shop-1a2b3"
    assert problems() == []
    settings.FCM_PROJECT_ID = "My shop"
    assert problems() == ["notifications.E011: FCM_PROJECT_ID is not a project ID: 'My shop'."]


@pytest.fixture
def number(settings: Any) -> Any:
    settings.WHATSAPP_TOKEN, settings.WHATSAPP_PHONE_NUMBER_ID = "EAAsecret", "100000000000001"
    settings.WHATSAPP_APP_SECRET, settings.WHATSAPP_VERIFY_TOKEN = "a" * 32, "a-verify-token"
    return settings


def test_complete_whatsapp_settings_pass(number: Any) -> None:
    assert problems() == []


@pytest.mark.parametrize(
    ("name", "code"), [("TOKEN", "E014"), ("APP_SECRET", "E015"), ("VERIFY_TOKEN", "E016")]
)
def test_malformed_whatsapp_secret_is_an_error_and_not_shown(
    number: Any, name: str, code: str
) -> None:
    message = f"notifications.{code}: WHATSAPP_{name} is not a value that Meta issues."
    for bad in ("EAA secret", "EAAsecret\n", "EAA\u2026"):
        setattr(number, f"WHATSAPP_{name}", bad)
        assert problems() == [message]


@pytest.mark.parametrize("bad", ["+447700900999", "my number", "1", "1 2345678"])
def test_invalid_phone_number_id_is_an_error(number: Any, bad: str) -> None:
    number.WHATSAPP_PHONE_NUMBER_ID = bad
    assert problems() == [f"notifications.E017: WHATSAPP_PHONE_NUMBER_ID is not an ID: {bad!r}."]


def test_token_without_phone_number_id_is_an_error(number: Any) -> None:
    number.WHATSAPP_PHONE_NUMBER_ID = ""
    message = "WHATSAPP_PHONE_NUMBER_ID is required by WHATSAPP_TOKEN."
    assert problems() == [f"notifications.E017: {message}"]


def test_all_errors_are_reported_together(settings: Any) -> None:
    settings.EMAIL_FROM, settings.PUBLIC_URL = "Ada", "example.com"
    with pytest.raises(SystemCheckError) as error:
        refuse_unsafe_settings()
    for name in ("EMAIL_FROM", "PUBLIC_URL", "HINT"):
        assert name in str(error.value)


def test_silenced_check_does_not_stop_the_start(settings: Any) -> None:
    settings.EMAIL_FROM = "Ada"
    settings.SILENCED_SYSTEM_CHECKS = ["notifications.E003"]
    refuse_unsafe_settings()


def test_worker_stops_with_the_reason(settings: Any) -> None:
    _refuse_unsafe_settings()
    settings.EMAIL_FROM = "Ada"
    with pytest.raises(SystemExit, match="EMAIL_FROM is not an address"):
        _refuse_unsafe_settings()


KEY = bytes(7 * n * n % 251 for n in range(1, 41))


@pytest.fixture
def server(settings: Any) -> Any:
    """Return settings with which a server in production starts."""
    settings.DEPLOY_CHECKS_AT_START = True
    settings.SECRET_KEY = "k1-8rVbTnQ_wYxu0Zp3hLmCs9dGfEo4aWtJqXz7NiPvKbMy2Rc"
    settings.INBOX_SIGNING_KEY = "Zp3-hLmCs9_dGfEo4aWtJqXz7NiPvKbMy2Rc"
    settings.FIELD_ENCRYPTION_KEYS = {"2026": KEY}
    refuse_unsafe_settings()
    return settings


GUESSABLE = [
    ("SECRET_KEY", "short", "SECRET_KEY has fewer than 50 characters."),
    ("SECRET_KEY", "ab" * 40, "SECRET_KEY is not random."),
    ("SECRET_KEY", "abcdefghij" * 6, "SECRET_KEY is not random."),
    ("SECRET_KEY_FALLBACKS", ["short"], "Value 1 of SECRET_KEY_FALLBACKS has fewer than 50"),
    ("METRICS_TOKEN", "Zp3-hLmCs9_dGfEo4aWtJqXz7NiPvKbMy2Rc", "METRICS_TOKEN is INBOX_SIGNING_KEY"),
    ("SECRET_KEY", "only-for-one-machine-" + "0" * 40, "SECRET_KEY is not random."),
    ("INBOX_SIGNING_KEY", "change-me" + "!" * 30, "INBOX_SIGNING_KEY is not random."),
    (
        "FIELD_ENCRYPTION_KEYS",
        {"2026": KEY, "2025": b"\xd3M4" * 16},
        "The key 2025 of FIELD_ENCRYPTION_KEYS is not random.",
    ),
]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    GUESSABLE,
)
def test_unsafe_setting_is_refused_on_a_server_only(
    server: Any, name: str, value: Any, message: str
) -> None:
    setattr(server, name, value)
    with pytest.raises(SystemCheckError) as error:
        refuse_unsafe_settings()
    assert message in str(error.value)
    assert str(value) not in str(error.value)
    server.DEPLOY_CHECKS_AT_START = False
    refuse_unsafe_settings()


@pytest.mark.parametrize(
    "host",
    [
        "notify.example.com",
        ".example.com",
        "web",
        "localhost",
        "127.0.0.1",
        "[::1]",
        "NOTIFY.example.com.",
        "a-1.example.co.uk",
    ],
)
def test_host_name_is_allowed_on_a_server(server: Any, host: str) -> None:
    server.ALLOWED_HOSTS = [host]
    refuse_unsafe_settings()


@pytest.mark.parametrize(
    "host",
    [
        "*",
        "*.example.com",
        ".",
        ".com",
        "",
        "https://notify.example.com",
        "notify.example.com:443",
        "notify.example.com/",
        "a b",
        "-a.example.com",
        ".co.uk",
        ".com.br",
        ".CO.JP",
        ".gov.pt.",
        ".github.io",
        ".herokuapp.com",
    ],
)
def test_host_pattern_that_admits_any_or_none_is_refused(server: Any, host: str) -> None:
    server.ALLOWED_HOSTS = ["notify.example.com", host]
    with pytest.raises(SystemCheckError, match="ALLOWED_HOSTS contains invalid host names"):
        refuse_unsafe_settings()


SOUNDS_SECRET = re.compile(r"SECRET|PASSWORD|TOKEN|CREDENTIAL|(?<!PUBLIC)_KEYS?$")
SOUNDS_LIKE_URL = re.compile(r"URLS?$|URI$|ENDPOINT|ORIGINS?$|ISSUER")


@each_case("name", VARIABLES)
def test_what_sounds_like_a_secret_or_a_url_is_one(name: str) -> None:
    assert (name in SECRETS) == bool(SOUNDS_SECRET.search(name))
    assert (name in URLS) == bool(SOUNDS_LIKE_URL.search(name))


def started_with(server: Any, name: str, value: str) -> str:
    """Return why a server doesn't start with the variable, as it configures the settings."""
    variables = {
        "SECRET_KEY": server.SECRET_KEY,
        "INBOX_SIGNING_KEY": server.INBOX_SIGNING_KEY,
        "FIELD_ENCRYPTION_KEYS": f"2026:{base64.b64encode(KEY).decode()}",
        "ALLOWED_HOSTS": "notify.example.com",
        "PUBLIC_URL": "https://notify.example.com",
        "SMTP_HOST": "smtp.example.com",
        name: value,
    }
    try:
        configured = configure(environment.read(variables))
        # One layer of settings: each layer makes reading one deeper.
        with override_settings(
            **{
                setting: found
                for setting, found in configured.items()
                if setting != "DATABASES" and not setting.startswith(("LOGGING", "CELERY_TASK"))
            }
        ):
            refuse_unsafe_settings()
    except (SystemCheckError, ImproperlyConfigured) as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    "name", [secret for secret in SECRETS if not secret.endswith("FCM_CREDENTIALS")]
)
def test_no_server_starts_with_a_secret_that_is_guessable_or_sent_in_the_clear(
    server: Any, name: str
) -> None:
    form = "a:{}" if name == "FIELD_ENCRYPTION_KEYS" else "{}"
    value = "YQ==" if name == "FIELD_ENCRYPTION_KEYS" else "a"
    refusal = started_with(server, name, form.format(value))
    assert name in refusal
    if SECRETS[name].is_issued:
        return
    for guessable in (
        "a" * 64,
        "abcdefghij" * 6,
        "change-me-" + "Zp3hLmCs9dGfEo4aWtJqXz7NiPvKbMy2Rc" * 2,
    ):
        given = base64.b64encode(guessable.encode()).decode() if "KEYS" in name else guessable
        assert "is not random" in started_with(server, name, form.format(given)), guessable


SAFE_URLS = {
    "MONGODB_URI": "mongodb://db.example.com/notify?replicaSet=rs0",
    "REDIS_URL": "rediss://broker.example.com/0",
    "BROKER_URL": "amqps://broker.example.com//",
}


@pytest.mark.parametrize("name", URLS)
def test_no_server_starts_with_a_url_without_tls_to_a_public_host(server: Any, name: str) -> None:
    is_oidc = name == "OIDC_ISSUER"
    if is_oidc:
        server.OIDC_CLIENT_ID, server.OIDC_GROUP_ROLES = "console", {"staff": "viewer"}
    for public in (
        "http://api.example.com",
        "http://8.8.8.8",
        "http://[2001:4860:4860::8888]:8080",
        "http://localhost.example.com",
        "http://127.0.0.1.example.com",
        "http://134744072",
    ):
        assert name in started_with(server, name, public), public
    if not is_oidc:
        assert started_with(server, name, SAFE_URLS.get(name, "https://api.example.com")) == ""


@each_case("name", [name for name, rule in URLS.items() if rule.plain is not safety.Plain.ANY])
def test_url_without_tls_may_lead_to_this_machine_or_a_private_network(name: str) -> None:
    rule = URLS[name]
    for local in ("http://127.0.0.1:8001", "http://localhost:8001", "http://[::1]:8001"):
        assert safety.url_problem(rule, local) is None
    is_private_allowed = rule.plain is safety.Plain.PRIVATE
    for private in (
        "http://sandbox:8001",
        "http://10.1.2.3",
        "http://192.168.0.7:4318",
        "http://[fd00::1]",
        "http://relay.mail.svc",
        "http://otel.internal:4318",
    ):
        problem = safety.url_problem(rule, private)
        assert (problem is None) is is_private_allowed, private
    text = safety.url_problem(rule, "http://api.example.com/secret")
    assert text == f"is not https: plain http is for {rule.plain} only"
    text = safety.url_problem(rule, "http://ada:pw@api.example.com/?key=secret")
    assert text == "has a user or a password"


@pytest.mark.parametrize(
    ("host", "security", "is_refused"),
    [
        ("smtp.example.com", "none", True),
        ("203.0.113.7", "none", True),
        ("smtp.example.com", "starttls", False),
        ("smtp.example.com", "tls", False),
        ("127.0.0.1", "none", False),
        ("postfix", "none", False),
        ("10.0.0.5", "none", False),
    ],
)
def test_password_of_a_mail_server_needs_tls(
    server: Any, host: str, security: str, is_refused: bool
) -> None:
    server.EMAIL_HOST, server.EMAIL_HOST_PASSWORD = host, "a-password"
    server.EMAIL_USE_TLS, server.EMAIL_USE_SSL = security == "starttls", security == "tls"
    if not is_refused:
        refuse_unsafe_settings()
        return
    with pytest.raises(SystemCheckError, match="SMTP_PASSWORD is sent without TLS") as error:
        refuse_unsafe_settings()
    assert "a-password" not in str(error.value)


@pytest.mark.parametrize("name", ["FCM_CREDENTIALS", "SANDBOX_FCM_CREDENTIALS"])
@pytest.mark.parametrize("is_file", [True, False])
def test_service_account_is_not_presented_without_tls(
    server: Any, name: str, account: Path, tmp_path: Path, is_file: bool
) -> None:
    for url, is_refused in (("http://oauth2.example.com/token", True), ("http://[::1]/t", False)):
        text = json.dumps({**json.loads(account.read_text()), "token_uri": url})
        (tmp_path / "account.json").write_text(text)
        setattr(server, name, str(tmp_path / "account.json") if is_file else text)
        found = [check.msg for check in run_checks(tags=TAGS, include_deployment_checks=True)]
        assert any(f"token_uri of {name}" in message for message in found) is is_refused


@pytest.mark.parametrize("size", [8, 16, 24, 32])
def test_random_secrets_are_never_refused(size: int) -> None:
    source = random.Random(size)
    rule = safety.SecretRule(min_length=16)
    for _ in range(3_000):
        raw = source.randbytes(size)
        for secret in (raw.hex().encode(), base64.b64encode(raw), raw):
            if len(secret) >= rule.min_length:
                assert safety.secret_problem(rule, secret) is None, secret


def test_warnings_are_logged_at_start(server: Any, caplog: pytest.LogCaptureFixture) -> None:
    server.PUBLIC_URL = "http://127.0.0.1:8000"
    caplog.clear()
    refuse_unsafe_settings()
    assert "PUBLIC_URL is not https" in caplog.text


def warnings(settings: Any, **changes: Any) -> list[str]:
    for name, value in changes.items():
        setattr(settings, name, value)
    found = run_checks(tags=TAGS, include_deployment_checks=True)
    return [str(message.id) for message in found if str(message.id).startswith("notifications.W")]


GOOD = {
    "SENDGRID_API_KEY": "SG.real",
    "SENDGRID_WEBHOOK_PUBLIC_KEY": "a-key",
    "PUBLIC_URL": "https://notify.example.com",
    "EMAIL_FROM": "Shop <notify@shop.example.org>",
}


@pytest.mark.parametrize(
    ("changes", "ids"),
    [
        ({}, []),
        ({"EMAIL_FROM": "Notifications <notifications@example.com>"}, ["W005"]),
        ({"SENDGRID_API_KEY": "SG.sandbox"}, ["W001"]),
        ({"SENDGRID_WEBHOOK_PUBLIC_KEY": ""}, ["W002"]),
        ({"EMAIL_PROVIDERS": ("smtp",), "SENDGRID_WEBHOOK_PUBLIC_KEY": ""}, []),
        ({"PUBLIC_URL": "http://notify.example.com"}, ["W003"]),
        ({"WHATSAPP_TOKEN": "EAAsecret", "WHATSAPP_PHONE_NUMBER_ID": "1" * 15}, ["W004"]),
    ],
)
def test_deploy_check_warns_of_missing_settings(
    settings: Any, changes: dict[str, Any], ids: list[str]
) -> None:
    assert warnings(settings, **(GOOD | changes)) == [
        f"notifications.{notification_id}" for notification_id in ids
    ]
