"""REDIS_URL with Sentinels."""

from ipaddress import IPv6Address

import pytest
from django.core.exceptions import ImproperlyConfigured
from kombu.connection import Connection

from notifyproject.settings.base import configure
from notifyproject.settings.environment import read
from notifyproject.settings.sentinel_url import SentinelAddress, parse
from tests.support.tables import each_case

WHOLE = "sentinel://us%40er:pass%3Aword@a.example.com,[::1]:26380/3?master=notify"


@each_case(
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


@each_case(
    "hosts, expected",
    [
        ("[::1]", [("::1", 26379)]),
        ("[::1]:1,[2001:DB8::0:2]:2", [("::1", 1), ("2001:db8::2", 2)]),
        (
            "a.example.com,[::1]:26380,10.0.0.7:3",
            [("a.example.com", 26379), ("::1", 26380), ("10.0.0.7", 3)],
        ),
        ("[::ffff:10.0.0.7]:5", [(str(IPv6Address("::ffff:a00:7")), 5)]),
        ("Sentinel_1:,b-2", [("sentinel_1", 26379), ("b-2", 26379)]),
    ],
)
def test_list_of_hosts_with_addresses(hosts: str, expected: list[tuple[str, int]]) -> None:
    found = parse(f"sentinel://:pw@{hosts}/0?master=m")
    assert found is not None
    assert list(found.hosts) == expected


def test_password_may_have_what_no_host_has() -> None:
    # Each Python's urlsplit refuses this text, some only the list with an address.
    found = parse("sentinel://us[er:p[w]@x@a,[::1]:26380/0?master=m")
    assert found is not None
    assert (found.username, found.password, found.hosts[1]) == ("us[er", "p[w]@x", ("::1", 26380))


def test_short_url() -> None:
    assert parse("sentinel://a?master=m") == SentinelAddress(hosts=(("a", 26379),), master="m")


@each_case(
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
        "sentinel://:secret@a:0/0?master=m",
        "sentinel://:secret@[::1/0?master=m",
        "sentinel://:secret@[127.0.0.1]/0?master=m",
        "sentinel://:secret@::1:26379/0?master=m",
        "sentinel://:secret@[::1]a,b/0?master=m",
        "sentinel://:secret@a b/0?master=m",
        "sentinel://:secret@a/0?master=m#x",
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


STORES = [
    ("REDIS_URL", "redis://:s3cret[@valkey/0"),
    ("REDIS_URL", "http://:s3cret@valkey/0"),
    ("REDIS_URL", "redis://:s3cret@valkey:x/0"),
    ("REDIS_URL", "sentinel://:s3cret@valkey/0"),
    ("MONGODB_URI", "http://u:s3cret@db/notify"),
    ("MONGODB_URI", "mongodb://u:s3cret@x@db/notify"),
    ("MONGODB_URI", "mongodb://u:s3cret@[::1/notify"),
    ("BROKER_URL", "http://u:s3cret@rabbit"),
]


@each_case("name, url", STORES)
def test_unusable_store_is_refused_by_its_name_without_its_password(name: str, url: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=f"{name}") as refused:
        configure(read({name: url}))
    assert "s3cret" not in str(refused.value)
    assert refused.value.__cause__ is None or "s3cret" not in str(refused.value.__cause__)


@each_case(
    "name, url",
    [
        ("MONGODB_URI", "mongodb://u:p%5B@a.example.com,[::1]:27018,[2001:db8::2]/notify"),
        ("REDIS_URL", "redis://u:p%5B@[::1]:6379/0"),
        ("REDIS_URL", "unix:///run/valkey.sock?db=1"),
        ("BROKER_URL", "amqps://u:p%5B@[::1]:5671//"),
    ],
)
def test_store_may_have_an_address(name: str, url: str) -> None:
    settings = configure(read({name: url}))
    stores = (
        settings["DATABASES"]["default"]["HOST"],
        settings["REDIS_URL"],
        settings["CELERY_BROKER_URL"],
    )
    assert url in stores
