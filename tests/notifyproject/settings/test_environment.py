"""Environment variables: kinds, errors, the documents of them, and mail settings."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.core.exceptions import ImproperlyConfigured

from domain.channels import Channel
from notifyproject.settings import documents, environment
from notifyproject.settings.base import configure, queue_names
from notifyproject.settings.environment import read
from notifyproject.settings.variables import URLS, VARIABLES, Environment
from tests.support.tables import each_case


def test_defaults_are_enough() -> None:
    assert read({}) == Environment()


@each_case("name", VARIABLES)
def test_empty_variable_counts_as_unset(name: str) -> None:
    assert read({name: ""}) == Environment()


@each_case(
    "name, text, value",
    [
        ("SMTP_PORT", "0", 0),
        ("SMTP_PORT", "65535", 65535),
        ("WORKER_THREADS", "1", 1),
        ("WORKER_THREADS", "512", 512),
        ("BULK_PENDING_LIMIT", "0", 0),
        ("WEB_CLIENT_SECONDS", "1.5", 1.5),
        ("EMAIL_PROVIDER", "smtp", ("smtp",)),
        ("EMAIL_PROVIDER", "smtp, sendgrid", ("smtp", "sendgrid")),
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


@each_case(
    "name, text",
    [
        *[("SMTP_PORT", text) for text in ("smtp", "http", "-1", "65536", "1.5", "0x50", "80 80")],
        *[("WORKER_THREADS", text) for text in ("0", "513", "many", "-4", "true")],
        *[("BULK_PENDING_LIMIT", text) for text in ("-1", "10000001", "many")],
        *[
            ("PROVIDER_MAX_PER_SECOND", f"smtp:{text}")
            for text in (
                "-1",
                "nan",
                "inf",
                "1000001",
                "80/s",
                "x",
                "",
                "1,smtp:2",
                "10k",
                "10_000",
            )
        ],
        *[("RATE_LIMITS", text) for text in ("600", "inbox:many", "all:1", "read:-1", "read:1.5")],
        *[("PROVIDER_MAX_PER_SECOND", text) for text in ("14", "mandrill:1", "smtp=14", ":1")],
        *[("WEB_CLIENT_SECONDS", text) for text in ("0", "nan", "601", "10s")],
        *[("EMAIL_PROVIDER", text) for text in ("mandrill", "SendGrid", "SMTP", "smtp,smtp", ",")],
        *[("SMTP_SECURITY", text) for text in ("ssl", "yes", "TLS")],
        *[("SMTP_EHLO_NAME", text) for text in ("a b", "a..b", "[mail]")],
        *[("LOG_LEVEL", text) for text in ("debug", "TRACE", "10")],
        ("LOG_FORMAT", "text"),
        *[("RETENTION_CONTENT_DAYS", text) for text in ("30d", "P30D", "1,000")],
        *[("WORKER_MAX_MEMORY_MB", text) for text in ("600MB", "1g", "0.5")],
        *[("SMTP_HOST", text) for text in ("smtp.example.com:587", "smtps://a.test", "[::1]")],
        *[("WHATSAPP_API_VERSION", text) for text in ("26.0", "v26", "V26.0")],
        *[("WHATSAPP_PHONE_NUMBER_ID", text) for text in ("+15550001", "my number")],
        ("WHATSAPP_BUSINESS_ACCOUNT_ID", "shop"),
        ("SENDGRID_WEBHOOK_PUBLIC_KEY", "-----BEGIN PUBLIC KEY-----"),
        ("ALERT_RECIPIENTS", "ops@a.test; dev@a.test"),
    ],
)
def test_invalid_value_names_the_variable_and_what_is_expected(name: str, text: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read({name: text})
    assert f"environment variable {name}: expected " in str(refused.value)
    assert repr(text) not in str(refused.value)


def test_every_wrong_variable_is_named_at_once() -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read({"SMTP_PORT": "http", "SECRET_KEY": "a-key\n", "LOG_LEVEL": "debug"})
    assert [line.split(":")[0] for line in str(refused.value).splitlines()] == [
        "environment variable SECRET_KEY",
        "environment variable LOG_LEVEL",
        "environment variable SMTP_PORT",
    ]


LEFTOVERS = {
    "has only blanks": ("  ", "\t", "\n", "\u00a0"),
    "ends in a line break": ("{}\n", "{}\r\n", "{}\r", "{}\u2028"),
    "ends in a space": ("{} ",),
    "ends in the invisible character": ("{}\u00a0", "{}\u200b", "{}\t"),
    "begins with a space": (" {}",),
    "begins with the invisible character U+FEFF": ("\ufeff{}",),
    "is in quotes": ('"{}"', "'{}'", "\u201c{}\u201d"),
    "is a placeholder": ("${{NAME}}", "${{NAME:-{}}}", "<your-key>", "$NAME", "{{{{ name }}}}"),
    "has a comment": ("{} # of the shop", "{}\t#"),
    "contains a line break": ("{0}\n{0}",),
}
"""What a file, a shell, or a template leaves in a value, and how the refusal calls it."""
TEXTS = [
    name
    for name, variable in VARIABLES.items()
    if not variable.kind.words and not isinstance(variable.value, (bool, int, float))
]
SAMPLES = {
    "MONGODB_URI": "mongodb://ada:Hidden1@db.test/notify",
    "REDIS_URL": "redis://:Hidden1@valkey.test/0",
    "BROKER_URL": "amqp://ada:Hidden1@rabbit.test//",
}


@each_case("name", TEXTS)
def test_leftover_of_a_file_or_a_template_is_refused_by_name(name: str) -> None:
    """Docker's ``--env-file`` keeps quotes and comments, and a Secret of a file its line break.

    https://github.com/docker/cli/issues/3630, https://github.com/kubernetes/kubernetes/issues/23404
    """
    sample = SAMPLES.get(name, "Hidden1")
    is_password = name == "SMTP_PASSWORD"
    for problem, forms in LEFTOVERS.items():
        for form in forms:
            # Nobody but the mail server knows what a password may be, apart from its ends.
            if is_password and not problem.startswith(("has only", "ends", "begins")):
                assert read({name: form.format(sample)})
                continue
            with pytest.raises(ImproperlyConfigured) as refused:
                read({name: form.format(sample)})
            assert str(refused.value).startswith(f"environment variable {name}: {problem}"), form
            assert "Hidden1" not in str(refused.value)


@each_case(
    "name, text",
    [
        ("EMAIL_FROM", '"Shop, Inc." <a@example.com>'),
        ("EMAIL_FROM", "<a@example.com>"),
        ("EMAIL_FROM", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645 <a@example.com>"),
        ("OIDC_NAME", "Ada's sign-in"),
        ("OIDC_NAME", "Shop #1"),
        ("FCM_CREDENTIALS", '{"type": "service_account"}\n'),
        ("FCM_CREDENTIALS", '\n{\n  "type": "service_account"\n}\n'),
        ("FCM_CREDENTIALS", "/run/secrets/fcm.json"),
        ("SMTP_PASSWORD", '"abcd efgh # 1"'),
        ("SMTP_HOST", "2001:db8::1"),
        ("SMTP_HOST", "mail_1"),
        ("FCM_URL", "http://my_sandbox:8001"),
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://[fd00::1]:4318"),
        ("SECRET_KEY_FALLBACKS", "one,two"),
        ("LOG_LEVEL", "WARNING"),
    ],
)
def test_unusual_value_is_taken_as_it_is(name: str, text: str) -> None:
    assert str(getattr(read({name: text}), name)) in (text, text.capitalize())


def test_list_may_have_blanks_and_a_comma_at_its_end() -> None:
    found = read({"INBOX_ORIGINS": "https://a.test, https://b.test", "ALERT_RECIPIENTS": "a, b,"})
    assert {"https://a.test", "https://b.test"} == found.INBOX_ORIGINS
    assert found.ALERT_RECIPIENTS == ("a", "b")


WEB_URLS = [
    name for name, rule in URLS.items() if "https" in rule.schemes and name != "INBOX_ORIGINS"
]


@each_case("name", WEB_URLS)
@each_case(
    "url, problem",
    [
        ("notify.example.com", "doesn't begin with https:// or http://"),
        ("ftp://notify.example.com", "doesn't begin with https:// or http://"),
        ("HTTPS://notify.example.com", "doesn't begin with https:// or http://"),
        ("https://notify example.com", "contains a blank"),
        ("https://ada:Hidden1@notify.example.com", "has a user or a password"),
        ("https://notify.example.com?key=Hidden1", "has a query or a fragment"),
        *[
            (url, "has no valid host and port")
            for url in (
                "https://",
                "https:///path",
                "https://a.test:https",
                "https://a.test:99999",
                "https://a.test:0",
                "https://a.test:",
                "https://::1",
                "https://[::1",
                "https://[::zz]",
                "https://a.test,https://b.test",
                "https://a.test;",
                "https://-a.test",
                "https://a..",
                "https://*.a.test",
            )
        ],
    ],
)
def test_url_that_names_no_single_host_is_refused(name: str, url: str, problem: str) -> None:
    with pytest.raises(ImproperlyConfigured) as refused:
        read({name: url})
    assert str(refused.value) == f"environment variable {name}: {problem}."


def test_unknown_variables_are_ignored() -> None:
    assert read({"HOME": "/root", "smtp_port": "1", "SMTP_PORT_": "1"}) == Environment()


def test_environment_overrides_defaults() -> None:
    defaults = {"WORKER_THREADS": "2"}
    assert read({"WORKER_THREADS": "1"}, defaults=defaults | {"HSTS": "host"}).WORKER_THREADS == 1
    assert read({"WORKER_THREADS": ""}, defaults=defaults).WORKER_THREADS == 2


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
RATES = {
    "resend": (5.0, 1),
    "fcm": (10_000.0, 1_000),
    "whatsapp": (80.0, 8),
    "twilio": (1.0, 1),
    "aws_sms": (1.0, 1),
}


@each_case(
    "variables, settings",
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
        (
            {"PROVIDER_MAX_PER_SECOND": "fcm:0, whatsapp:0,twilio:0,aws_sms:0,resend:0"},
            {"PROVIDER_RATES": {}},
        ),
        (
            {"PROVIDER_MAX_PER_SECOND": "smtp:1000"},
            {"PROVIDER_RATES": RATES | {"smtp": (1_000.0, 100)}},
        ),
        ({"PROVIDER_MAX_PER_SECOND": "smtp:14,"}, {"PROVIDER_RATES": RATES | {"smtp": (14.0, 1)}}),
        ({"PROVIDER_MAX_PER_SECOND": "smtp:0.5"}, {"PROVIDER_RATES": RATES | {"smtp": (0.5, 1)}}),
        (
            {"RATE_LIMITS": "inbox:0,read:5"},
            {"RATE_LIMIT_READ": 5, "RATE_LIMIT_INBOX": 0, "RATE_LIMIT_FAILED": 300},
        ),
        ({"ALLOWED_HOSTS": "a.test, b.test ,,"}, {"ALLOWED_HOSTS": ["a.test", "b.test"]}),
        ({"ATTACHMENT_HOSTS": ""}, {"ATTACHMENT_HOSTS": set()}),
        ({"ATTACHMENT_HOSTS": ", ,"}, {"ATTACHMENT_HOSTS": set()}),
        ({"ATTACHMENT_HOSTS": "A.test,b.test ,"}, {"ATTACHMENT_HOSTS": {"a.test", "b.test"}}),
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


@each_case(
    "uri, name",
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
    assert len(names) == len(set(names)) == 1 + 4 * len(Channel) + 3


@each_case("path", documents.documents())
def test_document_is_what_the_declarations_say(path: str) -> None:
    text = (environment.BASE_DIR / path).read_text(encoding="utf-8")
    assert text == documents.documents()[path], "run make settings"


def test_example_file_is_valid() -> None:
    """The example file lacks only the keys that every installation creates."""
    given = dict(
        re.findall(r"^#?([A-Z][A-Z0-9_]*)=(.*)$", documents.documents()[".env.example"], re.M)
    )
    assert given.keys() - VARIABLES.keys() == {"MONGODB_PASSWORD", "VALKEY_PASSWORD"}
    assert read(given).PUBLIC_URL == "https://notify.example.com"


def test_silent_primary_is_noticed_within_five_seconds() -> None:
    """A host that disappears closes no connection; only the heartbeat's time limit tells."""
    options = configured()["DATABASES"]["default"]["OPTIONS"]
    assert options["heartbeatFrequencyMS"] + options["connectTimeoutMS"] <= 5_000
