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


def test_nothing_needs_to_be_set() -> None:
    assert read({}) == Environment()


@pytest.mark.parametrize("name", Environment.__struct_fields__)
def test_an_empty_variable_is_one_that_is_not_set(name: str) -> None:
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
        ("LOG_LEVEL", "DEBUG", "DEBUG"),
        ("LOG_FORMAT", "console", "console"),
        ("SECRET_KEY", "5", "5"),
        ("SENDGRID_API_KEY", "null", "null"),
    ],
)
def test_a_variable_is_read_as_its_type(name: str, text: str, value: Any) -> None:
    assert getattr(read({name: text}), name) == value


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *[("PORT", text) for text in ("http", "-1", "65536", "1.5", "0x50", "80 80")],
        *[("WORKER_THREADS", text) for text in ("0", "513", "many", "-4", "true")],
        *[("BULK_PENDING_LIMIT", text) for text in ("-1", "10000001", "many")],
        *[("BULK_OLDEST_DUE", text) for text in ("0", "86401", "1.5")],
        *[("SMTP_PORT", text) for text in ("smtp", "99999")],
        *[
            ("WHATSAPP_MAX_PER_SECOND", text)
            for text in ("-1", "nan", "inf", "1000001", "80/s", "many")
        ],
        *[("EMAIL_PROVIDER", text) for text in ("mailgun", "SendGrid", "SMTP")],
        *[("SMTP_SECURITY", text) for text in ("ssl", "yes", "TLS")],
        *[("LOG_LEVEL", text) for text in ("debug", "TRACE", "10")],
        ("LOG_FORMAT", "text"),
    ],
)
def test_a_wrong_value_stops_the_start_and_names_the_variable(name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=name):
        read({name: text})


def test_what_is_not_ours_is_not_read() -> None:
    assert read({"HOME": "/root", "port": "1", "PORT_": "1"}) == Environment()


def test_the_environment_goes_before_the_defaults() -> None:
    assert read({"PORT": "1"}, defaults={"PORT": "2", "SMTP_PORT": "3"}).PORT == 1
    assert read({"PORT": ""}, defaults={"PORT": "2"}).PORT == 2


def test_this_process_has_an_environment_that_can_be_read() -> None:
    current = environment.current(defaults={"SECRET_KEY": "x"})
    assert os.environ["MONGODB_URI"] == current.MONGODB_URI


def test_a_stack_that_was_not_started_has_written_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(environment, "STACK_FILE", tmp_path / "stack.json")
    assert environment.local_stack_environment() == {}


def test_a_running_stack_tells_where_it_is_and_a_dead_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "stack.json"
    monkeypatch.setattr(environment, "STACK_FILE", file)
    file.write_bytes(msgspec.json.encode({"pid": os.getpid(), "environment": {"PORT": "1"}}))
    assert environment.local_stack_environment() == {"PORT": "1"}
    file.write_bytes(msgspec.json.encode({"pid": 2**22 + 1, "environment": {"PORT": "1"}}))
    assert environment.local_stack_environment() == {}


def configured(**variables: str) -> dict[str, Any]:
    return configure(read(variables))


@pytest.mark.parametrize(
    ("variables", "url", "key"),
    [
        ({}, "", "SG.sandbox"),
        ({"SANDBOX_URL": "http://127.0.0.1:9/"}, "http://127.0.0.1:9", "SG.sandbox"),
        ({"SENDGRID_API_KEY": "SG.real"}, "https://api.sendgrid.com", "SG.real"),
        (
            {"SENDGRID_API_KEY": "SG.real", "SENDGRID_URL": "https://eu.example.com/"},
            *("https://eu.example.com", "SG.real"),
        ),
    ],
)
def test_mail_goes_to_the_sandbox_unless_there_is_a_key(
    variables: dict[str, str], url: str, key: str
) -> None:
    settings = configured(**variables)
    assert (settings["SENDGRID_URL"], settings["SENDGRID_API_KEY"]) == (url, key)


@pytest.mark.parametrize(
    ("security", "tls", "ssl"),
    [("none", False, False), ("starttls", True, False), ("tls", False, True)],
)
def test_mail_is_encrypted_as_configured(security: str, tls: bool, ssl: bool) -> None:
    settings = configured(SMTP_SECURITY=security)
    assert (settings["EMAIL_USE_TLS"], settings["EMAIL_USE_SSL"]) == (tls, ssl)
    assert settings["EMAIL_TIMEOUT"] == 15


@pytest.mark.parametrize(
    ("uri", "name"),
    [
        ("mongodb://127.0.0.1:27017/notifyproject", "notifyproject"),
        ("mongodb://a:1,b:2/other?replicaSet=rs0", "other"),
        ("mongodb://127.0.0.1:27017", "notifyproject"),
        ("mongodb://127.0.0.1:27017/?replicaSet=rs0", "notifyproject"),
    ],
)
def test_the_uri_names_the_database(uri: str, name: str) -> None:
    database = configured(MONGODB_URI=uri)["DATABASES"]["default"]
    assert (database["HOST"], database["NAME"]) == (uri, name)


def test_what_is_acknowledged_outlives_any_one_server() -> None:
    options = configured()["DATABASES"]["default"]["OPTIONS"]
    assert (options["w"], options["journal"], options["retryWrites"]) == ("majority", True, True)
    assert options["serverSelectionTimeoutMS"] <= 10_000


def test_a_pool_has_a_connection_for_each_thread() -> None:
    options = configured(WORKER_THREADS="64")["DATABASES"]["default"]["OPTIONS"]
    assert options["maxPoolSize"] >= 64


def test_providers_that_have_a_limit_are_kept_to_it() -> None:
    rates = configured()["PROVIDER_RATES"]
    assert rates == {"fcm": (10_000.0, 1_000), "whatsapp": (80.0, 8)}


@pytest.mark.parametrize(
    ("text", "rate"), [("1000", (1_000.0, 100)), ("14", (14.0, 1)), ("0.5", (0.5, 1))]
)
def test_a_tenth_of_a_second_may_go_at_once_and_always_one(
    text: str, rate: tuple[float, int]
) -> None:
    assert configured(SMTP_MAX_PER_SECOND=text)["PROVIDER_RATES"]["smtp"] == rate


def test_a_rate_of_nothing_is_no_limit() -> None:
    assert configured(FCM_MAX_PER_SECOND="0", WHATSAPP_MAX_PER_SECOND="0")["PROVIDER_RATES"] == {}


def test_hosts_are_separated_by_commas() -> None:
    assert configured(ALLOWED_HOSTS=" a.example.com, b.example.com ,,")["ALLOWED_HOSTS"] == [
        "a.example.com",
        "b.example.com",
    ]


def test_urgent_queues_come_first_and_the_service_before_all() -> None:
    names = queue_names()
    assert names[0] == "service"
    assert names[-2:] == ["callbacks", "broadcasts"]
    priorities = [name.partition(".")[2] for name in names[1:-2]]
    assert priorities == sorted(priorities, key=["critical", "high", "normal", "low"].index)
    assert len(names) == len(set(names)) == 1 + 4 * 4 + 2


def test_a_killed_worker_does_not_take_its_hints_along() -> None:
    settings = configured()
    assert settings["CELERY_TASK_ACKS_LATE"]
    assert settings["CELERY_TASK_REJECT_ON_WORKER_LOST"]
    assert settings["CELERY_TASK_IGNORE_RESULT"]
    assert settings["CELERY_WORKER_PREFETCH_MULTIPLIER"] == 1
    assert settings["CELERY_ACCEPT_CONTENT"] == ["json"]


TEXT = (BASE_DIR / ".env.example").read_text(encoding="utf-8")
LINES = re.findall(r"^(#?)([A-Z][A-Z0-9_]*)=(.*)$", TEXT, re.MULTILINE)
FIELDS = {field.name: field.default for field in msgspec.structs.fields(Environment)}


def test_every_variable_is_there_once_and_no_other() -> None:
    assert sorted(name for _, name, _ in LINES) == sorted(FIELDS)


def test_what_is_commented_out_is_the_default() -> None:
    for is_comment, name, value in LINES:
        if is_comment:
            assert value == str(FIELDS[name]), name


def test_what_it_says_can_be_read() -> None:
    """With the two keys that everybody makes for themselves."""
    given = {name: value for _, name, value in LINES}
    found = read(given | {"SECRET_KEY": "x" * 64, "INBOX_SIGNING_KEY": "y" * 64})
    assert found.PUBLIC_URL == "https://notify.example.com"


def test_every_other_line_is_a_remark() -> None:
    for line in TEXT.splitlines():
        assert not line or line.startswith("# ") or re.match(r"#?[A-Z][A-Z0-9_]*=", line), line


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("", set()),
        (" , ,", set()),
        ("files.example.com", {"files.example.com"}),
        (" Files.example.com,cdn.example.com , ", {"files.example.com", "cdn.example.com"}),
    ],
)
def test_attachments_come_from_the_hosts_that_are_listed(text: str, hosts: set[str]) -> None:
    assert configured(ATTACHMENT_HOSTS=text)["ATTACHMENT_HOSTS"] == hosts


@pytest.mark.parametrize("text", ["support@example.com", "The Shop <support@example.com>"])
def test_answers_go_where_it_says(text: str) -> None:
    assert configured(EMAIL_REPLY_TO=text)["EMAIL_REPLY_TO"] == text


def test_answers_go_to_the_sender_if_nothing_is_said() -> None:
    assert configured()["EMAIL_REPLY_TO"] is None
