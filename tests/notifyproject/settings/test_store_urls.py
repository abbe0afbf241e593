"""URLs of MongoDB, Valkey, and RabbitMQ that a driver would take for something else."""

import pytest
from django.core.exceptions import ImproperlyConfigured

from notifyproject.settings.base import configure
from notifyproject.settings.environment import read
from notifyproject.settings.store_urls import mongodb_database
from tests.support.tables import each_case

SPECIAL = "its user or password has a special character"
HOST = "a host or its port is missing or invalid"
OPTION = "is unknown or has an invalid value"
REFUSED = {
    "MONGODB_URI": [
        ("mongodb://ada:Hid/den1@db.test/n", SPECIAL),
        ("mongodb://ada:Hid@den1@db.test/n", SPECIAL),
        ("mongodb://ada:Hid:den1@db.test/n", SPECIAL),
        ("mongodb://ada:Hid#den1@db.test/n", SPECIAL),
        ("mongodb://ada:Hid?den1@db.test/n", HOST),
        ("mongodb://ada:Hid%zzden1@db.test/n", "it can't be read"),
        ("mongodb://ada:Hidden1@/n", HOST),
        ("MongoDB://ada:Hidden1@db.test/n", "doesn't begin with mongodb://"),
        ("mongodb:///n", HOST),
        ("mongodb://db.test:/n", HOST),
        ("mongodb://db.test:mongo/n", HOST),
        ("mongodb://db.test:99999/n", "a port is not from 1 to 65535"),
        ("mongodb://::1:27017/n", HOST),
        ("mongodb://a.test;b.test/n", HOST),
        ("mongodb://a.test,/n", HOST),
        ("mongodb+srv://ada:Hidden1@a.test,b.test/n", "has one host, without a port"),
        ("mongodb+srv://ada:Hidden1@a.test:27017/n", "has one host, without a port"),
        ("mongodb://db.test/a.b", "the name of the database is invalid"),
        ("mongodb://db.test/n?replicaSett=rs0", f"option replicaSett {OPTION}"),
        ("mongodb://db.test/n?tls=maybe", f"option tls {OPTION}"),
        ("mongodb://db.test/n?authMechanism=Hidden1", f"option authMechanism {OPTION}"),
        ("mongodb://db.test/n?tls=true&tlsCAFile=/nowhere.pem", f"option tlsCAFile {OPTION}"),
        ("mongodb://db.test/n?tls=true&ssl=false", "its options contradict each other"),
        ("mongodb://db.test/n?readPreference=secondary", "a secondary that lags would be read"),
    ],
    "REDIS_URL": [
        ("redis://:Hid/den1@valkey.test/0", SPECIAL),
        ("redis://:Hid@den1@valkey.test/0", SPECIAL),
        ("redis://:Hid#den1@valkey.test/0", SPECIAL),
        ("redis://:Hid?den1@valkey.test/0", HOST),
        ("redis://Hidden1@valkey.test/0", "it has a user without a password"),
        ("redis://", HOST),
        ("Redis://:Hidden1@valkey.test/0", "doesn't begin with redis://"),
        ("redis://valkey.test:/0", HOST),
        ("redis://valkey.test:redis/0", HOST),
        ("redis://valkey.test:70000/0", "a port is not from 1 to 65535"),
        ("redis://::1:6379/0", HOST),
        ("redis://a.test,b.test:6379/0", HOST),
        ("redis://valkey.test/zero", "its path isn't the number of a database"),
        ("redis://valkey.test/-1", "its path isn't the number of a database"),
        ("redis://valkey.test/0?nosuch=1", "it or an option can't be read"),
        ("redis://valkey.test/0?socket_timeout=5s", "it or an option can't be read"),
        ("rediss://valkey.test/0?ssl_cert_reqs=maybe", "it or an option can't be read"),
    ],
    "BROKER_URL": [
        ("amqp://ada:Hid/den1@rabbit.test//", SPECIAL),
        ("amqp://ada:Hid@den1@rabbit.test//", SPECIAL),
        ("amqp://rabbit.test:amqp//", HOST),
        ("amqp://rabbit.test:99999//", "a port is not from 1 to 65535"),
        ("amqp://ada:Hidden1@a.test:5672,b.test:5672//", HOST),
        ("amqp://a.test//;redis://b.test", "it has another scheme"),
        ("AMQP://ada:Hidden1@rabbit.test//", "doesn't begin with amqp://"),
        ("amqp://a.test//;AMQP://b.test//", "it has another scheme"),
    ],
}


@each_case("name", REFUSED)
def test_url_that_a_driver_would_misread_is_refused_without_its_password(name: str) -> None:
    for url, problem in REFUSED[name]:
        with pytest.raises(ImproperlyConfigured) as refused:
            configure(read({name: url}))
        text = str(refused.value)
        assert text.startswith(f"environment variable {name}: "), url
        assert problem in text, url
        assert not any(part in text for part in ("Hid", "den1")), url


@each_case(
    "name, url",
    [
        ("MONGODB_URI", "mongodb://ada:p%40%3A%2F%25@[::1]:27017/n?replicaSet=rs0"),
        ("MONGODB_URI", "mongodb://a.test,b.test:27018,[fd00::1]/n?replicaSet=rs0"),
        ("MONGODB_URI", "mongodb://%2Ftmp%2Fmongodb-27017.sock/n"),
        ("MONGODB_URI", "mongodb+srv://ada:secret@cluster0.a.test/n?retryWrites=true&w=majority"),
        ("MONGODB_URI", "mongodb+srv://cluster0.a.test/n?srvMaxHosts=2"),
        ("MONGODB_URI", "mongodb://a_b.test/n?authSource=admin&readPreference=primary"),
        ("REDIS_URL", "redis://:p%40%3A%2F%25@[::1]:6379/0"),
        ("REDIS_URL", "rediss://ada:secret@valkey.test?ssl_cert_reqs=none"),
        ("REDIS_URL", "redis://my_valkey"),
        ("REDIS_URL", "unix://:secret@/run/valkey.sock?db=1"),
        ("BROKER_URL", "amqp://ada:p%40%2F@[::1]:5672/vhost"),
        ("BROKER_URL", "amqps://a.test//;amqps://b.test//"),
    ],
)
def test_url_is_accepted(name: str, url: str) -> None:
    assert configure(read({name: url}))


def test_database_is_that_of_the_uri_also_without_dns() -> None:
    """A driver asks DNS for the hosts of ``mongodb+srv``, which may be away at the start."""
    assert mongodb_database("mongodb+srv://ada:secret@nowhere.invalid/orders") == "orders"
    assert mongodb_database("mongodb+srv://nowhere.invalid") == "notifyproject"
