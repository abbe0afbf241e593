"""REDIS_URL with Sentinels."""

import pytest
from django.core.exceptions import ImproperlyConfigured
from kombu.connection import Connection

from notifyproject.settings.base import configure
from notifyproject.settings.environment import read
from notifyproject.settings.sentinel_url import SentinelAddress, parse

WHOLE = "sentinel://us%40er:pass%3Aword@a.example.com,[::1]:26380/3?master=notify"


@pytest.mark.parametrize(
    "url", ["redis://127.0.0.1:6379/0", "rediss://:secret@valkey/1", "unix:///run/valkey.sock"]
)
def test_other_url_has_no_sentinels(url: str) -> None:
    assert parse(url) is None


def test_whole_url() -> None:
    assert parse(f"{WHOLE}&sentinel_password=other") == SentinelAddress(
        hosts=(("a.example.com", 26379), ("::1", 26380)),
        master="notify",
        database=3,
        username="us@er",
        password="pass:word",
        sentinel_password="other",
    )


def test_short_url() -> None:
    assert parse("sentinel://a?master=m") == SentinelAddress(hosts=(("a", 26379),), master="m")


@pytest.mark.parametrize(
    "url",
    [
        "sentinel://a:26379/0",
        "sentinel://a/0?master=",
        "sentinel:///0?master=m",
        "sentinel://a,,b/0?master=m",
        "sentinel://a:port/0?master=m",
        "sentinel://a/zero?master=m",
        "sentinel://a/0?master=m&mastr=n",
        "sentinel://:secret@a:99999/0?master=m",
    ],
)
def test_unusable_url_is_refused_without_its_password(url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match="REDIS_URL: expected sentinel://") as refused:
        parse(url)
    assert "secret" not in str(refused.value)


def test_celery_gets_each_sentinel_and_the_name_of_the_primary() -> None:
    settings = configure(
        read({"REDIS_URL": WHOLE, "SECRET_KEY": "x", "INBOX_SIGNING_KEY": "x" * 32})
    )
    options = settings["CELERY_BROKER_TRANSPORT_OPTIONS"]
    connection = Connection(settings["CELERY_BROKER_URL"], transport_options=options)
    assert connection.transport_cls == "sentinel"
    assert [url.partition("@")[2] for url in connection.alt] == [
        "a.example.com:26379/3",
        "[::1]:26380/3",
    ]
    assert (connection.userid, connection.password) == ("us@er", "pass:word")
    assert options["master_name"] == "notify"
    assert options["sentinel_kwargs"]["socket_timeout"] == 1
