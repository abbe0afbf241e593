"""The URLs of MongoDB, Valkey, and RabbitMQ: whether their drivers read them as they are meant.

A driver takes a password with an unescaped ``/`` for the name of a host, and an unknown option for
a problem of its first connection. Here, both prevent the start. No message has the URL.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlencode

from django.core.exceptions import ImproperlyConfigured
from pymongo.errors import PyMongoError
from pymongo.uri_parser import parse_uri
from redis import ConnectionPool
from redis.exceptions import RedisError

from . import sentinel_url
from .sentinel_url import MAX_PORT

DEFAULT_DATABASE = "notifyproject"
_ENCODED = "with special characters of user and password percent-encoded"
MONGODB = (
    "mongodb://[user:password@]host[:port],host[:port]/database?replicaSet=name, or "
    f"mongodb+srv://[user:password@]host/database, {_ENCODED}"
)
VALKEY = (
    "redis://[user:password@]host[:port]/0, rediss://\u2026, unix://\u2026, or sentinel://\u2026, "
    f"{_ENCODED}"
)
RABBITMQ = f"amqp://[user:password@]host[:port]/[vhost], or amqps://\u2026, {_ENCODED}"
_HOST = re.compile(r"(?:\[[0-9a-f:.%]+\]|[\w.-]+)(?::(?P<port>\d{1,5}))?", re.I)
_SOCKET = re.compile(r"%2f[\w.%-]+", re.I)
_DATABASE = re.compile(r'[^/\\. "$*<>:|?@%;,]{1,63}')


def mongodb_database(uri: str) -> str:
    """Return the database that MONGODB_URI names. Raises ImproperlyConfigured."""
    scheme, authority, path, query = _parts(uri)
    is_found_by_name = scheme == "mongodb+srv"
    hosts = _hosts("MONGODB_URI", MONGODB, authority, path, is_list=True)
    if is_found_by_name and (len(hosts) != 1 or ":" in hosts[0]):
        raise _refused("MONGODB_URI", "mongodb+srv:// has one host, without a port", MONGODB)
    if path and not _DATABASE.fullmatch(path):
        raise _refused("MONGODB_URI", "the name of the database is invalid", MONGODB)
    options = dict(parse_qsl(query, keep_blank_values=True))
    # Without asking DNS, which may be away: the driver asks it when it connects.
    kept = {name: text for name, text in options.items() if not name.lower().startswith("srv")}
    address = f"mongodb://{authority}/{path}"
    if scheme not in ("mongodb", "mongodb+srv") or not _is_readable(address, {}):
        raise _refused("MONGODB_URI", "it can't be read", MONGODB)
    for name, text in kept.items():
        if name.lower() == "readpreference" and text.lower() != "primary":
            raise _refused("MONGODB_URI", "a secondary that lags would be read", MONGODB)
        if not _is_readable("mongodb://host/", {name: text}):
            problem = f"its option {name} is unknown or has an invalid value"
            raise _refused("MONGODB_URI", problem, MONGODB)
    if not _is_readable(address, kept):
        raise _refused("MONGODB_URI", "its options contradict each other", MONGODB)
    return path or DEFAULT_DATABASE


def check_valkey(url: str) -> None:
    """Raise ImproperlyConfigured if the client can't read REDIS_URL as it is meant."""
    if sentinel_url.parse(url) is not None:
        return
    scheme, authority, path, _ = _parts(url)
    if scheme in ("redis", "rediss"):
        _hosts("REDIS_URL", VALKEY, authority, path, is_list=False)
        user, _, password = authority.rpartition("@")[0].partition(":")
        if user and not password:
            raise _refused("REDIS_URL", "it has a user without a password", VALKEY)
        if path and not path.isdecimal():
            raise _refused("REDIS_URL", "its path isn't the number of a database", VALKEY)
    try:
        ConnectionPool.from_url(url).make_connection()
    except (ValueError, TypeError, RedisError):
        # Without the cause, whose text may have the password.
        raise _refused("REDIS_URL", "it or an option can't be read", VALKEY) from None


def check_rabbitmq(urls: str) -> None:
    """Raise ImproperlyConfigured for a BROKER_URL, or one of several, that can't be read."""
    for url in urls.split(";"):
        scheme, authority, path, _ = _parts(url)
        if scheme not in ("amqp", "amqps"):
            raise _refused("BROKER_URL", "it has another scheme", RABBITMQ)
        _hosts("BROKER_URL", RABBITMQ, authority, path, is_list=False)


def _parts(url: str) -> tuple[str, str, str, str]:
    """Return scheme, authority, path, and query. Drivers know a scheme in lower case only."""
    scheme, _, rest = url.partition("://")
    before, _, query = rest.partition("?")
    authority, _, path = before.partition("/")
    return scheme, authority, path, query


def _hosts(name: str, form: str, authority: str, path: str, *, is_list: bool) -> list[str]:
    """Return the hosts with their ports, which may be several. Raises ImproperlyConfigured."""
    credentials, _, hosts = authority.rpartition("@")
    if "@" in path or "@" in credentials or "#" in authority or credentials.count(":") > 1:
        problem = "its user or password has a special character that isn't percent-encoded"
        raise _refused(name, problem, form)
    found = hosts.split(",") if is_list else [hosts]
    for host in found:
        match = _HOST.fullmatch(host)
        if match is None and not (is_list and _SOCKET.fullmatch(host)):
            raise _refused(name, "a host or its port is missing or invalid", form)
        if match is not None and match["port"] and not 0 < int(match["port"]) <= MAX_PORT:
            raise _refused(name, f"a port is not from 1 to {MAX_PORT}", form)
    return found


def _is_readable(address: str, options: Mapping[str, str]) -> bool:
    try:
        parse_uri(f"{address}?{urlencode(options)}" if options else address, warn=False)
    except (PyMongoError, ValueError, OSError):
        return False
    return True


def _refused(name: str, problem: str, form: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"environment variable {name}: {problem}. Expected {form}.")
