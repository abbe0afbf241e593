"""The plan of the cluster: addresses, configuration texts, and the map."""

import ipaddress
from collections import Counter

from pymongo.uri_parser import parse_uri

from bench.cluster import plan
from notifyproject.settings import sentinel_url
from tests.support.tables import each_case

RUNS = Counter(name.partition("-")[0] for host in plan.HOSTS for name in host.runs)


def test_company_has_two_of_what_serves_and_three_of_what_votes() -> None:
    assert len((*plan.APPS, *plan.DATA)) == 5
    assert RUNS == {
        "sandbox": 1,
        "proxy": 1,
        "web": 2,
        "stream": 2,
        "worker": 4,
        "beat": 2,
        "mongod": 3,
        "valkey": 2,
        "sentinel": 3,
    }


def test_addresses_differ_and_are_reserved_for_tests() -> None:
    addresses = [ipaddress.ip_address(host.address) for host in plan.HOSTS]
    assert len(set(addresses)) == len(plan.HOSTS)
    assert all(address in ipaddress.ip_network("198.18.0.0/15") for address in addresses)


def test_secondaries_replicate_from_the_primary_alone() -> None:
    assert plan.replica_set()["settings"] == {
        "electionTimeoutMillis": 5_000,
        "heartbeatIntervalMillis": 1_000,
        "chainingAllowed": False,
    }


def test_stores_are_named_by_every_member() -> None:
    uri = parse_uri(plan.mongodb_uri("chaos"))
    assert uri["nodelist"] == [(host.address, plan.MONGOD_PORT) for host in plan.DATA]
    sentinels = sentinel_url.parse(plan.redis_url())
    assert sentinels is not None
    assert [host for host, _ in sentinels.hosts] == [host.address for host in plan.DATA]


@each_case("host", plan.DATA)
def test_sentinel_watches_the_first_primary_on_another_host_than_mongodb(host: plan.Host) -> None:
    text = plan.sentinel_configuration(host, folder="/data")
    assert f"sentinel monitor notify {plan.FIRST_VALKEY_PRIMARY.address} 6379 2\n" in text
    assert f"bind {host.address} " in text
    assert plan.FIRST_VALKEY_PRIMARY is not plan.DATA[0]


def test_proxy_serves_both_hosts_and_streams_apart() -> None:
    text = plan.proxy_configuration(console="fd@7")
    for app in plan.APPS:
        assert f"server {app.name} {app.address}:8000 check\n" in text
        assert f"server {app.name} {app.address}:8002 check\n" in text
    assert "    bind 198.18.0.2:80\n    bind fd@7\n" in text
    assert "fd@" not in plan.proxy_configuration(console=None)


def test_map_shows_each_program_at_its_address() -> None:
    namespaces = {host.name: f"ns-{host.name}" for host in plan.HOSTS}
    process_ids = {name: n for n, name in enumerate(sorted(RUNS))} | {"web-1": 4711}
    lines = plan.network_map(namespaces, process_ids=process_ids).splitlines()
    assert len(lines) == len(plan.HOSTS) + 1
    found = next(line for line in lines if line.startswith("app-1"))
    assert found.split()[1:3] == ["198.18.0.11", "ns-app-1"]
    assert found.endswith("web-1 (4711)")
