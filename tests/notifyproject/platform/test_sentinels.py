"""A failover of Valkey, as its Sentinels tell of it, needs no restart."""

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from domain.time import utc_now
from notifyproject.platform import broker, server_health, valkey
from notifyproject.stack import servers
from notifyproject.stack.servers import HOST, Server

from ...support.waiting import LIMIT, until

MASTER = "notify"


class Watched:
    """Two primaries and a Sentinel that is told which one it watches."""

    def __init__(self, folder: Path) -> None:
        self.primaries = [
            servers.valkey(data_dir=folder / name, port=servers.free_port()) for name in "ab"
        ]
        self.sentinel = servers.sentinel(data_dir=folder / "sentinel", port=servers.free_port())
        self.url = f"sentinel://{HOST}:{self.sentinel.port}/0?master={MASTER}"

    @property
    def servers(self) -> list[Server]:
        return [*self.primaries, self.sentinel]

    def watch(self, primary: Server) -> None:
        """Name a primary; connections to the other one end, as in a failover."""
        with redis.Redis(port=self.sentinel.port) as sentinel:
            if MASTER in sentinel.sentinel_masters():
                sentinel.sentinel_remove(MASTER)
            sentinel.sentinel_monitor(MASTER, HOST, primary.port, 1)
        for other in self.primaries:
            if other is not primary:
                with redis.Redis(port=other.port) as client:
                    client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    watched = Watched(tmp_path_factory.mktemp("sentinels"))
    for server in watched.servers:
        server.start()
    yield watched
    for server in watched.servers:
        server.kill()


@pytest.fixture
def url(watched: Watched, settings: Any, valkey_anew: None, monkeypatch: pytest.MonkeyPatch) -> str:
    """Watch the first primary, and use it as broker and for everything else."""
    watched.watch(watched.primaries[0])
    settings.REDIS_URL = watched.url
    monkeypatch.setattr(server_health, "PAUSE_AFTER_FAILURE", 0)
    return watched.url


def _is_written(key: str) -> bool:
    try:
        with valkey.connection() as client:
            return bool(client.set(key, "1"))
    except valkey.Unavailable:
        return False


def _is_published() -> bool:
    now = utc_now()
    return broker.publish(
        "notifications.publish_callbacks", args=[], queue="callbacks", at=None, now=now
    )


def test_client_follows_the_primary(watched: Watched, url: str) -> None:
    until(lambda: _is_written("before"))
    watched.watch(watched.primaries[1])
    until(lambda: _is_written("after"))
    for primary, key in zip(watched.primaries, ("before", "after"), strict=True):
        with redis.Redis(port=primary.port) as client:
            assert client.keys("*e*") == [key.encode()]


def test_wakeups_go_to_the_new_primary(watched: Watched, url: str) -> None:
    until(_is_published)
    watched.watch(watched.primaries[1])
    until(_is_published)
    with redis.Redis(port=watched.primaries[1].port) as client:
        assert client.llen("callbacks") == 1


def test_stream_subscribes_at_the_primary(watched: Watched, url: str) -> None:
    async def subscribers() -> int:
        opened = valkey.open_async_client(url, timeout=LIMIT, name="streams")
        async with opened as client, client.pubsub() as subscription:
            await subscription.subscribe("inbox")
            await subscription.get_message(timeout=LIMIT)
            with redis.Redis(port=watched.primaries[0].port) as primary:
                return int(primary.pubsub_numsub("inbox")[0][1])

    assert asyncio.run(subscribers()) == 1


def test_unreachable_sentinel_is_passed_over(watched: Watched, url: str) -> None:
    nobody = f"sentinel://{HOST}:{servers.free_port()},"
    client = valkey.open_client(url.replace("sentinel://", nobody), timeout=LIMIT)
    assert client.ping()
    client.close()
