"""Environment variables: types, errors, .env.example, and mail settings."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured

from notifyproject.settings import environment
from notifyproject.settings.base import configure, queue_names
from notifyproject.settings.environment import BASE_DIR, Environment, read


def test_defaults_are_enough() -> None:
    assert read({}) == Environment()


@pytest.mark.parametrize("name", Environment.__struct_fields__)
def test_empty_variable_counts_as_unset(name: str) -> None:
    assert read({name: ""}) == Environment()


@pytest.mark.parametrize(
    ("name", "text", "value"),
    [
        ("PORT", "0", 0),
        ("PORT", "65535", 65535),
        ("WORKER_THREADS", "1", 1),
        ("WORKER_THREADS", "512", 512),
        ("BULK_PENDING_LIMIT", "0", 0),
        ("BULK_OLDEST_DUE", "60", 60),
        ("SMTP_PORT", "587", 587),
        ("WHATSAPP_MAX_PER_SECOND", "1000", 1000.0),
        ("SMTP_MAX_PER_SECOND", "0.5", 0.5),
        ("FCM_MAX_PER_SECOND", "0", 0.0),
        ("EMAIL_PROVIDER", "smtp", "smtp"),
        ("SMTP_SECURITY", "starttls", "starttls"),
        ("SMTP_EHLO_NAME", "mail.example.com", "mail.example.com"),
        ("LOG_LEVEL", "DEBUG", "DEBUG"),
        ("LOG_FORMAT", "console", "console"),
        ("SECRET_KEY", "5", "5"),
        ("SENDGRID_API_KEY", "null", "null"),
    ],
)
def test_variable_is_converted(name: str, text: str, value: Any) -> None:
    assert getattr(read({name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("PORT", text) for text in ("http", "-1", "65536", "1.5", "0x50", "80 80")],
        *[("WORKER_THREADS", text) for text in ("0", "513", "many", "-4", "true")],
        *[("BULK_PENDING_LIMIT", text) for text in ("-1", "10000001", "many")],
        *[("BULK_OLDEST_DUE", text) for text in ("0", "86401", "1.5")],
        *[("SMTP_PORT", text) for text in ("smtp", "99999")],
        *[("SMTP_MAX_PER_SECOND", text) for text in ("-1", "nan", "inf", "1000001", "80/s", "x")],
        *[("EMAIL_PROVIDER", text) for text in ("mailgun", "SendGrid", "SMTP")],
        *[("SMTP_SECURITY", text) for text in ("ssl", "yes", "TLS")],
        *[("SMTP_EHLO_NAME", text) for text in ("a b", "mail.example.com\r\nX", "a..b", "[mail]")],
        *[("LOG_LEVEL", text) for text in ("debug", "TRACE", "10")],
        ("LOG_FORMAT", "text"),
    ],
)
def test_invalid_value_names_the_variable(name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        read({name: text})


def test_unknown_variables_are_ignored() -> None:
    assert read({"HOME": "/root", "port": "1", "PORT_": "1"}) == Environment()


def test_environment_overrides_defaults() -> None:
    assert read({"PORT": "1"}, defaults={"PORT": "2", "SMTP_PORT": "3"}).PORT == 1
    assert read({"PORT": ""}, defaults={"PORT": "2"}).PORT == 2


def test_current_environment_is_readable() -> None:
    current = environment.current(defaults={"SECRET_KEY": "x"})
    assert os.environ["MONGODB_URI"] == current.MONGODB_URI


def test_only_a_running_stack_has_an_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stack.json"
    monkeypatch.setattr(environment, "STACK_FILE", file)
    assert environment.local_stack_environment() == {}
    for pid, expected in ((os.getpid(), {"PORT": "1"}), (2**22 + 1, {})):
        file.write_bytes(msgspec.json.encode({"pid": pid, "environment": {"PORT": "1"}}))
        assert environment.local_stack_environment() == expected


def configured(**variables: str) -> dict[str, Any]:
    return configure(read(variables))


SANDBOX_MAIL = {"SENDGRID_URL": "", "SENDGRID_API_KEY": "SG.sandbox"}
EU = "https://eu.example.com"
RATES = {"fcm": (10_000.0, 1_000), "whatsapp": (80.0, 8)}


@pytest.mark.parametrize(
    ("variables", "settings"),
    [
        ({}, SANDBOX_MAIL),
        ({"SANDBOX_URL": "http://h:9/"}, SANDBOX_MAIL | {"SENDGRID_URL": "http://h:9"}),
        (
            {"SENDGRID_API_KEY": "SG.real"},
            {"SENDGRID_URL": "https://api.sendgrid.com", "SENDGRID_API_KEY": "SG.real"},
        ),
        (
            {"SENDGRID_API_KEY": "SG.real", "SENDGRID_URL": f"{EU}/"},
            {"SENDGRID_URL": EU, "SENDGRID_API_KEY": "SG.real"},
        ),
        ({"SMTP_SECURITY": "none"}, {"EMAIL_USE_TLS": False, "EMAIL_USE_SSL": False}),
        ({"SMTP_SECURITY": "starttls"}, {"EMAIL_USE_TLS": True, "EMAIL_USE_SSL": False}),
        ({"SMTP_SECURITY": "tls"}, {"EMAIL_USE_TLS": False, "EMAIL_USE_SSL": True}),
        ({}, {"EMAIL_TIMEOUT": 15, "EMAIL_REPLY_TO": None, "PROVIDER_RATES": RATES}),
        ({"EMAIL_REPLY_TO": "Ada <a@example.com>"}, {"EMAIL_REPLY_TO": "Ada <a@example.com>"}),
        ({"FCM_MAX_PER_SECOND": "0", "WHATSAPP_MAX_PER_SECOND": "0"}, {"PROVIDER_RATES": {}}),
        ({"SMTP_MAX_PER_SECOND": "1000"}, {"PROVIDER_RATES": RATES | {"smtp": (1_000.0, 100)}}),
        ({"SMTP_MAX_PER_SECOND": "14"}, {"PROVIDER_RATES": RATES | {"smtp": (14.0, 1)}}),
        ({"SMTP_MAX_PER_SECOND": "0.5"}, {"PROVIDER_RATES": RATES | {"smtp": (0.5, 1)}}),
        ({"ALLOWED_HOSTS": " a.test, b.test ,,"}, {"ALLOWED_HOSTS": ["a.test", "b.test"]}),
        ({"ATTACHMENT_HOSTS": ""}, {"ATTACHMENT_HOSTS": set()}),
        ({"ATTACHMENT_HOSTS": " , ,"}, {"ATTACHMENT_HOSTS": set()}),
        ({"ATTACHMENT_HOSTS": " A.test,b.test , "}, {"ATTACHMENT_HOSTS": {"a.test", "b.test"}}),
        (
            {},  # a killed worker leaves its wake-ups
            {
                "CELERY_TASK_ACKS_LATE": True,
                "CELERY_TASK_REJECT_ON_WORKER_LOST": True,
                "CELERY_TASK_IGNORE_RESULT": True,
                "CELERY_WORKER_PREFETCH_MULTIPLIER": 1,
                "CELERY_ACCEPT_CONTENT": ["json"],
            },
        ),
    ],
)
def test_variables_become_settings(variables: dict[str, str], settings: dict[str, Any]) -> None:
    found = configured(**variables)
    assert {name: found[name] for name in settings} == settings


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("mongodb://127.0.0.1:27017/notifyproject", "notifyproject"),
        ("mongodb://a:1,b:2/other?replicaSet=rs0", "other"),
        ("mongodb://127.0.0.1:27017", "notifyproject"),
        ("mongodb://127.0.0.1:27017/?replicaSet=rs0", "notifyproject"),
    ],
)
def test_database_is_named_by_the_uri_and_writes_need_a_journaled_majority(
    uri: str, name: str
) -> None:
    database = configured(MONGODB_URI=uri)["DATABASES"]["default"]
    assert (database["HOST"], database["NAME"]) == (uri, name)
    options = database["OPTIONS"]
    assert (options["w"], options["journal"], options["retryWrites"]) == ("majority", True, True)
    assert options["serverSelectionTimeoutMS"] <= 10_000


def test_pool_has_a_connection_per_thread() -> None:
    options = configured(WORKER_THREADS="64")["DATABASES"]["default"]["OPTIONS"]
    assert options["maxPoolSize"] >= 64


def test_service_queue_comes_first_and_then_by_priority() -> None:
    names = queue_names()
    assert names[0] == "service"
    assert names[-2:] == ["callbacks", "broadcasts"]
    kinds = [name.partition(".")[2] or name for name in names[1:-2]]
    assert kinds == sorted(kinds, key=["critical", "high", "normal", "digests", "low"].index)
    assert len(names) == len(set(names)) == 1 + 4 * 4 + 3


TEXT = (BASE_DIR / ".env.example").read_text(encoding="utf-8")
LINES = re.findall(r"^(#?)([A-Z][A-Z0-9_]*)=(.*)$", TEXT, re.MULTILINE)
FIELDS = {field.name: field.default for field in msgspec.structs.fields(Environment)}


COMPOSE_ONLY = ("MONGODB_PASSWORD", "VALKEY_PASSWORD")


def test_example_file_lists_every_variable_once() -> None:
    assert sorted(name for _, name, _ in LINES) == sorted([*FIELDS, *COMPOSE_ONLY])


def test_commented_values_are_the_defaults() -> None:
    for is_comment, name, value in LINES:
        if is_comment:
            assert value == str(FIELDS[name]), name


def test_example_file_is_valid() -> None:
    """The example file lacks only the two keys that every installation creates."""
    given = {name: value for _, name, value in LINES}
    found = read(given | {"SECRET_KEY": "x" * 64, "INBOX_SIGNING_KEY": "y" * 64})
    assert found.PUBLIC_URL == "https://notify.example.com"


def test_other_lines_are_comments() -> None:
    for line in TEXT.splitlines():
        assert not line or line.startswith("# ") or re.match(r"#?[A-Z][A-Z0-9_]*=", line), line


PAGE = (BASE_DIR / "docs" / "reference" / "settings.md").read_text(encoding="utf-8")


def test_settings_page_lists_every_variable_with_its_default() -> None:
    rows = re.findall(r"^\| `([A-Z_]+)` \| (.*?) ?\| ", PAGE, re.MULTILINE)
    assert sorted(rows) == sorted((name, str(default)) for name, default in FIELDS.items())


def test_silent_primary_is_noticed_within_five_seconds() -> None:
    """A host that disappears closes no connection; only the heartbeat's time limit tells."""
    options = configured()["DATABASES"]["default"]["OPTIONS"]
    assert options["heartbeatFrequencyMS"] + options["connectTimeoutMS"] <= 5_000
