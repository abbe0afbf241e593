"""The hosts of the cluster: addresses, what runs where, configuration texts, and the map."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

NETWORK, PREFIX_LENGTH = "198.18.0", 24
"""A network of RFC 2544, which is reserved for tests. It exists only inside the namespaces."""
REPLICA_SET = "rs0"
MASTER = "notify"
MONGOD_PORT, VALKEY_PORT, SENTINEL_PORT = 27017, 6379, 26379
WEB_PORT, STREAM_PORT, PROXY_PORT, SANDBOX_PORT = 8000, 8002, 80, 8001
ELECTION_MILLISECONDS = 5_000
"""Time without a primary after which a member of the replica set calls an election."""
DOWN_MILLISECONDS = 5_000
"""Time without an answer after which a Sentinel considers Valkey's primary as down."""
QUORUM = 2
"""Sentinels that must agree on that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """A host and the names of the programs that it runs."""

    name: str
    number: int
    """The last part of its address."""
    runs: tuple[str, ...]
    purpose: str

    @property
    def address(self) -> str:
        """The IPv4 address."""
        return f"{NETWORK}.{self.number}"


INTERNET = Host(
    name="internet", number=1, runs=("sandbox",), purpose="providers and clients; the switch"
)
EDGE = Host(name="edge", number=2, runs=("proxy",), purpose="load balancer")
APPS = tuple(
    Host(
        name=f"app-{n}",
        number=10 + n,
        runs=(f"web-{n}", f"stream-{n}", f"worker-{2 * n - 1}", f"worker-{2 * n}", f"beat-{n}"),
        purpose="the service",
    )
    for n in (1, 2)
)
DATA = tuple(
    Host(
        name=f"data-{n}",
        number=20 + n,
        runs=(f"mongod-{n}", *((f"valkey-{n}",) if n < 3 else ()), f"sentinel-{n}"),
        purpose="MongoDB and Valkey" if n < 3 else "MongoDB and the third vote",
    )
    for n in (1, 2, 3)
)
HOSTS = (INTERNET, EDGE, *APPS, *DATA)
VALKEY_HOSTS = DATA[:2]
FIRST_VALKEY_PRIMARY = DATA[1]
"""Another host than that of MongoDB's first primary, so that they can fail one by one."""


def mongodb_uri(database: str) -> str:
    """Return the URI of a database of the replica set."""
    members = ",".join(f"{host.address}:{MONGOD_PORT}" for host in DATA)
    return f"mongodb://{members}/{database}?replicaSet={REPLICA_SET}"


def redis_url() -> str:
    """Return REDIS_URL with all Sentinels."""
    sentinels = ",".join(f"{host.address}:{SENTINEL_PORT}" for host in DATA)
    return f"sentinel://{sentinels}/0?master={MASTER}"


def replica_set() -> Mapping[str, object]:
    """Return the configuration of the replica set, in which the first member is preferred.

    A secondary that replicates from another one stops when that one is lost, and with it each write
    that needs a majority.
    """
    members = [
        {"_id": n, "host": f"{host.address}:{MONGOD_PORT}", "priority": 2 if n == 0 else 1}
        for n, host in enumerate(DATA)
    ]
    settings = {
        "electionTimeoutMillis": ELECTION_MILLISECONDS,
        "heartbeatIntervalMillis": 1_000,
        "chainingAllowed": False,
    }
    return {"_id": REPLICA_SET, "members": members, "settings": settings}


def sentinel_configuration(host: Host, *, folder: str) -> str:
    """Return the first configuration of a host's Sentinel, which then changes it."""
    primary = f"{FIRST_VALKEY_PRIMARY.address} {VALKEY_PORT}"
    return f"""\
bind {host.address} 127.0.0.1
port {SENTINEL_PORT}
dir {folder}
protected-mode no
sentinel monitor {MASTER} {primary} {QUORUM}
sentinel down-after-milliseconds {MASTER} {DOWN_MILLISECONDS}
sentinel failover-timeout {MASTER} 10000
"""


def proxy_configuration(*, console: str | None) -> str:
    """Return the configuration of HAProxy. ``console`` is one more address to listen on."""
    extra = f"    bind {console}\n" if console else ""
    return f"""\
global
    maxconn 8000
defaults
    mode http
    option forwardfor
    option redispatch 1
    retries 2
    timeout connect 1s
    timeout client 60s
    timeout server 35s
    timeout check 1s
    default-server inter 1s fall 2 rise 1 on-marked-down shutdown-sessions
frontend service
    bind {EDGE.address}:{PROXY_PORT}
{extra}\
    http-request set-header X-Forwarded-Proto http
    use_backend stream if {{ path /api/v1/inbox/stream }}
    default_backend web
backend web
    option httpchk
    http-check send meth GET uri /healthz hdr Host {EDGE.address}
    http-check expect status 200
{_servers(WEB_PORT)}\
backend stream
    timeout server 60s
{_servers(STREAM_PORT)}"""


def _servers(port: int) -> str:
    return "".join(f"    server {app.name} {app.address}:{port} check\n" for app in APPS)


def network_map(namespaces: Mapping[str, str], *, process_ids: Mapping[str, int]) -> str:
    """Return a table of hosts: namespace, address, purpose, and programs with their process IDs."""
    rows = [
        (
            host.name,
            host.address,
            namespaces[host.name],
            host.purpose,
            ", ".join(f"{name} ({process_ids[name]})" for name in host.runs if name in process_ids),
        )
        for host in HOSTS
    ]
    return _table([("host", "address", "namespace", "purpose", "programs (process IDs)"), *rows])


def _table(rows: Sequence[Sequence[str]]) -> str:
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]

    def line(row: Iterable[str]) -> str:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        return "  ".join(cells).rstrip()

    return "\n".join(map(line, rows))
