"""The sandbox's HTTP server."""

import asyncio
import socket
from pathlib import Path
from urllib.parse import urlsplit

from sandbox.config import Config
from sandbox.server import serve
from tests.support.waiting import LIMIT

CLIENTS = 20


def test_connection_that_is_accepted_during_the_stop_is_closed(tmp_path: Path) -> None:
    async def connect_and_stop() -> list[socket.socket]:
        async with serve(Config(data=tmp_path)) as sandbox:
            url = urlsplit(sandbox.url)
            address = (str(url.hostname), url.port or 0)
            clients = [socket.create_connection(address) for _ in range(CLIENTS)]
            # The loop accepts them in its first turn, and gives them handlers in the third.
            for _ in range(2):
                await asyncio.sleep(0)
        return clients

    for client in asyncio.run(connect_and_stop()):
        with client:
            client.settimeout(LIMIT)
            assert client.recv(1) == b"", "the server has closed it"
